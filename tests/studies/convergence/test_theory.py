"""Bounds and constants of HG16 and HGW19, held against enumeration and against what samplers do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from oracle import Oracle

from herdner.graph import FactorGraph, TableFactors, boltzmann_machine, graph_from_joint, ising, potts
from herdner.inference.backends.gibbs import bounded_error_gibbs, herded_gibbs, plain_gibbs
from herdner.inference.gibbs import bin_sharing, complete_sharing, neighbour_sum_sharing, random_bin_sharing
from herdner.inference.record import Record
from herdner.studies.convergence import (
    Convergence,
    CorrelationEstimate,
    approx_bound,
    best_bins,
    choose_bins,
    count_visits,
    dobrushin_coefficient,
    focus_variable,
    gibbs_kernel,
    herding_bound,
    joint_distribution,
)


def ring(seed: int, low: float = 0.0, high: float = 1.0, n: int = 8) -> FactorGraph:
    """HGW19 Fig. 3: parameters uniform in [low, high], values -1, 1."""
    rng = np.random.default_rng(seed)
    edges = [[i, (i + 1) % n] for i in range(n)]
    return boltzmann_machine(rng.uniform(low, high, n), rng.uniform(low, high, n), (-1, 1), edges=edges)


RING_OF_5 = [[i, (i + 1) % 5] for i in range(5)]
SMALL = [ring(0, n=4), ising(0.5, np.random.default_rng(1).normal(size=(2, 3))), potts(0.7, np.zeros((1, 3, 3)))]


@pytest.mark.parametrize("graph", SMALL)
def test_the_kernel_of_a_sweep(graph):
    oracle, kernel = Oracle.of_graph(graph), gibbs_kernel(graph)
    np.testing.assert_allclose(joint_distribution(graph).ravel(), oracle.probabilities, atol=1e-14)
    np.testing.assert_allclose(oracle.probabilities @ kernel, oracle.probabilities, atol=1e-13)
    for a, b in itertools.islice(itertools.product(range(len(kernel)), repeat=2), 0, None, 7):
        x, chance = list(oracle.states[a]), 1.0
        for i, label in enumerate(oracle.states[b]):
            others = {j: int(v) for j, v in enumerate(x) if j != i}
            chance *= oracle.conditional(i, others)[label]
            x[i] = int(label)
        assert kernel[a, b] == pytest.approx(chance, abs=1e-12)


def test_the_dobrushin_coefficient():
    graph = SMALL[1]
    kernel = gibbs_kernel(graph)
    pairs = itertools.combinations(range(len(kernel)), 2)
    assert dobrushin_coefficient(kernel) == pytest.approx(
        max(np.abs(kernel[a] - kernel[b]).sum() / 2 for a, b in pairs)
    )
    assert dobrushin_coefficient(gibbs_kernel(ising(0.0, np.ones((1, 4))))) == pytest.approx(0, abs=1e-12)
    assert dobrushin_coefficient(gibbs_kernel(ising(9.0, np.zeros((1, 2))))) > 0.99
    with pytest.raises(ValueError, match="row sums 1"):
        dobrushin_coefficient(np.ones((2, 2)))


def test_what_is_too_large_is_told():
    with pytest.raises(ValueError, match="65536"):
        joint_distribution(ising(0.1, np.zeros((5, 5))))
    with pytest.raises(ValueError, match="2048"):
        gibbs_kernel(ising(0.1, np.zeros((3, 4))))


# ---- HG16 Theorem 3 ----


def positive(seed: int) -> FactorGraph:
    return graph_from_joint(np.random.default_rng(seed).uniform(0.5, 1.0, (2, 2)))


@pytest.mark.parametrize("seed", range(4))
def test_the_constants_of_theorem_3(seed):
    graph = positive(seed)
    found, whole = Convergence.of(graph), joint_distribution(graph)
    p_min = min((whole / whole.sum(axis=i, keepdims=True)).min() for i in range(2))
    assert found.p_min == pytest.approx(p_min)
    assert found.l == pytest.approx(p_min**2)
    assert found.b == pytest.approx(p_min**2 + (1 - (2 * p_min) ** 2) / (1 - 2 * p_min))
    assert found.rate == pytest.approx(2 * 2 * (1 + found.eta) / (found.l * (1 - found.eta)))
    assert found.shortest == pytest.approx(2 * found.b / found.l)


@pytest.mark.parametrize("seed", range(4))
def test_complete_herding_keeps_the_bounds(seed):
    """Proposition 5: visits of each state; Theorem 3 and Corollary 4: the distance of the joints."""
    graph = positive(seed)
    found, lengths = Convergence.of(graph), [2**k for k in range(3, 17)]
    samples = count_visits(graph, herded_gibbs(sharing=complete_sharing()), lengths, seed=seed)
    for n, visits, errors in zip(lengths, samples.visits, samples.errors, strict=True):
        assert visits.sum(axis=0).min() >= found.l * n - found.b
        assert errors.all / 2 <= found.bound_from_start(n)
    assert found.bound_from_start(2**16) < 0.01, "the bound says something"
    burn_in = int(np.ceil(found.burn_in(2**16)))
    kept = (
        herded_gibbs(2**16 + burn_in, burn_in, complete_sharing(), record=Record(joint=True)).infer(graph, seed).joint
    )
    assert np.abs(kept - joint_distribution(graph)).sum() / 2 <= found.bound(2**16) < 0.01


def test_impossible_states_have_the_constants_of_equation_34():
    """Two sweeps lead from anywhere to anywhere on the path 00, 10, 11; states are visited as Proposition 5 says."""
    graph = graph_from_joint([[0.4, 0.0], [0.25, 0.35]])
    found, whole = Convergence.of(graph), joint_distribution(graph)
    assert found.p_min == pytest.approx(0.25 / 0.65)
    assert found.n_sweeps == 2
    assert found.l == pytest.approx(found.p_min**4)
    terms = [1, found.p_min * 2, found.p_min**2 * 4, found.p_min**3 * 4]
    assert found.b == pytest.approx(2 * found.l + sum(terms))
    lengths = [2**k for k in range(2, 17)]
    samples = count_visits(graph, herded_gibbs(sharing=complete_sharing()), lengths, seed=1)
    for n, visits, errors in zip(lengths, samples.visits, samples.errors, strict=True):
        assert visits.sum(axis=0).ravel()[whole.ravel() > 0].min() >= found.l * n - found.b
        assert errors.all / 2 <= found.bound_from_start(n)


def test_what_theorem_3_leaves_out_is_told():
    for graph, found in ((potts(0.3, np.zeros((1, 2, 3))), "3"), (graph_from_joint([[1.0, 2.0]]), "1 and 2")):
        with pytest.raises(ValueError, match=f"binary variables, .* of the graph have {found} states$"):
            Convergence.of(graph)
    assert joint_distribution(FactorGraph([], [])) == 1.0
    with pytest.raises(ValueError, match="the graph has no variables"):
        Convergence.of(FactorGraph([], []))
    with pytest.raises(ValueError, match="divide the joint states into parts"):
        Convergence.of(graph_from_joint([[0.5, 0.0], [0.0, 0.5]]))
    assert Convergence.of(positive(0)).bound(3) == 1.0


# ---- HGW19 Sec. 5: the asymptotic D^cor ----


@pytest.mark.parametrize("sharing", [None, neighbour_sum_sharing()])
def test_returns_by_linear_algebra_are_those_of_gibbs_runs(sharing):
    graph = (
        ring(1, n=5)
        if sharing is None
        else boltzmann_machine(np.full(5, 0.6), np.full(5, 0.3), (-1, 1), edges=RING_OF_5)
    )
    seen = focus_variable(graph, sharing)
    exact = CorrelationEstimate.exact(joint_distribution(graph), seen)
    samples = count_visits(graph, plain_gibbs(), [2**22], seed=3, sharing=sharing)
    np.testing.assert_allclose(samples.correlation.chances, exact.chances)
    np.testing.assert_allclose(samples.correlation.t, exact.t)
    np.testing.assert_allclose(samples.correlation.depend, exact.depend, atol=0.01)
    assert samples.correlation.total == pytest.approx(exact.total, rel=0.15)


def test_complete_keys_have_no_correlation():
    graph = ring(1, n=5)
    assert CorrelationEstimate.exact(
        joint_distribution(graph), focus_variable(graph, complete_sharing())
    ).total == pytest.approx(0, abs=1e-12)


def test_herding_comes_to_the_estimate():
    """HGW19 Fig. 3, Table 1: rings whose D^cor is large enough to be seen after 2^21 sweeps end near it."""
    for seed in (0, 1):
        graph = ring(seed)
        samples = count_visits(graph, herded_gibbs(), [2**21], seed=1)
        ratio = samples.errors[-1].cor / CorrelationEstimate.exact(joint_distribution(graph), samples.focus).total
        assert 0.9 < ratio < 1.4
    random = count_visits(ring(0), plain_gibbs(), [2**21], seed=1).errors[-1]
    assert random.cor < samples.errors[-1].cor / 1.5, "Gibbs has none"


def test_bins_have_no_such_estimate():
    """It would leave out that a weight remembers the probabilities it saw: several times too small."""
    graph = ring(1, n=5)
    for sharing, words in (
        (random_bin_sharing(3), "random bins"),
        (bin_sharing(3), "one probability per herding weight"),
    ):
        with pytest.raises(ValueError, match=words):
            CorrelationEstimate.exact(joint_distribution(graph), focus_variable(graph, sharing))
    with pytest.raises(ValueError, match="one probability per herding weight"):
        _ = count_visits(graph, plain_gibbs(), [100], seed=1, sharing=bin_sharing(3)).correlation


# ---- the bounds 2cB/T and 2/B, and the rule for B ----


@pytest.mark.parametrize("c", [0.0, 1.0, 4.0])
def test_herding_keeps_its_bound(c):
    lengths = [2**k for k in range(4, 15)]
    plan = bounded_error_gibbs(error_bound=c) if c else herded_gibbs()
    samples = count_visits(ring(0), plan, lengths, seed=1)
    found = np.array([errors.herding for errors in samples.errors])
    bound = herding_bound(lengths, samples.focus.n_weights, c, width=0)
    assert (found <= bound + 1e-12).all()
    assert c == 4.0 or (found > bound / 100).all()
    assert (bound < herding_bound(lengths, samples.focus.n_weights, c)).all()
    with pytest.raises(ValueError, match="`width` must be a finite number from 0 to 1"):
        herding_bound(10, 2, width=1.5)


def test_the_rule_minimises_the_sum_of_the_bounds():
    for n, c, ratio in ((100, 0.0, 1.0), (2**14, 2.0, 0.5)):
        best = best_bins(n, c, ratio)
        sums = [
            float(herding_bound(n, 1, c, width=0)) * b + ratio * approx_bound(1) / b
            for b in (best * 0.9, best, best * 1.1)
        ]
        assert sums[1] < min(sums[0], sums[2])
    assert choose_bins(1) == 1
    assert choose_bins(2**14) == 128
    assert choose_bins(2**14, error_bound=3.0) == 64
    assert choose_bins(2**40, most=1000) == 1000


@pytest.mark.parametrize(
    ("arguments", "name"), [((0,), "n_sweeps"), ((10, -1.0), "error_bound"), ((10, 0, float("nan")), "ratio")]
)
def test_a_rule_of_nothing_is_told(arguments, name):
    with pytest.raises(ValueError, match=name):
        choose_bins(*arguments)


def test_impossible_states_are_no_trouble():
    graph = FactorGraph([2, 2, 2], [TableFactors([[0, 1], [1, 2]], [[[0.0, 1.0], [0.5, -np.inf]]])])
    kernel = gibbs_kernel(graph)
    possible = joint_distribution(graph).ravel() > 0
    assert np.allclose(kernel[possible][:, ~possible], 0)
    assert dobrushin_coefficient(kernel[np.ix_(possible, possible)]) < 1
