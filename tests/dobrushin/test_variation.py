"""Dobrushin variation: Definition 7 itself, and that no sampler is ever further from its target."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from graphs import grouped, random_group
from reference_dobrushin import definition_7, joint, law_after, marginal_distance, weighted_distance

from herdner import FactorGraph, TableFactors, compile_tables, ising, make_backend
from herdner.dobrushin import (
    Influence,
    ScanSteps,
    coupling_bounds,
    dense_importance,
    dobrushin_variation,
    exact_influence,
    marginal_bound,
    optimise_scan,
    tightest_influence,
    unit_importance,
    variation_curve,
    weighted_bound,
)
from herdner.graph.scan import checkerboard_scan, fixed_scan, jacobi_scan, random_scan, systematic_scan
from herdner.inference.backends.dogs import allowed_influence


def random_matrix(rng, n: int, size: float = 0.5) -> np.ndarray:
    matrix = rng.random((n, n)) * size * (rng.random((n, n)) < 0.5)
    np.fill_diagonal(matrix, 0)
    return matrix


def random_graph(rng, n: int = 3, *, forbidden: float = 0.0, most_labels: int = 3) -> FactorGraph:
    sizes = rng.integers(2, most_labels + 1, n)
    scopes = list(itertools.combinations(range(n), 2)) + [(int(i),) for i in range(n)]
    groups = [random_group(rng, sizes, part, forbidden=forbidden, scaled=False) for part in grouped(sizes, scopes)]
    weak = 0.3 * (1 - rng.random())
    groups = [
        type(g)(g.scopes, np.where(np.isfinite(g.tables), g.tables * weak, g.tables), g.table_of_factor) for g in groups
    ]
    return FactorGraph(sizes, groups)


def starts(p: np.ndarray) -> np.ndarray:
    """Every possible first state, [states, K1, ..]."""
    return np.eye(p.size)[p.ravel() > 0].reshape(-1, *p.shape)


@pytest.mark.parametrize("seed", range(10))
def test_every_scan_is_definition_7(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_steps = 6, 17
    matrix = random_matrix(rng, n)
    influence, d = Influence.of_matrix(matrix), rng.random(n)
    order = rng.integers(0, n, n_steps)
    q = rng.dirichlet(np.ones(n), n_steps)
    cases = {
        "order": (order, np.eye(n)[order]),
        "given": (fixed_scan(order[:5]), np.eye(n)[np.resize(order[:5], n_steps)]),
        "systematic": (systematic_scan(), np.eye(n)[np.arange(n_steps) % n]),
        "random": (random_scan(), np.full((n_steps, n), 1 / n)),
        "one distribution": (q[0], np.tile(q[0], (n_steps, 1))),
        "distributions": (q, q),
    }
    for name, (scan, distributions) in cases.items():
        curve = variation_curve(influence, scan, d, n_steps)
        want = [definition_7(matrix, distributions[:t], d) for t in range(n_steps + 1)]
        np.testing.assert_allclose(curve, want, rtol=1e-12, err_msg=name)
        assert dobrushin_variation(influence, scan, d, n_steps) == pytest.approx(want[-1], rel=1e-12)


def test_a_random_scan_is_the_average_of_its_orders() -> None:
    rng = np.random.default_rng(1)
    influence, q = Influence.of_matrix(random_matrix(rng, 4)), rng.dirichlet(np.ones(4), 5)
    d = rng.random(4)
    mean = sum(
        np.prod(q[range(5), order]) * dobrushin_variation(influence, np.array(order), d)
        for order in itertools.product(range(4), repeat=5)
    )
    assert dobrushin_variation(influence, q, d) == pytest.approx(mean, rel=1e-10)
    drawn = [dobrushin_variation(influence, rng.integers(0, 4, 12), d) for _ in range(4000)]
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert abs(np.mean(drawn) - dobrushin_variation(influence, random_scan(), d, 12)) < 4 * error


@pytest.mark.slow
@pytest.mark.parametrize("forbidden", [0.0, 0.15])
def test_no_sampler_is_further_than_the_variation(forbidden: float) -> None:
    """Test the bound of each marginal after each step of a scan from every start, by the exact law of the chain."""
    rng = np.random.default_rng(int(100 * forbidden))
    for _ in range(25):
        graph = random_graph(rng, forbidden=forbidden)
        p = joint(graph)
        if np.isnan(p).any():
            continue
        for influence in (tightest_influence(graph), exact_influence(graph)):
            n_steps, order = 9, rng.integers(0, 3, 9)
            fixed, drawn = starts(p), starts(p)
            q = rng.dirichlet(np.ones(3), n_steps)
            for t in range(n_steps):
                fixed = law_after(p, fixed, order[t])
                drawn = sum(q[t, i] * law_after(p, drawn, i) for i in range(3))
                for variables in ((0,), (1, 2), (0, 1, 2)):
                    for scan, law in ((order, fixed), (q, drawn)):
                        bound = marginal_bound(influence, scan[: t + 1], variables)
                        variation = dobrushin_variation(influence, scan[: t + 1], unit_importance(3, variables))
                        assert marginal_distance(law, p, variables) <= bound + 1e-12
                        assert bound <= variation + 1e-12


@pytest.mark.parametrize("exact_states", [0, 64])
@pytest.mark.parametrize("arity", [2, 3])
def test_targets_far_from_hard_constraints_have_a_certificate(arity: int, exact_states: int) -> None:
    """A weak chain whose first variables must not all be in state 1: the scan of `dogs` for the last variable."""
    forbidden = np.zeros((1, *[2] * arity))
    forbidden[(0,) + (1,) * arity] = -np.inf
    chain = ising(0.15, np.linspace(-0.3, 0.3, 7)[None])
    graph = FactorGraph(chain.domains, [*chain.factors, TableFactors([range(arity)], forbidden)])
    compiled = compile_tables(graph)
    backend = make_backend("dogs", targets="variables(6)", steps_per_target=10, n_sweeps=1, exact_states=exact_states)
    certificate = backend.infer(compiled, 0).certificate
    assert not certificate.vacuous
    assert certificate.bound < 0.01
    influence = allowed_influence(compiled, exact_states)
    order = optimise_scan(influence, systematic_scan(), unit_importance(7, (6,)), 10).order
    p = joint(graph)
    law = starts(p)
    for t, i in enumerate(order):
        law = law_after(p, law, i)
        bound = dobrushin_variation(influence, order[: t + 1], unit_importance(7, (6,)))
        assert marginal_distance(law, p, (6,)) <= bound + 1e-12


def test_weighted_distance_is_bounded() -> None:
    rng = np.random.default_rng(3)
    for _ in range(6):
        graph = random_graph(rng, most_labels=2)
        p, influence, d = joint(graph), tightest_influence(graph), rng.random(3)
        order = rng.integers(0, 3, 4)
        for start in starts(p)[::3]:
            law = start[None]
            for t, i in enumerate(order):
                law = law_after(p, law, i)
                distance = weighted_distance(law[0], p, d)
                assert distance <= weighted_bound(influence, order[: t + 1], d) + 1e-9
                assert distance <= dobrushin_variation(influence, order[: t + 1], d) + 1e-9


def test_the_bound_holds_for_some_chain_nearly_with_equality() -> None:
    """Two spins: after a sweep the bound is C_01 C_10; a chain that starts far off is within a factor of it."""
    graph = ising(0.2, 0.0, (1, 2))
    p = joint(graph)
    law = law_after(p, law_after(p, starts(p), 0), 1)
    truth, bound = marginal_distance(law, p, (1,)), marginal_bound(tightest_influence(graph), [0, 1], [1])
    assert bound == pytest.approx(np.tanh(0.2) ** 1 * np.tanh(0.2))
    assert truth == pytest.approx(bound / 2)  # X starts at one state, Y is at either with 1/2


def test_small_variations_keep_their_digits() -> None:
    """After 300 sweeps the variation is 1e-120: what is carried along by differences must not lose it."""
    graph = ising(0.2, 0.0, (6, 6))
    influence, n_steps = tightest_influence(graph), 36 * 300
    curve = variation_curve(influence, systematic_scan(), None, n_steps)
    assert curve[-1] < 1e-60
    for t in (36 * 100, 36 * 200, n_steps):
        assert curve[t] == pytest.approx(dobrushin_variation(influence, systematic_scan(), None, t), rel=1e-9)


def test_checkerboard_and_jacobi() -> None:
    influence = tightest_influence(ising(0.2, 0.0, (2, 3)))
    assert ScanSteps.of(checkerboard_scan(), influence).order.tolist() == [0, 2, 4, 1, 3, 5]
    with pytest.raises(ValueError, match="use checkerboard"):
        ScanSteps.of(jacobi_scan(), influence)


def test_targets_are_variables_or_runs_of_them() -> None:
    assert unit_importance(9, [3, slice(5, 7)]) == {3: 1.0, 5: 1.0, 6: 1.0}
    np.testing.assert_array_equal(dense_importance(4, {2: 0.5, 0: 1.0}), [1.0, 0, 0.5, 0])
    np.testing.assert_array_equal(dense_importance(2), [1.0, 1.0])
    np.testing.assert_array_equal(coupling_bounds(Influence.of_matrix(np.zeros((2, 2))), [1]), [1.0, 0.0])


def test_nonsense_is_told() -> None:
    influence = tightest_influence(ising(0.2, 0.0, (2, 3)))
    for wrong, words in (
        ([0, 6], "names variable 6: the graph's variables are 0 to 5"),
        (np.full(5, 0.2), r"distributions of shape \[6\]"),
        (np.full(6, 0.2), "non-negative and sum to 1"),
        (np.array([2.0, -1.0, 0, 0, 0, 0]), "non-negative and sum to 1"),
        ([[0, 1]], "a list of variables"),
    ):
        with pytest.raises(ValueError, match=words):
            dobrushin_variation(influence, wrong)
    with pytest.raises(ValueError, match="at least 0, not -1"):
        dobrushin_variation(influence, systematic_scan(), None, -1)
    for importance, words in (
        ([1.0], "must have shape"),
        (np.full(6, np.nan), "at least 0"),
        ({6: 1.0}, "no variable 6"),
    ):
        with pytest.raises(ValueError, match=words):
            dobrushin_variation(influence, systematic_scan(), importance)
    with pytest.raises(ValueError, match="no variable -1"):
        unit_importance(6, [-1])
    with pytest.raises(ValueError, match="empty scan"):
        dobrushin_variation(influence, np.empty(0, int), None, 3)
