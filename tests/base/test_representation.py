"""Values that public functions return are printed as one short line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import herdner
from herdner import dobrushin, ising, plain_gibbs
from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
from herdner.studies.convergence import count_visits
from herdner.studies.fwss import eleven_gaussians, fwss

GRAPH = ising(J=0.2, shape=(5, 5))


def optimised_scan() -> object:
    influence = dobrushin.binary_pairwise_bound(GRAPH)
    return dobrushin.optimise_scan(influence, np.arange(25, dtype=np.int32), dobrushin.unit_importance(25, [0]))


VALUES: dict[str, Callable[[], Any]] = {
    "Influence": lambda: dobrushin.binary_pairwise_bound(GRAPH),
    "OptimisedScan": optimised_scan,
    "Points": lambda: fwss(eleven_gaussians(), 20, bandwidth=0.3, seed=0),
    "VisitCounts": lambda: count_visits(ising(J=0.2, shape=(2, 3)), plain_gibbs(), [8], seed=0),
    "PseudonymisedDocument": lambda: herdner.pseudonymise("Grace Auma met Peter Ssali in Jinja. Auma left Jinja."),
    "PseudonymMap": PseudonymMap,
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_printed_as_one_short_line(name: str) -> None:
    text = repr(VALUES[name]())
    assert text.startswith(f"{name}(")
    assert len(text.splitlines()) == 1
    assert len(text) < 400
    assert "array" not in text.replace(" arrays)", "")
    assert "0x" not in text
