"""What tests share: the number of threads, Ctrl-C, and the command line."""

import io
import os
import signal
import sys

# Set before NumPy is imported: the tests' matrices are so small that threads of BLAS only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A shell starts what it runs in the background (`pytest &`) deaf to Ctrl-C, and so would be the commands of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from commands import Call, Outcome


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
