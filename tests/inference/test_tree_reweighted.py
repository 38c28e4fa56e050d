"""Tree-reweighted belief propagation: the bound holds for all messages, and is exact on trees."""

from __future__ import annotations

import numpy as np
import pytest

from herdner.graph import FactorGraph, TableFactors, complete_graph, ising
from herdner.graph.tables import compile_tables
from herdner.inference import Interrupted, make_backend
from herdner.inference.elimination_order import reduce_tables
from herdner.inference.factor_messages import FactorLayout, MessagePassing
from herdner.inference.spanning_forests import ForestDistribution, SpanningForest

Factors = list[tuple[tuple[int, ...], np.ndarray]]


def enumerated_log_z(sizes: list[int], factors: Factors) -> float:
    joint = np.zeros(sizes)
    for scope, table in factors:
        order = np.argsort(scope)
        joint = joint + table.transpose(order).reshape([sizes[v] if v in scope else 1 for v in range(len(sizes))])
    return float(np.logaddexp.reduce(joint.ravel()))


def small_graph(seed: int, largest_arity: int) -> tuple[list[int], Factors]:
    """Factors of five variables with one to five states; strong and weak tables, some with entries of -inf."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, size=5)
    allowed = rng.integers(0, sizes)
    strength, forbidden = [0.5, 2.0, 10.0][seed % 3], [0.0, 0.0, 0.3][seed // 3 % 3]
    factors: Factors = []
    for _ in range(7):
        scope = rng.choice(5, size=int(rng.integers(1, largest_arity + 1)), replace=False)
        table = strength * rng.normal(size=sizes[scope])
        table[rng.random(table.shape) < forbidden] = -np.inf
        table[tuple(allowed[scope])] = 0.0
        factors.append((tuple(scope.tolist()), table))
    return sizes.tolist(), factors


def graph_of(sizes: list[int], factors: Factors) -> FactorGraph:
    return FactorGraph(sizes, [TableFactors([scope], table[None]) for scope, table in factors])


@pytest.mark.parametrize("largest_arity", [2, 4])
@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 15))])
def test_the_bound_holds_on_small_graphs(block, largest_arity):
    """All 15 blocks are 3,000 graphs, each with messages after one sweep and at the end."""
    for seed in range(100 * block, 100 * block + 100):
        sizes, factors = small_graph(seed, largest_arity)
        log_z = enumerated_log_z(sizes, factors)
        for n_sweeps in (1, 200):
            result = make_backend("tree-reweighted", n_sweeps=n_sweeps, n_forests=seed % 3).infer(
                graph_of(sizes, factors)
            )
            assert result.log_z_bounds is not None
            low, high = result.log_z_bounds
            assert low <= log_z <= high
            assert low == pytest.approx(result.log_potential, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_exact_on_trees(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, size=7).tolist()
    factors: Factors = [((v,), rng.normal(size=sizes[v])) for v in range(7)]
    factors += [((int(rng.integers(v)), v), np.empty(0)) for v in range(1, 7)]
    factors = [(scope, 2 * rng.normal(size=[sizes[v] for v in scope])) for scope, _ in factors]
    result = make_backend("tree-reweighted").infer(graph_of(sizes, factors))
    assert result.log_z_bounds[1] == pytest.approx(enumerated_log_z(sizes, factors), abs=1e-8)
    assert result.log_z == pytest.approx(enumerated_log_z(sizes, factors), abs=1e-8)
    assert make_backend("tree-reweighted").infer(ising(0.3, np.zeros((2, 2)))).log_z is None


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_equals_the_free_energy_at_a_fixed_point(seed):
    """The mean over forests equals the tree-reweighted free energy of the beliefs (eq. 24 of the paper)."""
    sizes, factors = small_graph(3 * seed, 3)
    compiled = compile_tables(graph_of(sizes, factors))
    reduced = reduce_tables(compiled)
    forests = ForestDistribution.cover_factors(reduced.scopes, len(reduced.sizes))
    weights = forests.appearance_probabilities()
    run = MessagePassing(FactorLayout.of(reduced, weights), 5000, 1e-12, 0.5)
    run.run()
    assert run.converged
    energy = reduced.constant + run.loop.log_z()
    result = make_backend("tree-reweighted", n_sweeps=5000, tolerance=1e-12, n_forests=0).infer(
        graph_of(sizes, factors)
    )
    assert result.log_z_bounds[1] == pytest.approx(energy, abs=1e-8)


def test_more_forests_and_more_sweeps_lower_the_bound():
    grid = ising(0.4, np.random.default_rng(1).normal(size=(8, 8)))
    log_z = make_backend("exact").infer(grid).log_z
    bounds = [
        make_backend("tree-reweighted", n_sweeps=n_sweeps, n_forests=n_forests).infer(grid).log_z_bounds[1]
        for n_sweeps, n_forests in ((1, 0), (200, 0), (200, 5), (200, 30))
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert log_z <= bounds[-1] < log_z + 3


def test_runs_that_have_not_converged_say_so():
    couplings = np.triu(3 * np.random.default_rng(5).normal(size=(8, 8)), 1)
    graph = complete_graph(couplings + couplings.T, np.zeros(8) + 0.1)
    log_z = make_backend("exact").infer(graph).log_z
    result = make_backend("tree-reweighted", n_sweeps=3, n_forests=1).infer(graph)
    assert result.converged is False
    assert result.log_z_bounds[0] <= log_z <= result.log_z_bounds[1]


def test_an_interrupted_run_has_a_bound(monkeypatch):
    grid = ising(0.4, np.random.default_rng(1).normal(size=(5, 5)))
    monkeypatch.setattr(MessagePassing, "_check_states", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(Interrupted) as caught:
        make_backend("tree-reweighted").infer(grid)
    result = caught.value.result
    assert result.log_z_bounds is not None
    low, high = result.log_z_bounds
    assert low <= make_backend("exact").infer(grid).log_z <= high
    assert result.converged is False


@pytest.mark.parametrize("seed", range(10))
def test_forests_have_no_cycle_and_contain_every_factor(seed):
    rng = np.random.default_rng(seed)
    scopes = [tuple(rng.choice(8, int(rng.integers(1, 4)), replace=False).tolist()) for _ in range(12)]
    forests = ForestDistribution.cover_factors(scopes, 8)
    for forest in forests.forests:
        assert is_forest([scopes[f] for f in forest.factors])
        for other in set(range(len(scopes))) - set(forest.factors.tolist()):
            assert not is_forest([scopes[f] for f in (*forest.factors, other)])
        starts = np.concatenate([[0], np.cumsum([len(scope) for scope in scopes])])
        assert sorted(np.searchsorted(starts, forest.receivers, side="right") - 1) == sorted(forest.factors)
    probabilities = forests.appearance_probabilities()
    assert (probabilities > 0).all()
    assert (probabilities <= 1).all()


def is_forest(scopes: list[tuple[int, ...]]) -> bool:
    """Return True if the bipartite graph of factors and variables has no cycle: edges = nodes - components."""
    component = {v: {v} for scope in scopes for v in scope}
    for scope in scopes:
        joined = set().union(*(component[v] for v in scope))
        for v in joined:
            component[v] = joined
    n_components = len({id(members) for members in component.values()})
    n_edges = sum(len(scope) for scope in scopes)
    return n_edges == len(component) + len(scopes) - n_components


def test_the_heaviest_forest_is_a_largest_spanning_tree():
    scopes = [(0, 1), (1, 2), (0, 2), (2, 3)]
    forests = ForestDistribution.cover_factors(scopes, 4)
    assert forests.heaviest(np.array([3.0, 1.0, 2.0, 0.5])).factors.tolist() == [0, 2, 3]
    assert SpanningForest.of(scopes, 4, [1, 2, 0, 3]).factors.tolist() == [1, 2, 3]


@pytest.mark.parametrize("option", [{"n_forests": -1}, {"seconds": 0}, {"damping": 0}, {"n_sweeps": 0}])
def test_options_out_of_range_are_refused(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        make_backend("tree-reweighted", **option)


@pytest.mark.parametrize("scope", [[], [0, 0], [1, 2, 1], [-1], [3]])
def test_scopes_that_no_forest_can_contain_are_refused(scope):
    with pytest.raises(ValueError, match="scope 1 must consist of distinct variables from 0 to 2, got"):
        ForestDistribution.cover_factors([[0, 1], scope], 3)
