"""Calls between `Gibbs.infer` and the line that draws a state, as cython_ext/README.md lists them."""

from __future__ import annotations

import re
import sys
from types import FrameType

from data import REPOSITORY

from herdner import ising
from herdner.inference.gibbs import run
from herdner.inference.gibbs.run import Gibbs

SOURCES = REPOSITORY / "cython_ext"
MOST_CALLS, MOST_FILES = 6, 4


def listed_calls() -> list[tuple[str, str]]:
    """Return function and file of each line of the list."""
    page = (SOURCES / "README.md").read_text(encoding="utf-8")
    block = page[page.index("    Gibbs.infer ") : page.index("The other loops differ")]
    calls: list[tuple[str, str]] = []
    for line in block.splitlines():
        if match := re.match(r" +([\w.]+)  ?(?: *)(\S+\.(?:pyx|py|c|h)\b|)", line):
            calls.append((match[1], match[2] or calls[-1][1]))
    return calls


def test_the_list_is_short_and_names_functions_of_these_files() -> None:
    calls = listed_calls()
    assert calls[0] == ("Gibbs.infer", "herdner/inference/gibbs/run.py")
    assert calls[-1][0] == "update_categorical"
    assert len(calls) - 1 <= MOST_CALLS
    assert len({file for _, file in calls}) <= MOST_FILES
    for function, file in calls:
        path = REPOSITORY / file if file.startswith("herdner") else SOURCES / file
        name = function.split(".")[-1]
        source = path.read_text(encoding="utf-8")
        if not name.startswith("step_"):  # macros make these names
            assert re.search(rf"\b{name}\(", source), (function, file)


def test_infer_calls_advance_directly() -> None:
    callers: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is run.Run.advance.__code__ and frame.f_back is not None:
            callers.add(frame.f_back.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_back.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        Gibbs(10).infer(ising(0.5, shape=(4, 4)), 0)
    finally:
        sys.setprofile(before)
    assert {caller.split(".")[-1] for caller in callers} == {"infer"}
