"""Short fuzzing: seconds in the quick run, minutes in the full one.

For hours: ``python -m tests.fuzz``. ``python -m tests.fuzz --first 0 --cases 2000`` takes ten minutes.
"""

from __future__ import annotations

import pkgutil
import sys

import pytest
from patience import PATIENCE

import herdner
from fuzz import calls, public
from fuzz.run import fuzz
from fuzz.targets import TARGETS

QUICK = 8  # number of cases of each target in the quick run
FULL = {"manifests": 200, "spacy": 100, "public": 4000}  # in the full run, which includes those; others have 700
RECORDED = ("public", "compiled")  # targets that record a session first, which takes half a minute


def require_no_findings(target: str, n: int) -> None:
    found = fuzz(target, 0, n, seconds=PATIENCE)
    assert found.cases == n
    assert not found.findings, "\n".join(map(str, found.findings))


@pytest.mark.slow
@pytest.mark.parametrize("target", [target for target in TARGETS if target not in RECORDED])
def test_nothing_ends_the_process_or_gives_what_is_no_answer(target, request):
    is_quick = "not slow" in request.config.option.markexpr
    require_no_findings(target, QUICK if is_quick else FULL.get(target, 700))


@pytest.mark.slow
@pytest.mark.parametrize("target", RECORDED)
def test_no_call_of_a_session_with_hostile_arguments_ends_the_process(target):
    require_no_findings(target, FULL.get(target, 700))


@pytest.mark.slow
def test_every_public_callable_has_arguments(monkeypatch):
    monkeypatch.setattr(calls, "limit_memory", lambda _: None)  # other tests use this process too
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
    assert "herdner.text.tokenize.Tokenizer.__call__" in names
    assert not any("._" in name.rpartition(".")[0] for name in names)
    assert {name.rpartition(".")[2] for name in names if "._" in name} <= public.SPECIAL
    assert {"herdner.text.document.Document.__eq__", "herdner.graph.scan.Scan.__eq__"} <= set(names)
    assert {"herdner.graph.factors.TableFactors.__len__", "herdner.graph.domain.Domains.__len__"} <= set(names)
    modules = {module.name for module in pkgutil.walk_packages(herdner.__path__, "herdner.")}
    assert all(name in modules or pkgutil.resolve_name(name) for name in public.LEFT_OUT)
    assert {f"herdner.studies.fwss.chains.{name}" for name in ("hmc", "sgld")} <= set(public.recorded())
    assert len(public.recorded()) > 0.6 * len(names)


@pytest.mark.slow
def test_a_case_that_ends_its_process_or_is_never_done_is_a_finding_and_the_next_one_follows():
    found = fuzz("bad", 0, 5, seconds=3)
    assert (found.cases, found.ends) == (5, {"done": 2, "ValueError": 1})
    assert [(each.number, each.what.partition("\n")[0]) for each in found.findings] == [
        (1, "ended the process (-11)"),
        (3, "took more than 3 s"),
    ]
    assert sys.platform == "win32" or " in bad" in found.findings[1].what  # the traceback names the function
