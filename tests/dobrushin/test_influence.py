"""Influence bounds: the theorems as printed, domination of the exact influence, exactness, norms, odd graphs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from graphs import grouped, random_group
from reference_dobrushin import influence_matrix, joint, theorem_10, theorem_11, theorem_12

from herdner import FactorGraph, TableFactors, boltzmann_machine, ising, potts
from herdner.dobrushin import (
    Influence,
    binary_bound,
    binary_pairwise_bound,
    exact_influence,
    pairwise_bound,
    tightest_influence,
)

ROUNDING = 1e-12


def dense(influence: Influence) -> np.ndarray:
    return influence.to_scipy().toarray()


def random_spins(rng, n=5, strength=1.0) -> tuple[np.ndarray, np.ndarray]:
    theta = np.triu(rng.normal(0, strength, (n, n)) * (rng.random((n, n)) < 0.7), 1)
    return theta + theta.T, rng.normal(0, 1.5, n)


def random_graph(rng, *, most_labels: int, arity: int, forbidden: float) -> FactorGraph:
    """4 variables of 2 to ``most_labels`` labels, 4 factors of up to ``arity`` variables, and one field each."""
    sizes = rng.integers(2, most_labels + 1, 4)
    scopes = [tuple(rng.choice(4, a, replace=False).tolist()) for a in rng.integers(2, arity + 1, 4)]
    scopes += [(int(i),) for i in rng.integers(0, 4, 3)]
    groups = [random_group(rng, sizes, part, forbidden=forbidden, scaled=False) for part in grouped(sizes, scopes)]
    return FactorGraph(sizes, groups)


@pytest.mark.parametrize("strength", [0.01, 0.3, 3.0])
def test_theorem_11_is_as_printed(strength: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        theta, fields = random_spins(rng, strength=strength)
        found = binary_pairwise_bound(boltzmann_machine(theta, fields, (-1, 1)))
        np.testing.assert_allclose(dense(found), theorem_11(theta, fields), rtol=1e-9, atol=1e-14)


def test_states_0_and_1_are_converted() -> None:
    """A coupling w of states 0 and 1 is one of w / 4 of -1 and +1, and the fields shift."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        w, biases = random_spins(rng)
        found = dense(binary_pairwise_bound(boltzmann_machine(w, biases, (0, 1))))
        np.testing.assert_allclose(found, theorem_11(w / 4, biases / 2 + w.sum(axis=1) / 4), rtol=1e-9, atol=1e-14)


def test_theorem_10_is_as_printed() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        table = rng.normal(size=(3, 4))
        graph = FactorGraph([3, 4], [TableFactors([[0, 1]], table[None], scale=[-0.7])])
        want = theorem_10(-0.7 * table)
        np.testing.assert_allclose(dense(pairwise_bound(graph)), [[0, want], [want, 0]], rtol=1e-12)


def test_theorem_12_is_as_printed() -> None:
    rng = np.random.default_rng(4)
    spins = np.array([-1.0, 1.0])
    triple = np.einsum("a,b,c->abc", spins, spins, spins)
    for _ in range(30):
        sets = {s: rng.normal(0, 0.4) for s in [(0, 1, 2), (1, 2, 3), (0, 3), (2, 3), (1, 2)]}
        fields = rng.normal(size=4)
        groups = [
            TableFactors([[0], [1], [2], [3]], spins[None], scale=fields),
            TableFactors([[0, 1, 2], [3, 1, 2]], triple[None], scale=[sets[0, 1, 2], sets[1, 2, 3]]),
            TableFactors([[3, 0], [2, 3], [1, 2]], np.outer(spins, spins)[None],
                         scale=[sets[0, 3], sets[2, 3], sets[1, 2]]),
        ]  # fmt: skip
        found = dense(binary_bound(FactorGraph([2] * 4, groups)))
        np.testing.assert_allclose(found, theorem_12(sets, fields), rtol=1e-9, atol=1e-14)


