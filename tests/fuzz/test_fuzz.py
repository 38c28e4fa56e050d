"""Short fuzzing: seconds in the quick run, minutes in the slow one. For hours: ``python -m tests.fuzz``."""

from __future__ import annotations

import sys

import pytest
from patience import PATIENCE

from fuzz.run import fuzz
from fuzz.targets import TARGETS

QUICK = 8  # number of cases of each target
SLOW = {"manifests": 300, "spacy": 200, "calls": 1000}  # number of cases of slow targets; others have 2,000


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_ends_the_process_or_gives_what_is_no_answer(target):
    found = fuzz(target, 0, QUICK, seconds=PATIENCE)
    assert found.cases == QUICK
    assert not found.findings, "\n".join(map(str, found.findings))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_does_so_in_minutes(target):
    cases = SLOW.get(target, 2000)
    found = fuzz(target, QUICK, cases, seconds=PATIENCE)
    assert found.cases == cases
    assert not found.findings, "\n".join(map(str, found.findings))


def test_a_case_that_ends_its_process_or_is_never_done_is_a_finding_and_the_next_one_follows():
    found = fuzz("bad", 0, 5, seconds=3)
    assert (found.cases, found.ends) == (5, {"done": 2, "ValueError": 1})
    assert [(each.number, each.what.partition("\n")[0]) for each in found.findings] == [
        (1, "ended the process (-11)"),
        (3, "took more than 3 s"),
    ]
    assert sys.platform == "win32" or " in bad" in found.findings[1].what  # the traceback names the function
