"""Common settings of tests: number of threads, Ctrl-C, examples of Hypothesis, and the command line."""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

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
from data import REPOSITORY
from hypothesis import settings

if TYPE_CHECKING:
    from herdner import Tagger


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """A run with the slow tests has all examples of Hypothesis too; ``--hypothesis-profile`` still chooses."""
    settings.load_profile("quick" if "not slow" in config.option.markexpr else "full")


@pytest.fixture(scope="session")
def news_tagger() -> Tagger:
    """A small real tagger with links, trained on herdner's own stories."""
    from herdner import Tagger, read_documents
    from herdner.crf.learning import Learner

    stories = list(read_documents(REPOSITORY / "corpora" / "herdner_news.train.conll", "conll"))
    return Tagger(max_iterations=20, n_folds=2, learner=Learner(max_iterations=20)).fit(stories)


@pytest.fixture(scope="session")
def news_model(news_tagger: Tagger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its file."""
    path = tmp_path_factory.mktemp("model") / "news.model"
    news_tagger.save(path)
    return path


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
