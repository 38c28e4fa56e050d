"""What tests share: the number of threads, Ctrl-C, the examples of Hypothesis, and the command line."""

import io
import os
import signal
import sys

# Set before NumPy is imported: the tests' matrices are so small that threads of BLAS only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A narrow terminal must not fold the help texts and tables that tests read.
os.environ["COLUMNS"] = "120"
# A shell starts what it runs in the background (`pytest &`) deaf to Ctrl-C, and so would be the commands of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
import quick  # noqa: F401 (registers the profiles)
from commands import Call, Outcome
from hypothesis import settings


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """A run with the slow tests has all examples of Hypothesis too; ``--hypothesis-profile`` still chooses."""
    settings.load_profile("quick" if "not slow" in config.option.markexpr else "full")


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """``call("tag", "-", stdin=b"...")``: one command in this process."""
    from herdner.cli import run

    def invoke(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        sys.stdout.flush()
        return Outcome(code, *capfd.readouterr())

    return invoke
