"""Random graphs, sampling plans and backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from herdner.graph import FactorGraph, TableFactors, boltzmann_machine, chain_graph, complete_graph, ising, potts
from herdner.inference import BACKENDS, make_backend
from herdner.inference.record import Record

Rng = np.random.Generator
ODD = [1e300, -1e300, 1e308, -1e308, 1.7e308, 5e-324, -5e-324, 1e-310, 700.0, -700.0, 745.0, -745.0, 1e16, -1e16, 0.0]


def pick(rng: Rng, *values: Any) -> Any:
    """Return a random item."""
    return values[int(rng.random() * len(values))]


def numbers(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return log-potentials: ordinary, equal, forbidden, huge or tiny ones, sometimes invalid ones."""
    kind = pick(rng, "plain", "plain", "ties", "hard", "hard", "odd", "strong", "wrong")
    found = np.asarray(rng.normal(size=shape) * pick(rng, 0.1, 1.0, 3.0))
    if kind == "ties":
        found = np.round(found)
    elif kind == "hard":
        found[rng.random(shape) < pick(rng, 0.1, 0.5, 0.9)] = -np.inf
    elif kind == "odd":
        chosen = rng.random(shape) < 0.4
        found[chosen] = rng.choice(ODD, int(chosen.sum()))
    elif kind == "strong":
        found *= pick(rng, 300.0, 1e4, 1e300)
    elif kind == "wrong" and rng.random() < 0.3:
        chosen = rng.random(shape) < 0.2
        found[chosen] = rng.choice([np.nan, np.inf, -np.inf, *ODD], int(chosen.sum()))
    return found


HARD = [
    [[-np.inf, 0.0], [0.0, -np.inf]],
    [[0.0, 0.0], [0.0, -np.inf]],
    [[0.0, -np.inf], [0.0, 0.0]],
    [[0.0, -np.inf], [-np.inf, 0.0]],
    [[-np.inf, -np.inf], [0.0, 0.0]],
]


def grid(rng: Rng) -> FactorGraph:
    """Return a grid with two states and one shared pair table."""
    shape = (
        int(rng.integers(1, 8)),
        int(pick(rng, rng.integers(1, 9), rng.integers(3, 40), 300 if rng.random() < 0.1 else 5)),
    )
    wrap = min(shape) > 2 and rng.random() < 0.4
    fields, pairs = ising(1.0, rng.normal(size=shape), wrap=wrap).factors
    table = np.array(pick(rng, *HARD)) if rng.random() < 0.5 else numbers(rng, (2, 2))
    n = shape[0] * shape[1]
    groups: list[Any] = [fields] if rng.random() < 0.7 else []
    scale = None if rng.random() < 0.6 else np.full(len(pairs.scopes), pick(rng, 0.5, 2.0, 1e-300))
    groups.append(TableFactors(pairs.scopes, table[None], scale=scale))
    if rng.random() < 0.5:
        groups.append(TableFactors(fields.scopes, numbers(rng, (n, 2))))
    return FactorGraph(np.full(n, 2), groups)


def linear(rng: Rng) -> FactorGraph:
    n, k = int(rng.integers(0, 30)), int(pick(rng, 1, 2, 3, 9, 17, 40))
    offsets = np.unique(np.r_[0, rng.integers(0, n + 1, 3), n]) if rng.random() < 0.7 else None
    ends = {name: numbers(rng, (k,)) for name in ("start", "end") if rng.random() < 0.4}
    graph = chain_graph(numbers(rng, (n, k)), numbers(rng, (k, k)), offsets, **ends)
    if n > 3 and rng.random() < 0.6:
        links = np.unique(np.sort(rng.integers(0, n, (int(rng.integers(1, 8)), 2)), axis=1), axis=0)
        links = links[links[:, 0] < links[:, 1]].astype(np.int32)
        scale = None if rng.random() < 0.5 else rng.integers(1, 9, len(links)) / 8
        return FactorGraph(graph.domains, [*graph.factors, TableFactors(links, numbers(rng, (1, k, k)), scale=scale)])
    return graph


