"""MCMC maximum likelihood: it finds the parameters, with the guarantee it says, in fewer updates by DoGS."""

from __future__ import annotations

import maximum_likelihood
import numpy as np
import pytest
from maximum_likelihood import fit_binary
from oracle import Oracle
from reference_dobrushin import joint, theorem_11

from herdner import boltzmann_machine

EDGES = np.array([[0, 1], [1, 2], [3, 4], [4, 5], [0, 3], [1, 4], [2, 5]])


def model_means(theta: np.ndarray) -> np.ndarray:
    oracle = Oracle.of_graph(boltzmann_machine(theta[:7], theta[7:], (-1, 1), EDGES))
    spins = 2.0 * oracle.states - 1.0
    statistics = np.concatenate([spins[:, EDGES[:, 0]] * spins[:, EDGES[:, 1]], spins], axis=1)
    return oracle.probabilities @ statistics


def truth() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.concatenate([rng.uniform(-0.2, 0.2, 7), rng.uniform(-0.4, 0.4, 6)])


SLOW = [pytest.param(scan, marks=pytest.mark.slow) for scan in ("systematic", "dogs")]


@pytest.mark.slow
@pytest.mark.parametrize("scan", ["uniform", *SLOW])
def test_the_parameters_are_found(scan: str) -> None:
    """Test that the exact means of a model give its parameters, up to the noise of 3000 runs."""
    data = model_means(truth())
    fit = fit_binary(EDGES, data[:7], data[7:], scan, 5, n_gradients=30, n_runs=3000, step_size=0.5)
    last = fit.path[-10:].mean(axis=0)
    assert np.abs(last - truth()).max() < 0.05
    assert (fit.bounds <= 0.01).all()
    assert fit.path.shape == (31, 13)
    again = fit_binary(EDGES, data[:7], data[7:], scan, 5, n_gradients=30, n_runs=3000, step_size=0.5)
    np.testing.assert_array_equal(fit.path, again.path)


def test_the_same_guarantee_takes_dogs_the_fewest_updates() -> None:
    data = model_means(truth())
    taken = {
        scan: fit_binary(EDGES, data[:7], data[7:], scan, 5, n_gradients=15, n_runs=100).n_steps.sum()
        for scan in ("uniform", "systematic", "dogs")
    }
    assert 2 * taken["dogs"] < taken["uniform"]
    assert taken["dogs"] <= taken["systematic"]


def test_the_bound_follows_the_parameters(monkeypatch) -> None:
    seen = []
    chosen = maximum_likelihood.shortest_scan

    def watched(influence, *rest, **more):
        seen.append(influence)
        return chosen(influence, *rest, **more)

    monkeypatch.setattr(maximum_likelihood, "shortest_scan", watched)
    data = model_means(truth())
    fit = fit_binary(EDGES, data[:7], data[7:], "dogs", 5, n_gradients=4, n_runs=50)
    for theta, influence in zip(fit.path, seen, strict=False):
        couplings = np.zeros((6, 6))
        couplings[EDGES[:, 0], EDGES[:, 1]] = couplings[EDGES[:, 1], EDGES[:, 0]] = theta[:7]
        np.testing.assert_allclose(influence.to_scipy().toarray(), theorem_11(couplings, theta[7:]), atol=1e-14)


@pytest.mark.slow
def test_expectations_are_those_of_the_law_after_the_scan() -> None:
    """A scan of two steps from uniform states: the law is known exactly."""
    theta = truth()
    order = np.array([1, 4], np.int32)
    found = maximum_likelihood._expectations(
        theta, EDGES.astype(np.int32), 6, (order, 0), 200_000, np.random.default_rng(1)
    )
    graph = boltzmann_machine(theta[:7], theta[7:], (-1, 1), EDGES)
    p = joint(graph)
    law = np.full(p.shape, 1 / p.size)
    for i in order:
        law = p / p.sum(axis=i, keepdims=True) * law.sum(axis=i, keepdims=True)
    spins = 2.0 * np.indices(p.shape).reshape(6, -1).T - 1.0
    statistics = np.concatenate([spins[:, EDGES[:, 0]] * spins[:, EDGES[:, 1]], spins], axis=1)
    np.testing.assert_allclose(found, law.ravel() @ statistics, atol=5 / np.sqrt(200_000))


def test_couplings_that_are_too_strong_are_shrunk() -> None:
    fit = fit_binary(EDGES, np.full(7, 0.99), np.zeros(6), "dogs", 1, n_gradients=6, n_runs=50, step_size=2.0)
    for theta in fit.path:
        graph = boltzmann_machine(theta[:7], theta[7:], (-1, 1), EDGES)
        assert maximum_likelihood.binary_pairwise_bound(graph).total.infinity <= 0.95 + 1e-12
    assert (fit.bounds <= 0.01).all()
