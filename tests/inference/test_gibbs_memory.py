"""The memory of a run, as tracemalloc counts arrays of NumPy."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from herdner import herded_gibbs, ising
from herdner.graph import chain_graph, compile_tables
from herdner.inference.gibbs import blanket_sharing, neighbour_sum_sharing

# Bytes for each variable of a grid of two labels: 16 for its log odds and odds, 4 for the state and the best one, 4 for
# counts, 4 for each weight. The averages come after the weights have gone, and take no more than five of these.
RUN, WEIGHT, SLACK = 24, 4, 3


@pytest.mark.parametrize(("sharing", "n_keys"), [(neighbour_sum_sharing(), 5), (blanket_sharing(), 16)])
def test_a_grid_takes_no_more_than_its_arrays(sharing, n_keys) -> None:
    graph = ising(0.3, np.random.default_rng(0).normal(size=(500, 500)))
    plan = herded_gibbs(3, sharing=sharing)
    plan.infer(graph, 0)  # what is imported and made once
    tracemalloc.start()
    result = plan.infer(graph, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.marginals is not None
    assert peak / graph.n_variables < RUN + WEIGHT * n_keys + SLACK


def test_no_more_weights_are_laid_out_than_updates_could_meet() -> None:
    """300 variables of 17 states have 17^2 weights each, 14 MB; two sweeps use 600 of them at most."""
    rng = np.random.default_rng(1)
    graph = compile_tables(chain_graph(rng.normal(size=(300, 17)), rng.normal(size=(17, 17))))
    hashed = herded_gibbs(2, weight_memory=2**20).infer(graph, 0)
    tracemalloc.start()
    result = herded_gibbs(2).infer(graph, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(result.marginals, hashed.marginals)
    assert peak < 2_000_000
