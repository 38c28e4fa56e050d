"""Records equal those of a plain implementation on the visited states; records that are off are None."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from gibbs_families import FAMILIES
from quick import pairwise
from reference_gibbs import Reference

from herdner.graph import FactorGraph, compile_tables, ising
from herdner.graph.conditionals import greedy_colouring
from herdner.graph.scan import checkerboard_scan, fixed_scan, jacobi_scan, random_scan
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs import bin_sharing, blanket_sharing, linear_annealing
from herdner.inference.record import Record

ALL = {"rao_blackwell": True, "table_counts": True, "joint": True, "trace": True}


@dataclass
class Expected:
    """The same numbers, computed from the states of the reference one by one."""

    plan: Gibbs
    graph: FactorGraph
    seed: int

    def __post_init__(self) -> None:
        plan = self.plan
        if plan.scan.kind == "checkerboard":  # the reference knows no colours, only their order
            colour = greedy_colouring(compile_tables(self.graph).conditionals.blankets)
            plan = replace(plan, scan=fixed_scan(np.argsort(colour, kind="stable")))
        self.chains = [Reference(plan, self.graph, self.seed, chain) for chain in range(plan.n_chains)]
        self.visited = np.array([chain.states for chain in self.chains])  # [C, T + 1, V]
        self.kept = self.visited[:, 1 + self.plan.burn_in :].reshape(-1, self.graph.n_variables)
        self.values = np.array([self.graph.log_potential(states) for states in self.visited])

    def marginals(self) -> np.ndarray:
        return (self.kept[:, :, None] == np.arange(self.graph.domains.sizes.max())).mean(axis=0)

    def joint(self) -> np.ndarray:
        counts = np.zeros(self.graph.domains.sizes)
        np.add.at(counts, tuple(self.kept.T), 1 / len(self.kept))
        return counts

    def table_counts(self) -> list[np.ndarray]:
        found = []
        for group in self.graph.factors:
            counts = np.zeros(group.tables.shape)
            for scope, table, scale in zip(group.scopes, group.table_of_factor, group.scale, strict=True):
                for state in self.kept:
                    counts[(table, *state[scope])] += scale / len(self.kept)
            found.append(counts)
        return found

    def rao_blackwell(self) -> np.ndarray:
        n_steps = len(self.chains[0].conditionals) // self.plan.n_sweeps
        sums, updates = (
            np.zeros((self.graph.n_variables, self.graph.domains.sizes.max())),
            np.zeros(self.graph.n_variables),
        )
        for chain in self.chains:
            for i, p in chain.conditionals[n_steps * self.plan.burn_in :]:
                sums[i, : len(p)] += p
                updates[i] += 1
        return sums / updates[:, None]


PLANS = {
    "plain": {},
    "burn-in": {"burn_in": 7},
    "chains": {"n_chains": 3, "burn_in": 2},
    "herded": {"sharing": blanket_sharing(), "burn_in": 11},
    "bins": {"sharing": bin_sharing(5), "form": "threshold", "scan": checkerboard_scan()},
    "random scan": {"scan": random_scan(), "burn_in": 5},
    "annealed": {"annealing": linear_annealing(0.2, 2.0), "n_chains": 2},
}


RECORDED = ["binary_ring", "five_labels", "mixed_labels", "higher_order", "strong_labels"]


@pytest.mark.parametrize(("family", "name", "every"), pairwise(RECORDED, list(PLANS), [1, 4]))
def test_records(family, name, every):
    graph, plan = FAMILIES[family], Gibbs(60, **PLANS[name], record=Record(**ALL, every=every))
    expected = Expected(plan, graph, 3)
    result = plan.infer(graph, 3)
    burn_in, n_sweeps = plan.burn_in, plan.n_sweeps
    assert np.array_equal(result.samples, expected.visited[:, 1 + burn_in :: every])
    assert result.sample_sweeps.tolist() == list(range(burn_in, n_sweeps, every))
    assert result.trace == pytest.approx(expected.values[:, 1:], rel=1e-12, abs=1e-12)
    assert result.log_potential == pytest.approx(expected.values.max(), rel=1e-12)
    assert graph.log_potential(result.state) == pytest.approx(expected.values.max(), rel=1e-12)
    assert result.marginals == pytest.approx(expected.marginals(), abs=1e-12)
    assert np.allclose(result.joint, expected.joint(), rtol=0, atol=1e-12)
    assert result.rao_blackwell == pytest.approx(expected.rao_blackwell(), abs=1e-12)
    for found, counts in zip(result.table_counts, expected.table_counts(), strict=True):
        assert found == pytest.approx(counts, abs=1e-9)
    assert result.n_updates == plan.n_chains * n_sweeps * graph.n_variables
    assert result.seconds > 0


@pytest.mark.parametrize("part", ["best", "marginals", "rao_blackwell", "table_counts", "joint", "trace", "every"])
def test_what_is_not_recorded_is_none(part):
    graph = FAMILIES["mixed_labels"]
    record = Record(**{f.name: f.name == part for f in fields(Record)} | {"every": 3 * (part == "every")})
    result = Gibbs(20, record=record).infer(graph, 1)
    found = {f.name for f in fields(result) if getattr(result, f.name) is not None}
    always = {"state", "log_potential", "n_updates", "seconds"}
    assert found - always == {"best": set(), "every": {"samples", "sample_sweeps"}}.get(part, {part})


def test_without_the_best_the_last_state_is_given():
    graph = FAMILIES["five_labels"]
    result = Gibbs(20, record=Record(best=False, every=1)).infer(graph, 1)
    assert np.array_equal(result.state, result.samples[0, -1])
    assert result.log_potential == graph.log_potential(result.state)


def test_the_start_counts_as_visited():
    graph = FAMILIES["binary_hub"]
    best = Gibbs(20_000).infer(graph, 1).state
    result = Gibbs(1, record=Record(trace=True)).infer(graph, 1, start=best)
    assert np.array_equal(result.state, best)
    assert result.trace[0, 0] < result.log_potential


def test_no_sweeps_record_nothing_but_the_start():
    graph, start = FAMILIES["three_labels"], np.arange(12) % 3
    result = Gibbs(0, record=Record(**ALL, every=1)).infer(graph, 1, start=start)
    assert np.array_equal(result.state, start)
    assert result.log_potential == pytest.approx(graph.log_potential(start))
    assert (result.marginals, result.rao_blackwell, result.table_counts, result.joint) == (None,) * 4
    assert result.trace.shape == (1, 0)
    assert result.samples.shape == (1, 0, 12)
    assert result.n_updates == 0


def test_one_sweep_after_the_burn_in():
    graph = FAMILIES["mixed_labels"]
    result = Gibbs(30, burn_in=29, record=Record(**ALL, every=5)).infer(graph, 1)
    assert result.sample_sweeps.tolist() == [29]
    assert np.array_equal(result.marginals.argmax(axis=1), result.samples[0, 0])
    assert set(np.unique(result.marginals)) == {0.0, 1.0}


def test_variables_that_a_given_scan_leaves_out_keep_their_labels():
    graph = FAMILIES["binary_ring"]
    plan = Gibbs(50, scan=fixed_scan([1, 3, 1]), n_chains=4, record=Record(**ALL, every=1))
    result = plan.infer(graph, 2)
    still = [0, 2, 4, 5, 6, 7, 8]
    assert (result.samples[:, :, still] == result.samples[:, :1, still]).all()
    ones = result.samples[:, 0, still].mean(axis=0)
    assert result.marginals[still, 1] == pytest.approx(ones)
    assert result.rao_blackwell[still, 1] == pytest.approx(ones)
    assert 0 < ones.mean() < 1
    assert result.n_updates == 4 * 50 * 3


def test_a_given_start_is_where_every_chain_starts():
    graph, start = FAMILIES["binary_grid"], np.arange(35) % 2
    plan = Gibbs(1, scan=fixed_scan([0]), n_chains=3, record=Record(every=1))
    result = plan.infer(graph, 1, start=start)
    assert (result.samples[:, 0, 1:] == start[1:]).all()
    assert start.tolist() == (np.arange(35) % 2).tolist(), "the start itself is not changed"


@pytest.mark.slow
def test_starts_are_uniform_where_nothing_is_forbidden():
    """The states of 4000 chains are within six standard deviations of equal shares."""
    graph = FAMILIES["mixed_labels"]
    plan = Gibbs(1, scan=fixed_scan([2]), n_chains=4000, n_threads=1, record=Record(best=False))
    found = plan.infer(graph, 1).marginals
    for i, size in enumerate(graph.domains.sizes.tolist()):
        if i != 2:
            assert found[i, :size] == pytest.approx(1 / size, abs=6 * 0.5 / np.sqrt(4000))


MANY = {
    "plain": {},
    "burn-in": {"burn_in": 300, "n_chains": 2},
    "threads": {"scan": checkerboard_scan(), "n_threads": 2},
    "random scan": {"scan": random_scan(), "burn_in": 1},
    "jacobi": {"scan": jacobi_scan()},
    "herded": {"sharing": blanket_sharing(), "burn_in": 255},
    "bins": {"sharing": bin_sharing(7)},
    "annealed": {"annealing": linear_annealing(0.0, 3.0)},
}
GRAPHS = {name: FAMILIES[name] for name in ("binary_grid", "binary_hub", "five_labels", "mixed_labels", "higher_order")}
GRAPHS["strong grid"] = ising(60.0, np.random.default_rng(0).normal(0.0, 150.0, (9, 31)))


def allows_all(graph: FactorGraph) -> bool:
    return all(np.isfinite(group.tables).all() for group in graph.factors)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "family"),
    pairwise(list(MANY), list(GRAPHS), fits=lambda name, family: name != "jacobi" or allows_all(GRAPHS[family])),
)
def test_the_default_record_is_that_of_the_states_of_every_sweep(name, family):
    """Make more sweeps than a byte counts, and than the log-potential is updated without recomputation."""
    graph, plan = GRAPHS[family], Gibbs(1100, **MANY[name])
    start = np.zeros(graph.n_variables, np.int32)
    result = plan.infer(graph, 5, start=start)
    all_states = replace(plan, burn_in=0, record=Record(best=False, marginals=False, every=1)).infer(
        graph, 5, start=start
    )
    kept = all_states.samples[:, plan.burn_in :].reshape(-1, graph.n_variables)
    counts = (kept[:, :, None] == np.arange(graph.domains.sizes.max())).sum(axis=0)
    assert np.array_equal(np.rint(result.marginals * len(kept)), counts)
    visited = np.concatenate([start[None], all_states.samples.reshape(-1, graph.n_variables)])
    values = graph.log_potential(visited)
    assert (visited == result.state).all(axis=1).any(), "the best state is one at the end of a sweep, or the start"
    assert result.log_potential == pytest.approx(values.max(), rel=1e-12, abs=1e-12)
    assert graph.log_potential(result.state) == pytest.approx(values.max(), rel=1e-12, abs=1e-12)
