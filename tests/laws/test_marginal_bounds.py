"""Bounds of marginals and of the errors of sum-product hold, by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import Oracle
from sound_blocks import far_apart, random_chains

from herdner import FactorGraph, TableFactors, boltzmann_machine, chain_graph, ising, potts
from herdner.dobrushin import marginal_bounds
from herdner.inference.backends.sum_product import SumProduct

PARTS = 4
ROUNDING = 1e-12  # of the oracle's sums


def truth(graph: FactorGraph) -> np.ndarray:
    """Return the marginals [V, K], 0 for states that a variable does not have."""
    oracle, sizes = Oracle.of_graph(graph), graph.domains.sizes
    found = np.zeros((len(sizes), int(sizes.max())))
    for v, size in enumerate(sizes):
        found[v, :size] = oracle.marginal(v)[:size]
    return found


def violations(graph: FactorGraph) -> list[str]:
    """Return marginals outside their bounds, and beliefs, converged or not, with larger errors than their bounds."""
    exact, bounds, found = truth(graph), marginal_bounds(graph), []
    if not ((bounds.lower <= exact + ROUNDING) & (exact <= bounds.upper + ROUNDING)).all():
        found.append(f"{exact} is not within {bounds.lower} and {bounds.upper}")
    for n_sweeps in (1, 100):
        result = SumProduct(n_sweeps=n_sweeps, error_bounds=True).infer(graph)
        errors = np.abs(result.marginals - exact).sum(axis=1) / 2
        if not (errors <= result.error_bounds + ROUNDING).all():
            found.append(f"after {n_sweeps} sweeps {errors} is above {result.error_bounds}")
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_no_bound_is_below_the_true_error(part: int) -> None:
    assert [what for seed in range(part, 60, PARTS) for what in violations(random_chains(seed))] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_bound_is_below_the_true_error_of_a_thousand_graphs(part: int) -> None:
    assert [what for seed in range(1000 + part, 2000, PARTS) for what in violations(random_chains(seed))] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_no_bound_is_below_the_true_error_where_log_potentials_are_far_apart(part: int) -> None:
    assert [what for seed in range(part, 60, PARTS) for what in violations(far_apart(seed))] == []


def test_a_label_beyond_doubles_may_be_the_one() -> None:
    """The link outweighs the first variable by e^800, which exceeds the range of doubles, as e^-800 does."""
    link = np.array([[[0.0, 0.0], [0.0, 1600.0]]])
    graph = FactorGraph([2] * 3, [TableFactors([[0]], [[0.0, -800.0]]), TableFactors([[0, 2]], link)])
    assert violations(graph) == []


def test_a_labelling_among_very_many_is_possible() -> None:
    """A constant labelling is one among 2^1500 others, and the most probable here."""
    n, table = 1500, np.zeros((3, 3))
    table[0, 1:] = table[1:, 0] = -np.inf
    unary = np.zeros((n + 2, 3))
    unary[:n, 0] = 1.0
    sentences = chain_graph(unary, table, [0, n, n + 1, n + 2])
    link = np.zeros((3, 3))
    link[0, 0] = 2.0
    graph = FactorGraph(sentences.domains, [*sentences.factors, TableFactors([[3, n + 1]], link[None])])
    truth = np.exp([2.0, 0.0, 0.0]) / np.exp([2.0, 0.0, 0.0]).sum()
    bounds = marginal_bounds(graph)
    assert (bounds.lower[n + 1] <= truth).all()
    assert (truth <= bounds.upper[n + 1]).all()


@pytest.mark.parametrize("seed", range(6))
def test_grids_and_full_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    couplings = np.triu(rng.normal(0, rng.choice([0.1, 0.4, 1.0]), (7, 7)), 1)
    for graph in (
        ising(float(rng.normal(0, 0.5)), rng.normal(size=(3, 3))),
        boltzmann_machine(couplings + couplings.T, rng.normal(size=7), (-1, 1)),
        potts(0.4, rng.normal(size=(2, 3, 3))),
    ):
        assert violations(graph) == []


def test_bounds_are_narrow_where_links_are_weak_and_none_where_there_are_no_links() -> None:
    rng = np.random.default_rng(3)
    table = np.zeros((3, 3))
    table[0, 2] = -np.inf
    sentences = chain_graph(rng.normal(size=(9, 3)) + np.array([2.0, 0.0, 0.0]), table, [0, 4, 6, 9])
    assert marginal_bounds(sentences).errors(truth(sentences)).max() < 1e-8
    result = SumProduct(error_bounds=True).infer(sentences)
    assert result.error_bounds.max() < 1e-8
    for strength, most in ((0.1, 0.01), (0.5, 0.2)):
        links = TableFactors([[1, 4], [4, 7], [3, 8], [1, 7]], strength * np.eye(3)[None])
        graph = FactorGraph(sentences.domains, [*sentences.factors, links])
        assert SumProduct(error_bounds=True).infer(graph).error_bounds.max() < most


def test_they_are_given_where_asked_for_alone() -> None:
    graph = ising(0.2, np.zeros((2, 3)))
    plain, bounded = SumProduct().infer(graph), SumProduct(error_bounds=True).infer(graph)
    assert plain.error_bounds is None
    assert bounded.error_bounds.shape == (6,)
    np.testing.assert_array_equal(plain.marginals, bounded.marginals)
    wide = FactorGraph([2] * 3, [TableFactors([[0, 1, 2]], np.zeros((1, 2, 2, 2)))])
    with pytest.raises(ValueError, match="factors of at most two variables"):
        marginal_bounds(wide)