def anything(rng: Rng) -> FactorGraph:
    """Return a graph of variables with 1 to 300 states and factors of 0 to 4 variables."""
    n = int(rng.integers(0, 12))
    sizes = rng.integers(1, pick(rng, 3, 3, 5, 6), n) if rng.random() < 0.8 else np.full(n, pick(rng, 2, 2, 3, 16, 17))
    if n and rng.random() < 0.1:
        sizes[rng.integers(n)] = pick(rng, 64, 65, 300)
    groups = []
    for _ in range(int(rng.integers(0, 8))):
        arity = int(pick(rng, 0, 1, 1, 2, 2, 2, 3, 4))
        if arity > n:
            continue
        scope = rng.choice(n, arity, replace=False)
        shape = tuple(int(size) for size in sizes[scope])
        if np.prod(shape, dtype=float) > 1e5:
            continue
        twins = [scope]
        for _ in range(int(rng.integers(0, 4))):
            other = rng.choice(n, arity, replace=False)
            if tuple(int(size) for size in sizes[other]) == shape:
                twins.append(other)
        n_tables = int(rng.integers(1, len(twins) + 1))
        scale = None if rng.random() < 0.5 else numbers(rng, (len(twins),))
        which = rng.integers(0, n_tables, len(twins))
        groups.append(
            TableFactors(
                np.array(twins, np.int32).reshape(len(twins), arity), numbers(rng, (n_tables, *shape)), which, scale
            )
        )
    return FactorGraph(sizes, groups)


