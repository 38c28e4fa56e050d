"""Speed of the compiled loops of the Gibbs family: rows for `bench_kernels.py`.

The time of an update excludes set-up and compilation of the graph, which are measured separately. The time of an update
is measured without a record and with the default record. It is compared with the loops of `gibbs_peers.py` on the same
grid, or stated in units of one call of libm's `exp`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from timing import Loop, Row, best_times, update_times

from herdner import (
    FactorGraph,
    Gibbs,
    Record,
    TableFactors,
    annealed_gibbs,
    boltzmann_machine,
    circular_dhg,
    compile_tables,
    herded_gibbs,
    ising,
    make_backend,
    plain_gibbs,
)
from herdner.inference.gibbs import bin_sharing, neighbour_sum_sharing

NOTHING = Record(best=False, marginals=False)
COUPLING = 0.3
LABELS = 9
SEED = 7


@dataclass(frozen=True)
class Effort:
    """Amount of work: updates and minimum sweeps of a timed run, number of runs, and divisor of graph sizes."""

    updates: int = 100_000_000
    sweeps: int = 40
    repeats: int = 7
    smaller: int = 1


@dataclass(frozen=True)
class Measured:
    """Nanoseconds per update of herdner without and with the default record, those of peers, and seconds of set-up."""

    bare: dict[str, float]
    recorded: dict[str, float]
    peers: dict[str, float]
    setup: dict[str, float]
    exp: float

    def row(self, group: str, name: str, **rest) -> Row:
        ns = self.bare[name]
        return Row(group, name, ns, ns / self.exp, self.recorded[name], self.setup[name], **rest)

    def against(self, group: str, name: str, peer: str, target: float, stretch: float | None = None) -> Row:
        value = self.peers[peer] / self.bare[name]
        return self.row(group, name, value=value, unit=f"times {peer}", target=target, stretch=stretch)

    def in_exps(self, group: str, name: str, target: float) -> Row:
        return self.row(group, name, value=self.bare[name] / self.exp, unit="exps", target=target, wanted="at most")


def measured(
    cases: Mapping[str, tuple[Gibbs, FactorGraph]], effort: Effort, peers: Mapping[str, Loop] | None = None
) -> Measured:
    """Measure all cases, which are plans with graphs, and all peers in turn."""
    peers = peers or {}
    loops = dict(peers)
    for name, (plan, graph) in cases.items():
        sweeps = max(effort.sweeps, effort.updates // graph.n_variables)
        loops[f"{name}, bare"] = _loop(replace(plan, record=NOTHING), graph, sweeps)
        loops[f"{name}, recorded"] = _loop(plan, graph, sweeps // 2)
    ns, exp = update_times(loops, effort.repeats)
    setup = {
        name: lambda plan=plan, graph=graph: replace(plan, n_sweeps=0).infer(graph, SEED)
        for name, (plan, graph) in cases.items()
    }
    return Measured(
        {name: ns[f"{name}, bare"] for name in cases}, {name: ns[f"{name}, recorded"] for name in cases},
        {name: ns[name] for name in peers}, best_times(setup, min(3, effort.repeats)), exp,
    )  # fmt: skip


def _loop(plan: Gibbs, graph: FactorGraph, sweeps: int) -> Loop:
    compiled = compile_tables(graph)
    return Loop(lambda n: replace(plan, n_sweeps=n).infer(compiled, SEED), graph.n_variables, sweeps)


def grid_rows(effort: Effort) -> list[Row]:
    """Return rows for a grid of 1000 x 1000 spins with individual fields."""
    check_grid(20_000 // effort.smaller)
    side = 1000 // effort.smaller
    field = _field(side, side)
    graph = ising(COUPLING, field)
    found = measured(
        {
            "grid, Gibbs": (plain_gibbs(), graph),
            "grid, herded, blanket": (herded_gibbs(), graph),
            "grid, herded, shared by sum": (herded_gibbs(sharing=neighbour_sum_sharing()), graph),
            "grid, herded, one bin": (herded_gibbs(sharing=bin_sharing(1)), graph),
            "grid, annealed": (annealed_gibbs(), graph),
            "grid, circular DHG(16)": (circular_dhg(), graph),
        },
        effort,
        {name: Loop(run, side * side, max(1, effort.sweeps // 4)) for name, run in grid_peers(field).items()},
    )
    ours = [
        found.against("grid", "grid, Gibbs", "numba raster", 8.0, 20.0),
        found.against("grid", "grid, herded, blanket", "numba herded", 4.0),
        found.against("grid", "grid, herded, shared by sum", "numba herded", 6.0),
        found.against("grid", "grid, herded, one bin", "numba herded", 6.0),
    ]
    ours += [found.row("grid", name) for name in ("grid, annealed", "grid, circular DHG(16)")]
    return ours + [Row("grid", name, ns, ns / found.exp) for name, ns in found.peers.items()]


def grid_peers(field: np.ndarray) -> dict[str, Any]:
    """Return loops in numba and NumPy that sample a grid with these fields."""
    from gibbs_peers import Checkerboard, Raster

    rng = np.random.default_rng(SEED)
    return {
        "numba raster": Raster(field, COUPLING, rng),
        "numpy checkerboard": Checkerboard(field, COUPLING, rng),
        "numba herded": Raster(field, COUPLING, rng, herded=True),
    }


def check_grid(sweeps: int) -> None:
    """Raise an error unless herdner and the peers estimate the exact marginals of a small grid within a tolerance."""
    field = _field(4, 4)
    graph = ising(COUPLING, field)
    exact = make_backend("exact").infer(graph).marginals
    assert exact is not None
    found = {}
    for name, plan in {"gibbs": plain_gibbs(sweeps), "herded": herded_gibbs(sweeps)}.items():
        marginals = plan.infer(graph, SEED).marginals
        assert marginals is not None
        found[name] = marginals[:, 1]
    for name, program in grid_peers(field).items():
        total = np.zeros(field.shape)
        for _ in range(sweeps):
            program(1)
            total += program.spins > 0
        found[name] = total.ravel() / sweeps
    for name, marginals in found.items():
        np.testing.assert_allclose(marginals, exact[:, 1], atol=3.0 / np.sqrt(sweeps) + 0.01, err_msg=name)


def csr_rows(effort: Effort) -> list[Row]:
    """Return rows for Boltzmann machines of 10,000 variables: with random degrees, and with at most four neighbours."""
    n, rng = 10_000 // effort.smaller, np.random.default_rng(SEED)
    graphs = {"random graph": random_machine(n, rng), "4-regular graph": regular_machine(n, rng)}
    plans = {"Gibbs": (plain_gibbs(), 2.0), "circular DHG(16)": (circular_dhg(), 2.7)}
    targets = {f"{g}, {p}": target for g in graphs for p, (_, target) in plans.items()}
    cases = {f"{g}, {p}": (plan, graph) for g, graph in graphs.items() for p, (plan, _) in plans.items()}
    found = measured(cases, replace(effort, updates=effort.updates // 4))
    return [found.in_exps("csr", name, target) for name, target in targets.items()]


def skip_rows(effort: Effort) -> list[Row]:
    """Return rows for a skip chain of 2,000 tokens with 9 tags, in which a tenth of the tokens have links."""
    graph = skip_chain(2000 // effort.smaller, np.random.default_rng(SEED))
    cases = {
        "skip chain, Gibbs": (plain_gibbs(), 6.5),
        "skip chain, annealed": (annealed_gibbs(), 10.0),
        "skip chain, herded, one bin": (herded_gibbs(sharing=bin_sharing(1)), 10.0),
        "skip chain, herded, blanket": (herded_gibbs(), 10.0),
        "skip chain, circular DHG(16)": (circular_dhg(), 18.0),
    }
    plans = {name: (plan, graph) for name, (plan, _) in cases.items()}
    found = measured(plans, replace(effort, updates=effort.updates // 20))
    return [found.in_exps("skip", name, target) for name, (_, target) in cases.items()]


def scaling_rows(effort: Effort) -> list[Row]:
    """Return rows for Gibbs sampling on grids of increasing size and on a random graph of a million variables."""
    cases = {}
    for power in range(3, 8):
        side = round((10**power / effort.smaller) ** 0.5)
        cases[f"grid of 10^{power}, Gibbs"] = plain_gibbs(), ising(COUPLING, _field(side, side))
    grids = list(cases)
    n = 1_000_000 // effort.smaller
    cases["random graph of 10^6, Gibbs"] = plain_gibbs(), random_machine(n, np.random.default_rng(SEED))
    cases["random graph, one coupling, Gibbs"] = plain_gibbs(), random_machine(n, np.random.default_rng(SEED), COUPLING)
    found = measured(cases, effort)
    rows = [found.row("scaling", name) for name in grids]
    growth = found.bare[grids[-1]] / found.bare[grids[1]]
    rows[-1] = replace(rows[-1], value=growth, unit="times 10^4", target=1.5, wanted="at most")
    for name in list(cases)[len(grids) :]:
        rows.append(found.row("scaling", name, value=found.bare[name], unit="ns", target=28.5, wanted="at most"))
    return rows


def memory_rows(effort: Effort) -> list[Row]:
    """Return rows for a grid of 10^7 variables, herded with neighbour-sum sharing and the default record."""
    from bench_memory import VARIABLES, peak_megabytes

    value = peak_megabytes(VARIABLES // effort.smaller**2)
    what = "grid of 10^7, herded, shared by sum"
    return [Row("memory", what, value=value, unit="MB", target=1000.0, wanted="at most")]


def _field(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(SEED).normal(0.0, 0.5, (rows, columns))


def random_machine(n: int, rng: np.random.Generator, coupling: float | None = None) -> FactorGraph:
    """Return a Boltzmann machine of 2 n random pairs. By default, each pair has its own random weight."""
    pairs = np.sort(rng.integers(0, n, (2 * n, 2)), axis=1)
    return _machine(n, pairs[pairs[:, 0] != pairs[:, 1]], rng, coupling)


def regular_machine(n: int, rng: np.random.Generator) -> FactorGraph:
    """Return a Boltzmann machine of two random cycles through all variables: each has at most 4 neighbours."""
    cycles = [rng.permutation(n), rng.permutation(n)]
    return _machine(n, np.concatenate([np.stack([c, np.roll(c, 1)], axis=1) for c in cycles]), rng)


def _machine(n: int, pairs: np.ndarray, rng: np.random.Generator, coupling: float | None = None) -> FactorGraph:
    edges = np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int32)
    weights = rng.normal(0.0, 0.5, len(edges)) if coupling is None else np.full(len(edges), coupling)
    return boltzmann_machine(weights, rng.normal(0.0, 0.5, n), edges=edges)


def skip_chain(n: int, rng: np.random.Generator) -> FactorGraph:
    """Return a skip chain in which a tenth of the tokens are names. Each name occurs four times, linked in pairs."""
    nodes = np.arange(n, dtype=np.int32)
    occurrences = rng.choice(nodes, (n // 40, 4), replace=False)
    first, second = np.triu_indices(4, 1)
    links = np.stack([occurrences[:, first].ravel(), occurrences[:, second].ravel()], axis=1)
    factors = [
        TableFactors(nodes[:, None], rng.normal(size=(n, LABELS))),
        TableFactors(np.stack([nodes[:-1], nodes[1:]], axis=1), rng.normal(size=(1, LABELS, LABELS))),
        TableFactors(links, np.eye(LABELS)[None]),
    ]
    return FactorGraph(np.full(n, LABELS, np.int32), factors)
