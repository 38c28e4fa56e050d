"""HGW19 Sec. 5.4: the longer the run, the larger the error bound that hides no bias."""

from __future__ import annotations

import numpy as np
import pytest

from herdner import boltzmann_machine, bounded_error_gibbs, make_backend, plain_gibbs
from herdner.inference.gibbs import bin_sharing
from herdner.studies.convergence import choose_error_bound


def test_the_error_bound_grows_with_the_run() -> None:
    rng = np.random.default_rng(1)
    weights = np.triu(rng.uniform(-0.5, 0.5, (8, 8)), 1)
    graph = boltzmann_machine(weights + weights.T, rng.uniform(-0.5, 0.5, 8), (-1, 1))
    found = [choose_error_bound(graph, n, seed=1, runs=4, sharing=bin_sharing(2)) for n in (2**8, 2**12, 2**15)]
    chosen = [one.error_bound for one in found]
    assert chosen[0] == 0
    assert None not in chosen
    assert chosen[0] < chosen[1] < chosen[2]
    assert found[2].lengths.tolist() == [2**12, 2**13, 2**14, 2**15]
    assert found[2].falls[0] < 0.1, "herding has come to its bias"
    truth = make_backend("exact").infer(graph).marginals
    plans = bounded_error_gibbs(2**15, error_bound=chosen[2], sharing=bin_sharing(2)), plain_gibbs(2**15)
    errors = [np.mean([np.abs(plan.infer(graph, s).marginals - truth).mean() for s in range(4)]) for plan in plans]
    assert errors[0] < 1.5 * errors[1]
    assert choose_error_bound(graph, 2**13, [0.0], seed=1, runs=4, sharing=bin_sharing(2)).error_bound is None


def test_wrong_use_is_told() -> None:
    graph = boltzmann_machine([[0, 1], [1, 0]], [0, 0])
    with pytest.raises(ValueError, match="`candidates` must be increasing error bounds"):
        choose_error_bound(graph, 100, [3.0, 1.0])
    with pytest.raises(ValueError, match="n_sweeps"):
        choose_error_bound(graph, 4)
