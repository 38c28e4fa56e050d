"""The command line, called in this process (the fixture ``call``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Outcome]


def one_line(outcome: Outcome, code: int) -> str:
    """The one line that a failure may say."""
    assert outcome.code == code
    assert outcome.err.startswith("herdner: ")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    return outcome.err