def built(rng: Rng) -> FactorGraph:
    """Return a graph from a builder with random numbers."""
    n = int(rng.integers(1, 10))
    kind = pick(rng, "complete", "potts", "potts-edges", "boltzmann", "ising")
    if kind == "complete":
        couplings = numbers(rng, (n, n))
        with np.errstate(all="ignore"):
            return complete_graph(np.triu(couplings, 1) + np.triu(couplings, 1).T, numbers(rng, (n,)))
    if kind == "potts":
        return potts(float(numbers(rng, ())), numbers(rng, (int(rng.integers(1, 5)), n, pick(rng, 1, 2, 3, 7))))
    edges = np.unique(np.sort(rng.integers(0, n, (6, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] < edges[:, 1]]
    if kind == "potts-edges":
        return potts(numbers(rng, (len(edges),)), numbers(rng, (n, 3)), edges)
    if kind == "boltzmann":
        return boltzmann_machine(numbers(rng, (len(edges),)), numbers(rng, (n,)), edges=edges)
    return ising(float(numbers(rng, ())), numbers(rng, (int(rng.integers(1, 6)), n)), wrap=bool(rng.random() < 0.2))


GRAPHS: list[Callable[[Rng], FactorGraph]] = [grid, grid, linear, linear, anything, anything, built]


SHARINGS = ["blanket", "complete", "neighbour-sum", "bins(3)", "bins(1073741824)", "random-bins(7)"]
ANNEALINGS = ["linear(0, 3)", "linear(0.1, 1e6)", "geometric(1e-300, 1e6)", "linear(2, 0)", "linear(0, 0)"]


WORK = ("n_sweeps", "n_rounds", "n_particles", "n_temperatures")  # options by which backends take seconds by default


def record(rng: Rng) -> Record:
    flags = {name: bool(rng.random() < 0.5) for name in ("best", "marginals", "rao_blackwell", "table_counts", "trace")}
    return Record(joint=bool(rng.random() < 0.2), every=int(pick(rng, 0, 1, 3)), **flags)


def backend(rng: Rng) -> Any:
    """Return a random backend with random options."""
    name = pick(rng, *BACKENDS)
    values: dict[str, Callable[[], Any]] = {
        "n_sweeps": lambda: int(pick(rng, 0, 1, 2, 5, 20)),
        "burn_in": lambda: int(pick(rng, 0, 0, 1, 3)),
        "n_bins": lambda: int(pick(rng, 1, 2, 16, 1000, 2**20, 2**30)),
        "error_bound": lambda: float(pick(rng, 0.0, 0.5, 1.0, 1e300, np.inf)),
        "sharing": lambda: pick(rng, *SHARINGS),
        "scan": lambda: pick(rng, "systematic", "random", "checkerboard", "jacobi", "fixed(0, 1, 0)", "fixed(7)"),
        "annealing": lambda: pick(rng, *ANNEALINGS),
        "form": lambda: pick(rng, "circular", "threshold"),
        "n_chains": lambda: int(pick(rng, 1, 1, 2, 3)),
        "n_threads": lambda: pick(rng, None, 1, 2),
        "weight_memory": lambda: int(pick(rng, 2**30, 1000, 2**20)),
        "damping": lambda: float(pick(rng, 1.0, 0.5, 1e-9)),
        "tolerance": lambda: float(pick(rng, 0.0, 1e-3, 10.0)),
        "driving": lambda: pick(rng, "sobol", "lfsr", "lfsr(7)"),
        "loop": lambda: pick(rng, "auto", "general"),
        "table_counts": lambda: bool(rng.random() < 0.5),
        "herded": lambda: bool(rng.random() < 0.7),
        "n_rounds": lambda: int(pick(rng, 1, 2, 5)),
        "n_particles": lambda: int(pick(rng, 2, 3)),
        "n_temperatures": lambda: int(pick(rng, 2, 5)),
        "n_replicas": lambda: int(pick(rng, 1, 2, 4)),
        "width": lambda: int(pick(rng, 0, 1, 4, 8)),
    }  # fmt: skip
    from herdner.inference import describe_backend

    known = [option.name for option in describe_backend(name).options]
    chosen = {key: make() for key, make in values.items() if key in known and (key in WORK or rng.random() < 0.35)}
    if "record" in known and rng.random() < 0.5:
        chosen["record"] = str(record(rng))
    return make_backend(name, **{key: str(value) if rng.random() < 0.2 else value for key, value in chosen.items()})


def start_of(rng: Rng, graph: FactorGraph) -> Any:
    """Return a start state: None, a valid state or an invalid one."""
    sizes = np.asarray(graph.domains.sizes)  # type: ignore[attr-defined]
    if rng.random() < 0.6:
        return None
    state = (rng.random(len(sizes)) * sizes).astype(pick(rng, np.int32, np.int64, np.uint16))
    if rng.random() < 0.1 and len(state):
        state = state.astype(np.int64)
        state[rng.integers(len(state))] = pick(rng, -1, 70000, 2**31, 300)
    return state


def infer(rng: Rng) -> None:
    """Run a backend on a graph: the result must be sound, or an error must be raised."""
    graph = pick(rng, *GRAPHS)(rng)
    chosen = backend(rng)
    asked = record(rng) if rng.random() < 0.3 else None
    result = chosen.infer(graph, int(rng.integers(100)), start=start_of(rng, graph), record=asked)
    check(graph, chosen, result)


def check(graph: FactorGraph, chosen: Any, result: Any) -> None:
    sizes = np.asarray(graph.domains.sizes)  # type: ignore[attr-defined]
    assert result.state.shape == sizes.shape, f"{chosen}: state of shape {result.state.shape}"
    assert ((result.state >= 0) & (result.state < sizes)).all(), f"{chosen}: state {result.state}"
    value = float(graph.log_potential(result.state))
    assert value > -np.inf, f"{chosen}: a state of log-potential {value}"
    assert abs(value - result.log_potential) <= 1e-6 * max(1.0, abs(value), _span(graph)), (
        f"{chosen}: {value} is given as {result.log_potential}"
    )
    for name in ("marginals", "rao_blackwell", "joint"):
        found = getattr(result, name)
        if found is None:
            continue
        assert np.isfinite(found).all(), f"{chosen}: {name} {found}"
        assert (found >= -1e-12).all(), f"{chosen}: {name} {found}"
        assert (found <= 1 + 1e-9).all(), f"{chosen}: {name} {found}"
        total = found.sum(axis=None if name == "joint" else 1)
        assert np.allclose(total, 1.0, atol=1e-6), f"{chosen}: {name} adds up to {total}"
    assert result.log_z is None or result.log_z == result.log_z, f"{chosen}: log Z {result.log_z}"
    for counts in result.table_counts or ():
        assert np.isfinite(counts).all(), f"{chosen}: table_counts {counts}"
    if result.trace is not None:
        sampled = "burn_in" in dir(chosen)  # other backends report forbidden states themselves
        assert (result.trace < np.inf).all(), f"{chosen}: trace {result.trace}"
        assert not sampled or (result.trace > -np.inf).all(), f"{chosen}: trace {result.trace}"
    if result.samples is not None and result.samples.size:
        samples = result.samples.reshape(-1, len(sizes))
        assert (graph.log_potential(samples) > -np.inf).all(), f"{chosen}: forbidden samples"


def _span(graph: FactorGraph) -> float:
    """Return the magnitude relative to which rounding errors are compared."""
    return float(
        sum(
            np.abs(np.where(np.isfinite(g.tables), g.tables, 0.0)).max(initial=0.0) * np.abs(g.scale).sum()
            for g in graph.factors
        )
    )  # type: ignore[attr-defined]
