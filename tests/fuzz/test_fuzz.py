"""Short fuzzing: seconds in the quick run, minutes in the slow one. For hours: ``python -m tests.fuzz``."""

from __future__ import annotations

import pkgutil
import sys

import pytest
from patience import PATIENCE

import herdner
from fuzz import public
from fuzz.run import fuzz
from fuzz.targets import TARGETS

QUICK = {"public": 300}  # number of cases of a target; others have 8
SLOW = {
    "manifests": 300,
    "spacy": 200,
    "calls": 1000,
    "public": 10_000,
}  # number of cases of slow targets; others have 2,000


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_ends_the_process_or_gives_what_is_no_answer(target):
    cases = QUICK.get(target, 8)
    found = fuzz(target, 0, cases, seconds=PATIENCE)
    assert found.cases == cases
    assert not found.findings, "\n".join(map(str, found.findings))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_does_so_in_minutes(target):
    cases = SLOW.get(target, 2000)
    found = fuzz(target, QUICK.get(target, 8), cases, seconds=PATIENCE)
    assert found.cases == cases
    assert not found.findings, "\n".join(map(str, found.findings))


def test_every_public_callable_has_arguments():
    names = public.public()
    for part in (
        "crf",
        "inference.linear_chain",
        "ner",
        "evaluation",
        "text.io",
        "graph",
        "dobrushin",
        "studies",
        "corpora",
    ):
        assert any(name.startswith(f"herdner.{part}.") for name in names), part
    assert "herdner.text.document.Document.from_tokens" in names
    assert not any("._" in name for name in names)
    modules = {module.name for module in pkgutil.walk_packages(herdner.__path__, "herdner.")}
    assert all(name in modules or pkgutil.resolve_name(name) for name in public.LEFT_OUT)
    assert len(public.recorded()) > 0.6 * len(names)


def test_a_case_that_ends_its_process_or_is_never_done_is_a_finding_and_the_next_one_follows():
    found = fuzz("bad", 0, 5, seconds=3)
    assert (found.cases, found.ends) == (5, {"done": 2, "ValueError": 1})
    assert [(each.number, each.what.partition("\n")[0]) for each in found.findings] == [
        (1, "ended the process (-11)"),
        (3, "took more than 3 s"),
    ]
    assert sys.platform == "win32" or " in bad" in found.findings[1].what  # the traceback names the function