def test_sets_that_cancel_are_merged() -> None:
    spins = np.outer([-1.0, 1.0], [-1.0, 1.0])
    graph = FactorGraph([2, 2], [TableFactors([[0, 1], [1, 0]], spins[None], scale=[0.5, -0.5])])
    for bound in (pairwise_bound, binary_pairwise_bound, binary_bound, tightest_influence):
        assert not dense(bound(graph)).any()


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("forbidden", [0.0, 0.1, 0.3])
@pytest.mark.parametrize(("most_labels", "arity"), [(2, 2), (2, 3), (3, 3), (4, 2)])
def test_bounds_dominate_exact_influence(most_labels: int, arity: int, forbidden: float, n: int) -> None:
    rng = np.random.default_rng([most_labels, arity, int(10 * forbidden)])
    checked = 0
    while checked < n:
        graph = random_graph(rng, most_labels=most_labels, arity=arity, forbidden=forbidden)
        p = joint(graph)
        if np.isnan(p).any():
            continue
        checked += 1
        bounds = {"10": pairwise_bound(graph), "exact": exact_influence(graph), "least": tightest_influence(graph)}
        if most_labels == 2:
            bounds["12"], bounds["12 sharp"] = binary_bound(graph), binary_bound(graph, as_printed=False)
            if arity == 2:
                bounds["11"] = binary_pairwise_bound(graph)
        truth = influence_matrix(p)
        for name, bound in bounds.items():
            found = dense(bound)
            assert (found <= 1).all()
            assert (found >= truth - ROUNDING).all(), name
            assert (found >= dense(bounds["exact"]) - ROUNDING).all(), name
            assert (dense(bounds["least"]) <= found + ROUNDING).all() or name == "exact"
        if not forbidden:
            np.testing.assert_allclose(dense(bounds["exact"]), truth, atol=1e-12)


def test_theorem_11_is_exact_where_b_is_not_1() -> None:
    rng = np.random.default_rng(5)
    exact = 0
    for _ in range(100):
        theta, fields = random_spins(rng, strength=0.3)
        fields *= 2
        graph = boltzmann_machine(theta, fields, (-1, 1))
        truth, found = influence_matrix(joint(graph)), dense(binary_pairwise_bound(graph))
        for i, j in itertools.permutations(range(5), 2):
            if abs(fields[i]) > np.abs(theta[i]).sum() - abs(theta[i, j]) and theta[i, j]:
                exact += 1
                assert found[i, j] == pytest.approx(truth[i, j], rel=1e-9)
    assert exact > 200


def test_tightest_enumerates_small_blankets_alone() -> None:
    rng = np.random.default_rng(6)
    theta, fields = random_spins(rng, n=6)
    graph = boltzmann_machine(theta, fields, (-1, 1))
    degrees = (theta != 0).sum(axis=1)
    found, exact, bound = (
        dense(c) for c in (tightest_influence(graph, 2**3), exact_influence(graph), tightest_influence(graph))
    )
    small = degrees <= 3
    assert small.any()
    assert not small.all()
    np.testing.assert_array_equal(found[~small], bound[~small])
    np.testing.assert_allclose(found[small], np.minimum(exact, bound)[small])
    with pytest.raises(ValueError, match="increase `max_states`, or use a bound such as pairwise_bound"):
        exact_influence(graph, 2**3)


