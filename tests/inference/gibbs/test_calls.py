"""Calls between `Gibbs.infer` and the function that chooses a state, as cython_ext/README.md lists them."""

from __future__ import annotations

import re
import sys
from itertools import pairwise

import pytest
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


def body(function: str, file: str) -> str:
    """Return the source of a function, from its name up to the next definition."""
    source = (REPOSITORY / file if file.startswith("herdner") else SOURCES / file).read_text(encoding="utf-8")
    name = function.split(".")[-1]
    if name.startswith("step_categorical_"):  # macros make these functions
        return source[source.index("#define LOOP_OF") : source.index("static void step_categorical_general")]
    start = re.search(rf"^(?:    def|static|int64_t)\b[^;\n]*\b{name}\(", source, re.MULTILINE)
    assert start is not None, (function, file)
    return re.split(r"\n(?:    def |/\*|static |\}\n)", source[start.start() :], maxsplit=1)[0]


def test_the_list_is_short_and_each_function_calls_the_next() -> None:
    calls = listed_calls()
    assert calls[0] == ("Gibbs.infer", "herdner/inference/gibbs/run.py")
    assert len(calls) - 1 <= MOST_CALLS
    assert len({file for _, file in calls}) <= MOST_FILES
    for caller, (callee, _) in pairwise(calls):
        name = callee.split(".")[-1]
        pointer = "step" if name.startswith("step_") else name
        assert re.search(rf"[>. ]{pointer}\(", body(*caller)), (caller, callee)


def test_the_list_ends_where_the_state_is_chosen() -> None:
    *_, (update, file), (last, _) = listed_calls()
    choice = re.search(r"const int x = (.*?);", body(update, file), re.DOTALL)
    assert choice is not None
    assert re.findall(r"(\w+)\(", choice[1])[0] == last


def test_infer_calls_the_engine_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    callers: set[str] = set()

    class WatchedEngine(run.loops.Engine):
        def advance(self, start: int, stop: int) -> tuple[int, int]:
            callers.add(sys._getframe(1).f_code.co_name)
            return super().advance(start, stop)

    monkeypatch.setattr(run.loops, "Engine", WatchedEngine)
    Gibbs(10).infer(ising(0.5, shape=(4, 4)), 0)
    assert callers == {"infer"}
