"""Exact inference on graphs of the UAI-2014 competition, compared with the marginals of another program."""

from __future__ import annotations

import numpy as np
import pytest
from data import shared_data

from herdner.graph.uai_files import read_evidence, read_marginals, read_uai
from herdner.inference.backends.belief_propagation import BeliefPropagation
from herdner.inference.backends.exact import Exact
from herdner.inference.record import Record

INSTANCES = ["Grids_11", "Pedigree_11", "Pedigree_13", "Promedus_24", "Promedus_27", "Promedus_33", "Segmentation_16"]


def differences(name: str, exact: bool = True) -> np.ndarray:
    """The total variation distance of each variable's marginal from that of the other program."""
    folder = shared_data("uai")
    graph = read_uai(folder / f"{name}.uai")
    evidence = read_evidence(folder / f"{name}.uai.evid", graph)
    backend = Exact() if exact else BeliefPropagation()
    rows = backend.infer(graph.condition(evidence), record=Record(best=False)).marginals
    expected = read_marginals(folder / f"{name}.uai.MAR")
    free = [v for v in range(len(expected)) if v not in evidence]
    assert len(rows) == len(free)
    for v, state in evidence.items():
        assert expected[v][state] == pytest.approx(1)
    return np.array(
        [0.5 * np.abs(row[: len(expected[v])] - expected[v]).sum() for v, row in zip(free, rows, strict=True)]
    )


@pytest.mark.parametrize("name", INSTANCES)
def test_exact_marginals_are_those_of_another_program(name):
    assert differences(name).max() < 1e-9


@pytest.mark.parametrize("name", ["Promedus_24", "Promedus_33"])
def test_belief_propagation_is_near_the_truth_on_sparse_graphs(name):
    assert differences(name, exact=False).mean() < 0.05
