"""Possible states by a solver for satisfiability."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from herdner.graph import FactorGraph, TableFactors
from herdner.graph.tables import compile_tables
from herdner.inference import ImpossibleGraph, UnsupportedGraph, make_backend
from herdner.inference.elimination_order import reduce_tables
from herdner.inference.gibbs.start import random_start
from herdner.inference.satisfiability import find_contradiction, find_possible_state


def constrained_graph(seed: int) -> FactorGraph:
    """Factors of one to four of nine variables, most of whose entries are -inf; few joint states are possible."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=9)
    groups = []
    for _ in range(10):
        scope = rng.choice(9, size=int(rng.integers(2, 5)), replace=False)
        table = np.where(rng.random([1, *sizes[scope]]) < 0.6, -np.inf, 0.0)
        groups.append(TableFactors([scope], table))
    return FactorGraph(sizes, groups)


@pytest.mark.parametrize("seed", range(40))
def test_the_solver_decides_what_enumeration_decides(seed):
    pytest.importorskip("pysat", reason="needs the extra sat")
    graph = constrained_graph(seed)
    states = np.array(list(itertools.product(*map(range, graph.domains.sizes))))
    is_possible = np.isfinite(graph.log_potential(states)).any()
    compiled = compile_tables(graph)
    try:
        reduced = reduce_tables(compiled)
        found = find_possible_state(reduced)
    except ImpossibleGraph:
        assert not is_possible
        return
    assert is_possible
    assert graph.log_potential(reduced.original_states(found[None])[0]) == 0.0


def latin_square(n: int) -> FactorGraph:
    """Variables of an n x n square with n states; equal states in a row or a column are forbidden."""
    cells = list(itertools.product(range(n), range(n)))
    pairs = [
        (a, b)
        for a, b in itertools.combinations(range(n * n), 2)
        if cells[a][0] == cells[b][0] or cells[a][1] == cells[b][1]
    ]
    return FactorGraph([n] * (n * n), [TableFactors(pairs, np.where(np.eye(n) > 0, -np.inf, 0.0)[None])])


def test_samplers_start_where_repair_fails():
    pytest.importorskip("pysat", reason="needs the extra sat")
    graph = latin_square(9)
    start = random_start(compile_tables(graph), 0)
    assert graph.log_potential(start.astype(int)) == 0.0
    result = make_backend("tempered", n_rounds=5, burn_in=5, n_replicas=2, width=1).infer(graph, 0)
    assert result.log_potential == 0.0


@pytest.mark.parametrize("name", ["tempered", "annealed-importance"])
def test_tempering_repairs_a_start_without_the_solver(monkeypatch, name):
    monkeypatch.setattr("herdner.inference.tempering.has_solver", lambda: False)
    short = {"burn_in": 1} if name == "tempered" else {"n_particles": 2, "n_temperatures": 2}
    backend = make_backend(name, n_rounds=1, n_replicas=2, width=1, **short)
    assert backend.infer(latin_square(6), 0).log_potential == 0.0


def test_without_the_solver_the_message_names_it(monkeypatch):
    monkeypatch.setattr("herdner.inference.gibbs.start.has_solver", lambda: False)
    graph = FactorGraph([3] * 4, [TableFactors(list(itertools.combinations(range(4), 2)), no_equal(3)[None])])
    with pytest.raises(UnsupportedGraph, match=r"install a satisfiability solver: pip install '\.\[sat\]'"):
        make_backend("gibbs").infer(graph, 0)


def no_equal(n: int) -> np.ndarray:
    return np.where(np.eye(n) > 0, -np.inf, 0.0)


@pytest.mark.parametrize("seed", range(40))
def test_a_contradiction_is_minimal(seed):
    """The named factors and observations exclude every joint state; without one of them, a state is possible."""
    pytest.importorskip("pysat")
    rng = np.random.default_rng(seed)
    graph = constrained_graph(seed)
    sizes = graph.domains.sizes
    states = np.array(list(itertools.product(*map(range, sizes))), np.int32)
    evidence = {int(v): int(rng.integers(sizes[v])) for v in rng.permutation(9)[: rng.integers(0, 4)]}
    allowed = {tuple(group.scopes[0].tolist()): np.isfinite(group.log_potential(states)) for group in graph.factors}
    if len(allowed) < len(graph.factors):
        return  # two factors have the same variables, which the answer cannot distinguish
    seen = {v: states[:, v] == x for v, x in evidence.items()}
    possible = np.all([*allowed.values(), *seen.values()], axis=0)
    found = find_contradiction(compile_tables(graph), evidence)
    if possible.any():
        assert found is None
        return
    parts = [allowed[scope] for scope in found.scopes] + [seen[v] for v in found.variables]
    assert not np.all(parts, axis=0).any()
    for k in range(len(parts)):
        assert np.all([np.ones(len(states), bool), *parts[:k], *parts[k + 1 :]], axis=0).any()
