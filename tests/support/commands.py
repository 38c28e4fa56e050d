"""The command line, called in this process (the fixture ``call``)."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import NamedTuple


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Outcome]


def exit_code(returncode: int | None) -> int | None:
    """As a shell has it. Python takes a Ctrl-C inside code that is made from text, as dataclasses are, for one that
    nobody handled, and ends ``python -m herdner`` by the signal, which shells call 130 like the exit code.
    """
    return 130 if returncode == -signal.SIGINT else returncode


def one_line(outcome: Outcome, code: int) -> str:
    """The one line that a failure may say."""
    assert outcome.code == code
    assert outcome.err.startswith("herdner: ")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    return outcome.err