def test_a_hidden_constraint_counts_as_full_influence() -> None:
    """Labels that forbid each other by way of a third variable: no change of one variable is possible, yet two chains
    may differ in both. The exact matrix must not call that no influence.
    """
    equal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    graph = FactorGraph([2, 2, 2], [TableFactors([[0, 1], [1, 2]], equal[None])])
    np.testing.assert_array_equal(dense(exact_influence(graph)), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(dense(tightest_influence(graph)), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_several_factors_of_a_pair_are_one() -> None:
    rng = np.random.default_rng(7)
    a, b, c = rng.normal(size=(3, 3, 3))
    parts = [TableFactors([[0, 1], [1, 0]], np.stack([a, b])), TableFactors([[0, 1]], c[None], scale=[-2.0])]
    whole = FactorGraph([3, 3], [TableFactors([[0, 1]], (a + b.T - 2 * c)[None])])
    np.testing.assert_allclose(dense(pairwise_bound(FactorGraph([3, 3], parts))), dense(pairwise_bound(whole)))


def test_potts_grid_and_odd_graphs() -> None:
    grid = pairwise_bound(potts(0.48, np.zeros((3, 4, 5))))
    assert set(np.round(grid.values, 12)) == {round(float(np.tanh(0.24)), 12)}
    assert len(grid.values) == 2 * (2 * 4 + 3 * 3)
    for sizes, factors in (([], []), ([1], []), ([2, 3], []), ([1, 2], [TableFactors([[0, 1]], np.zeros((1, 1, 2)))])):
        graph = FactorGraph(np.array(sizes, np.int32), factors)
        for bound in (pairwise_bound, exact_influence, tightest_influence):
            assert not dense(bound(graph)).any()
            assert bound(graph).total.smallest == 0.0


def test_extreme_numbers_stay_bounds() -> None:
    fields = TableFactors([[0], [1]], [[-np.inf, 0.0], [1e6, -1e6]])
    for coupling in (1.0, 50.0, 500.0, 1e300):
        pair = TableFactors([[0, 1]], coupling * np.array([[[1.0, -1.0], [-1.0, 1.0]]]))
        for bound in (binary_pairwise_bound, binary_bound, pairwise_bound, tightest_influence):
            found = dense(bound(FactorGraph([2, 2], [fields, pair])))
            assert ((found >= 0) & (found <= 1)).all()
        found = dense(binary_pairwise_bound(FactorGraph([2, 2], [fields, pair])))
        assert found[0, 1] == 0.0 or coupling > 50.0  # one label is left to variable 0


def test_norms_and_the_statement() -> None:
    rng = np.random.default_rng(8)
    matrix = rng.random((20, 20)) * (rng.random((20, 20)) < 0.2)
    np.fill_diagonal(matrix, 0)
    total = Influence.of_matrix(matrix).total
    assert total.one == pytest.approx(matrix.sum(axis=0).max())
    assert total.infinity == pytest.approx(matrix.sum(axis=1).max())
    spectral = np.linalg.norm(matrix, 2)
    assert spectral * (1 - 1e-12) <= total.spectral <= spectral * 1.001
    assert "not below 1" in str(total)
    assert "is below 1" in str(Influence.of_matrix(matrix).scale(0.5 / total.one).total)


@pytest.mark.parametrize(
    ("starts", "sources", "values", "words"),
    [
        ([0, 1, 2], [1, 2], [0.5, 0.5], "`sources` of an influence matrix must be variables 0 to 1"),
        ([0, 1, 2], [1, -1], [0.5, 0.5], "`sources` of an influence matrix must be variables 0 to"),
        ([0, 3, 2], [1, 0], [0.5, 0.5], "must rise from 0 to the number of entries, 2"),
        ([0, 1, 9], [1, 0], [0.5, 0.5], "must rise from 0"),
        ([], [], [], "must rise from 0"),
        ([0, 1, 2], [1, 0], [0.5], "must be one-dimensional and of equal length"),
        ([0, 1, 2], [[1, 0]], [0.5], "must be one-dimensional and of equal length"),
        ([0, 1, 2], [1, 0], [0.5, np.nan], "must be finite and at least 0"),
    ],
)
def test_entries_made_by_hand_are_checked(starts, sources, values, words) -> None:
    with pytest.raises(ValueError, match=words):
        Influence(np.array(starts, np.int64), np.array(sources, np.int32), np.array(values), "given")


def test_a_matrix_of_ones_own() -> None:
    matrix = np.array([[0, 0.3, 0], [0, 0, 0], [0.1, 0, 0]])
    found = Influence.of_matrix(matrix)
    np.testing.assert_array_equal(dense(found), matrix)
    assert found.sources.tolist() == [1, 2, 0, 0]  # the mirror images are there too
    for wrong, words in (
        (np.zeros((2, 3)), "must be square"),
        (np.eye(2), "diagonal .* must be zero"),
        ([[0, -1], [0, 0]], "at least 0"),
        ([[0, np.nan], [0, 0]], "at least 0"),
    ):
        with pytest.raises(ValueError, match=words):
            Influence.of_matrix(wrong)
    with pytest.raises(ValueError, match="`factor` must be finite and at least 0"):
        found.scale(-1)


def test_the_wrong_graph_is_told() -> None:
    with pytest.raises(ValueError, match=r"variable 0 has 3 states; use pairwise_bound"):
        binary_pairwise_bound(potts(1.0, np.zeros((2, 2, 3))))
    triple = FactorGraph([2, 2, 2], [TableFactors([[0, 1, 2]], np.zeros((1, 2, 2, 2)))])
    with pytest.raises(ValueError, match="use binary_bound"):
        binary_pairwise_bound(triple)
    assert ising(0.1, 0.2, (2, 2)).n_variables == 4
