"""Barren variables do not change log Z, and samples contain them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from herdner.graph import FactorGraph, TableFactors, ising
from herdner.graph.graph import ImpossibleGraph
from herdner.graph.tables import compile_tables
from herdner.inference import elimination_order, make_backend
from herdner.inference.backends.exact import EliminationRun, Exact
from herdner.inference.barren import PrunedGraph
from herdner.inference.elimination_order import reduce_graph
from herdner.inference.record import Record

ONLY_SUMS = Record(best=False, marginals=False)


def network(seed: int, n: int = 9, observed: bool = True) -> FactorGraph:
    """A Bayesian network: each variable has up to three parents, and some entries are 0; variable 4 may be observed."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, n)
    groups = []
    for v in range(n):
        parents = rng.permutation(v)[: rng.integers(0, 4)]
        table = rng.dirichlet(np.ones(sizes[v]), size=sizes[parents])
        table[rng.random(table.shape) < 0.1] = 0
        table[..., 0] += 1e-3
        table /= table.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore"):
            groups.append(TableFactors([[*parents, v]], np.log(table)[None]))
    graph = FactorGraph(sizes, groups)
    return graph.condition({4: 0}) if observed else graph


@pytest.mark.parametrize("seed", range(40))
def test_log_z_is_that_of_the_whole_graph(seed):
    graph = network(seed)
    result, whole = Exact().infer(graph, record=ONLY_SUMS), Exact().infer(graph)
    assert result.log_z == pytest.approx(whole.log_z, abs=1e-10)
    assert np.isfinite(result.log_potential)
    assert result.log_potential == graph.log_potential(result.state)


def test_a_network_without_evidence_needs_no_elimination():
    run = EliminationRun.prepare(compile_tables(network(0, observed=False)), prune=True)
    assert run.plan(True).width == 0  # variables without factors
    assert run.reduced.scopes == []


def test_the_width_is_smaller_without_barren_variables():
    """A chain whose variables have a common child: elimination of the child joins all variables of the chain."""
    rng = np.random.default_rng(0)
    pairs = TableFactors([(v, v + 1) for v in range(11)], rng.normal(size=(11, 2, 2)))
    child = rng.dirichlet(np.ones(3), size=(2,) * 12)
    graph = compile_tables(FactorGraph([2] * 12 + [3], [pairs, TableFactors([range(13)], np.log(child)[None])]))
    assert EliminationRun.prepare(graph).plan(True).width == 12
    assert EliminationRun.prepare(graph, prune=True).plan(True).width == 1


@pytest.mark.parametrize("backend", ["exact", "auto"])
@pytest.mark.parametrize("observed", [False, True])
def test_a_graph_is_reduced_once(monkeypatch, backend, observed):
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return reduce_graph(*arguments)

    monkeypatch.setattr(elimination_order, "reduce_graph", counted)
    make_backend(backend).infer(network(1, observed=observed), record=ONLY_SUMS)
    make_backend(backend).infer(ising(0.3, np.zeros((3, 3))), record=ONLY_SUMS)  # no variable is barren
    assert len(calls) == 2


def test_the_sum_keeps_the_variables_on_which_it_depends():
    rng = np.random.default_rng(1)
    table = np.log(rng.dirichlet(np.ones(3), size=(2, 4))) + rng.normal(size=(1, 4, 1))  # the sum depends on variable 1
    pair = rng.normal(size=(1, 2, 2))
    graph = FactorGraph([2, 4, 3, 2], [TableFactors([(0, 1, 2)], table[None]), TableFactors([(0, 3)], pair)])
    compiled = compile_tables(graph)
    pruned = PrunedGraph.of(reduce_graph(compiled.sizes, compiled.factors))
    assert 2 in {v for v, _ in pruned.removed}
    assert all(len(scope) < 3 for scope in pruned.graph.scopes)
    assert Exact().infer(graph, record=ONLY_SUMS).log_z == pytest.approx(Exact().infer(graph).log_z, abs=1e-12)


def test_samples_contain_the_barren_variables():
    graph, n = network(3, 6), 100_000
    assert EliminationRun.prepare(compile_tables(graph), prune=True).pruned.removed
    states = np.array(list(itertools.product(*map(range, graph.domains.sizes))), np.int32)
    values = graph.log_potential(states)
    p = np.exp(values - np.logaddexp.reduce(values))
    samples = Exact(n_samples=n).infer(graph, 5, record=ONLY_SUMS).samples[0]
    counts = np.bincount(np.ravel_multi_index(tuple(samples.T), tuple(graph.domains.sizes)), minlength=len(p))
    assert (np.abs(counts / n - p) <= 5 * np.sqrt(p / n) + 1e-9).all()


def test_a_graph_that_only_sums_show_to_be_impossible_is_refused():
    """The sums of two factors over their barren variables allow only x = y, and only x != y."""
    free, equal = np.zeros((2, 2, 2, 2)), np.eye(2, dtype=bool)[:, :, None, None]
    groups = [TableFactors([scope], np.where(allowed, free, -np.inf)[None])
              for scope, allowed in (([0, 1, 2, 3], ~equal), ([0, 1, 4, 5], equal))]  # fmt: skip
    graph = FactorGraph([2] * 6, groups)
    with pytest.raises(ImpossibleGraph):
        Exact().infer(graph, record=ONLY_SUMS)
