"""Compiled message passing: every sweep beside a plain reference, both schedules, extreme tables, maxima."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle import Oracle

from herdner.graph import FactorGraph, TableFactors, complete_graph, ising
from herdner.graph.tables import compile_tables
from herdner.inference import Interrupted, make_backend
from herdner.inference.elimination_order import reduce_tables
from herdner.inference.factor_messages import FactorLayout, MessagePassing

Factors = list[tuple[tuple[int, ...], np.ndarray]]


class Reference:
    """Loopy belief propagation in the log domain, message by message: the definition, without any trick."""

    def __init__(self, sizes: list[int], factors: Factors, damping: float, maximise: bool) -> None:
        self.sizes, self.factors, self.damping = sizes, factors, damping
        self.add = max if maximise else lambda values: float(np.logaddexp.reduce(list(values)))
        self.messages = {(f, v): np.zeros(sizes[v]) for f, (scope, _) in enumerate(factors) for v in scope}

    def sweep(self) -> None:
        fresh = {}
        for (f, v), old in self.messages.items():
            scope, table = self.factors[f]
            axis, terms = scope.index(v), [[] for _ in range(self.sizes[v])]
            for cell in np.ndindex(table.shape):
                value = table[cell]
                for u, state in zip(scope, cell, strict=True):
                    if u != v:
                        value += sum(m[state] for (g, w), m in self.messages.items() if w == u and g != f)
                terms[cell[axis]].append(value)
            new = np.array([self.add(values) for values in terms])
            possible = np.isfinite(new) & np.isfinite(old)
            change = self.damping * np.subtract(new - new.max(), old, out=np.zeros(len(old)), where=possible)
            new = np.where(possible, old + change, -np.inf)
            fresh[f, v] = new - new.max()
        self.messages = fresh

    def marginals(self) -> list[np.ndarray]:
        sums = [np.sum([m for (_, w), m in self.messages.items() if w == v], axis=0) for v in range(len(self.sizes))]
        weights = [np.exp(row - np.max(row)) for row in sums]
        return [row / row.sum() for row in weights]


def random_factors(rng: np.random.Generator, scale: float, forbidden: float) -> tuple[list[int], Factors]:
    """Factors of one to four of six variables with one to five states; a random state is always allowed."""
    sizes = rng.integers(1, 6, size=6)
    allowed = rng.integers(0, sizes)
    factors: Factors = []
    for _ in range(7):
        scope = rng.choice(6, size=int(rng.integers(1, 5)), replace=False)
        table = scale * rng.normal(size=sizes[scope])
        table[rng.random(table.shape) < forbidden] = -np.inf
        table[tuple(allowed[scope])] = 0.0
        factors.append((tuple(scope.tolist()), table))
    return sizes.tolist(), factors


def graph_of(sizes: list[int], factors: Factors) -> FactorGraph:
    return FactorGraph(sizes, [TableFactors([scope], table[None]) for scope, table in factors])


def message_passing(graph: FactorGraph, n_sweeps: int, **options) -> MessagePassing:
    compiled = compile_tables(graph)
    layout = FactorLayout.of(reduce_tables(compiled))
    return MessagePassing(layout, n_sweeps, **{"tolerance": 0.0, "damping": 1.0, **options})


@pytest.mark.parametrize("maximise", [False, True])
@pytest.mark.parametrize(("scale", "forbidden"), [(1.0, 0.0), (2.0, 0.3), (150.0, 0.0), (400.0, 0.3)])
@pytest.mark.parametrize("seed", range(6))
def test_each_sweep_equals_the_reference(seed, scale, forbidden, maximise):
    """The scales of 150 and 400 exceed the range of numbers, so that the loops use logarithms."""
    rng = np.random.default_rng([seed, int(scale)])
    sizes, factors = random_factors(rng, scale, forbidden)
    compiled = compile_tables(graph_of(sizes, factors))
    reduced = reduce_tables(compiled)
    damping = [1.0, 0.5, 0.3][seed % 3]
    run = MessagePassing(FactorLayout.of(reduced), 6, 0.0, damping, maximise=maximise)
    known = list(zip(reduced.scopes, reduced.tables, strict=True))
    reference = Reference(reduced.sizes, known, damping, maximise)
    for _ in range(6):
        run.loop.sweep(0)
        reference.sweep()
        with_factor = {v for scope in reduced.scopes for v in scope}
        expected = [
            row if v in with_factor else np.full(reduced.sizes[v], 1 / reduced.sizes[v])
            for v, row in enumerate(reference.marginals())
        ]
        found = np.split(run.loop.marginals, np.cumsum(run.layout.sizes)[:-1])
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)


def random_tree(rng: np.random.Generator, scale: float, forbidden: float) -> tuple[list[int], Factors]:
    """A factor graph without cycles, of factors of one to four variables with one to five states."""
    sizes = [int(rng.integers(1, 6))]
    factors: Factors = []
    while math.prod(sizes) < 300 and len(factors) < 8:
        scope = [int(rng.integers(len(sizes)))]
        for _ in range(int(rng.integers(0, 4))):
            scope.append(len(sizes))
            sizes.append(int(rng.integers(1, 6)))
        scope = rng.permutation(scope).tolist()
        table = scale * rng.normal(size=[sizes[v] for v in scope])
        table[rng.random(table.shape) < forbidden] = -np.inf
        table[(0,) * table.ndim] = 0.0
        factors.append((tuple(scope), table))
    return sizes, factors


@pytest.mark.parametrize("schedule", ["flooding", "residual"])
@pytest.mark.parametrize(("scale", "forbidden"), [(1.0, 0.0), (2.0, 0.3), (300.0, 0.2)])
@pytest.mark.parametrize("seed", range(12))
def test_trees_equal_enumeration(seed, scale, forbidden, schedule):
    sizes, factors = random_tree(np.random.default_rng(seed), scale, forbidden)
    oracle = Oracle.of(sizes, factors)
    backend = make_backend("belief-propagation", schedule=schedule, damping=1.0, tolerance=1e-13)
    result = backend.infer(graph_of(sizes, factors))
    assert result.converged is True
    assert result.log_z == pytest.approx(oracle.log_z, abs=1e-9, rel=1e-12)
    for v, size in enumerate(sizes):
        np.testing.assert_allclose(result.marginals[v, :size], oracle.marginal(v), atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_maxima_of_trees_equal_enumeration(seed):
    sizes, factors = random_tree(np.random.default_rng(seed), 2.0, 0.2)
    oracle = Oracle.of(sizes, factors)
    compiled = compile_tables(graph_of(sizes, factors))
    reduced = reduce_tables(compiled)
    run = MessagePassing(FactorLayout.of(reduced), 100, 1e-13, 1.0, "residual", maximise=True)
    run.run()
    assert run.converged
    marginals = reduced.original_marginals(run.loop.marginals, compiled.sizes)
    for v, size in enumerate(sizes):
        best = [oracle.log_potentials[oracle.states[:, v] == state].max() for state in range(size)]
        expected = np.exp(np.array(best) - max(best))
        np.testing.assert_allclose(marginals[v, :size], expected / expected.sum(), atol=1e-9)


@pytest.mark.parametrize("schedule", ["flooding", "residual"])
@pytest.mark.parametrize("damping", [1.0, 0.5])
@pytest.mark.parametrize("seed", range(8))
def test_a_report_of_convergence_is_true(seed, damping, schedule):
    """One more sweep of a run that has converged changes nothing; both schedules find the same fixed point."""
    graph = graph_of(*random_factors(np.random.default_rng(seed), 0.7, 0.1))
    run = message_passing(graph, 3000, tolerance=1e-10, damping=damping, schedule=schedule)
    run.run()
    assert run.converged
    before = run.loop.marginals
    run.loop.sweep(0)
    assert run.loop.change <= 1e-10
    np.testing.assert_allclose(run.loop.marginals, before, atol=1e-10)
    other = message_passing(graph, 3000, tolerance=1e-10)
    other.run()
    np.testing.assert_allclose(other.loop.marginals, before, atol=1e-7)


@pytest.mark.parametrize("schedule", ["flooding", "residual"])
def test_oscillating_messages_are_reported(schedule):
    """In a frustrated complete graph the messages do not converge, and the run ends after its sweeps."""
    rng = np.random.default_rng(5)
    couplings = np.triu(3 * rng.normal(size=(12, 12)), 1)
    graph = complete_graph(couplings + couplings.T, rng.normal(size=12))
    run = message_passing(graph, 50, schedule=schedule, tolerance=1e-6)
    run.run()
    assert not run.converged
    assert 50 * 132 <= run.n_messages < 52 * 132
    assert make_backend("belief-propagation", schedule=schedule, n_sweeps=50).infer(graph).converged is False


def test_residuals_need_fewer_messages_than_flooding():
    """On a long chain flooding needs as many sweeps as edges, and residuals a number that does not grow with it."""
    rng = np.random.default_rng(0)
    scopes = [(v, v + 1) for v in range(199)]
    tables = 2 * np.eye(3)[None] + rng.normal(size=(199, 3, 3))
    graph = FactorGraph([3] * 200, [TableFactors(scopes, tables, np.arange(199))])
    counts = {}
    for schedule in ("flooding", "residual"):
        run = message_passing(graph, 1000, tolerance=1e-9, schedule=schedule)
        run.run()
        assert run.converged
        counts[schedule] = run.n_messages
    assert counts["residual"] < counts["flooding"] / 2


@pytest.mark.parametrize("schedule", ["flooding", "residual"])
def test_an_interrupt_keeps_the_result_so_far(monkeypatch, schedule):
    graph = ising(2.0, np.random.default_rng(0).normal(size=(8, 8)) * 0.3)
    monkeypatch.setattr(MessagePassing, "_check_states", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(Interrupted) as caught:
        make_backend("belief-propagation", schedule=schedule).infer(graph)
    result = caught.value.result
    assert result.converged is False
    assert result.log_potential == pytest.approx(float(graph.log_potential(result.state)))
    np.testing.assert_allclose(result.marginals.sum(axis=1), 1.0)


def test_the_time_limit_ends_a_run():
    graph = ising(2.0, np.random.default_rng(0).normal(size=(20, 20)) * 0.3)
    backend = make_backend("belief-propagation", n_sweeps=10**9, tolerance=0.0, damping=0.01, seconds=0.05)
    assert backend.infer(graph).converged is False


def test_wrong_schedules_are_refused():
    with pytest.raises(ValueError, match="schedule"):
        make_backend("belief-propagation", schedule="random")
