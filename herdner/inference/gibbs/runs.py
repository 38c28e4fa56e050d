"""Running a sampler's plan: its chains on threads, and what they found together, also when they are interrupted."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import gibbs as loops
from herdner.graph.conditionals import Conditionals
from herdner.graph.grids import GridForm
from herdner.graph.tables import TableGraph
from herdner.inference.backend import Interrupted
from herdner.inference.backends.sweeps import constant
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.run import Chain
from herdner.inference.gibbs.setup import Setup
from herdner.inference.gibbs.start import given_start, random_start
from herdner.inference.result import Result
from herdner.sampling.plan import Plan


def run_chains(
    plan: Plan,
    compiled: TableGraph,
    rng: np.random.Generator,
    start: ArrayLike | None,
    began: float,
    blocks: Blocks | None = None,
) -> Result:
    """All chains of a plan, and what they found together; ``blocks`` of variables are resampled together."""
    sizes = compiled.sizes
    constant(compiled)
    if sizes.max() > loops.LABELS_LIMIT:
        raise ValueError(
            f"variable {sizes.argmax()} has {sizes.max()} labels; samplers take at most {loops.LABELS_LIMIT}"
        )
    shared = Setup.of(plan, compiled, blocks)
    first = None if start is None else given_start(compiled, start)
    try:
        chains = begun(shared, rng, first)
    except MemoryError:
        raise MemoryError(
            f"no memory is left for {plan.n_chains} chains of {plan.n_sweeps} sweeps and records ({plan.record}):"
            " use fewer chains, less weight_memory, or record less"
        ) from None
    try:
        _run(plan, chains)
    except KeyboardInterrupt:
        raise Interrupted(gathered(shared, chains, began)) from None
    return gathered(shared, chains, began)


def begun(shared: Setup, rng: np.random.Generator, first: NDArray[np.uint16] | None) -> list[Chain]:
    """The chains before their first sweep."""
    plan, compiled = shared.plan, shared.compiled
    keys = rng.integers(0, 2**64, (plan.n_chains, 4), dtype=np.uint64)
    drivers = [None] * plan.n_chains
    if plan.driving is not None:
        drivers = [plan.driving.begin(shared.n_steps, plan.n_sweeps, r) for r in rng.spawn(plan.n_chains)]
    return [
        Chain(shared, random_start(compiled, int(k[3])) if first is None else first.copy(), k, driver)
        for k, driver in zip(keys, drivers, strict=True)
    ]


def _run(plan: Plan, chains: list[Chain]) -> None:
    stop = threading.Event()
    n_workers, n_threads = (min(plan.threads, len(chains)), 1) if len(chains) > 1 else (1, plan.threads)
    if n_workers == n_threads == 1:
        _take_turns(chains, stop, 1)
        return
    with ThreadPoolExecutor(n_workers) as pool:  # Ctrl-C reaches the main thread alone, which only waits
        try:
            shares = [pool.submit(_take_turns, chains[w::n_workers], stop, n_threads) for w in range(n_workers)]
            for done in shares:
                done.result()
        finally:
            stop.set()


def _take_turns(chains: list[Chain], stop: threading.Event, n_threads: int) -> None:
    """A piece of each chain in turn: when ``stop`` is set, none has been left behind."""
    running = deque(chain for chain in chains if not chain.ended)
    with ThreadPoolExecutor(n_threads) as pool:
        while running and not stop.is_set():
            chain = running.popleft()
            chain.advance(pool if n_threads > 1 else None, n_threads)
            if not chain.ended:
                running.append(chain)


def gathered(shared: Setup, chains: list[Chain], began: float) -> Result:
    """The result of all chains together, so far."""
    record = shared.plan.record
    kept = sum(chain.engine.kept_sweeps[0] for chain in chains)
    best = max(chains, key=lambda chain: chain.engine.best_log_potential) if record.best else chains[0]
    state = best.arrays["best"] if record.best else best.engine.state
    whole = best.engine.best_log_potential if record.best else best.engine.recomputed_log_potential()
    n_updates, paths = sum(chain.done for chain in chains), _paths(shared, chains)
    for chain in chains:
        del chain.engine  # its weights and heated rows make room for the averages
    return Result(
        state=np.asarray(state, np.int32), log_potential=float(whole), n_updates=n_updates,
        seconds=perf_counter() - began, **(_averages(shared, chains, kept) if kept else {}), **paths,
    )  # fmt: skip


def _averages(shared: Setup, chains: list[Chain], kept: int) -> dict:
    """What is averaged over the ``kept`` sweeps of all chains."""
    record, form, sizes = shared.plan.record, shared.form, shared.compiled.sizes
    found: dict = {}
    if record.marginals:
        shares = _total(chains, "counts")
        shares /= kept
        found["marginals"] = by_label(sizes, form, shares)
    if record.rao_blackwell:
        counts = _total(chains, "conditional_counts")
        never = np.flatnonzero(counts == 0)  # of a given scan: these keep their labels
        counts[never] = 1.0
        means = _total(chains, "conditional_sums")
        means /= counts if isinstance(form, GridForm) else np.repeat(counts, form.widths)
        found["rao_blackwell"] = by_label(sizes, form, means)
        labels = np.eye(sizes.max())
        found["rao_blackwell"][never] = np.mean([labels[chain.state[never]] for chain in chains], axis=0)
    if record.table_counts:
        groups = zip(*(chain.table_counts for chain in chains), strict=True)
        found["table_counts"] = tuple(np.sum(parts, axis=0) / kept for parts in groups)
    if record.joint:
        found["joint"] = (_total(chains, "joint") / kept).reshape(sizes)
    return found


def _total(chains: list[Chain], name: str) -> NDArray[np.float64]:
    total = chains[0].arrays[name].astype(np.float64)
    for chain in chains[1:]:
        total += chain.arrays[name]
    return total


def _paths(shared: Setup, chains: list[Chain]) -> dict:
    """What is kept sweep by sweep, as far as all chains have come."""
    record = shared.plan.record
    found: dict = {}
    if record.trace:
        ended = min(chain.done for chain in chains) // shared.n_steps
        found["trace"] = np.stack([chain.arrays["trace"][:ended] for chain in chains])
    if record.every:
        n = min(chain.engine.kept_sweeps[1] for chain in chains)
        found["samples"] = np.stack([chain.arrays["samples"][:n] for chain in chains]).astype(np.int32)
        found["sample_sweeps"] = shared.plan.burn_in + record.every * np.arange(n)
    return found


def by_label(sizes: NDArray[np.int32], form: Conditionals | GridForm, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """[V, K] from the layout of the unary rows, in which two labels keep the second alone."""
    result = np.zeros((len(sizes), int(sizes.max())))
    two = sizes == 2
    if isinstance(form, GridForm) or two.all():
        result[:, 1] = rows
        np.subtract(1.0, rows, out=result[:, 0])
        return result
    if two.any():
        result[two, 1] = rows[form.unary_at[two]]
        result[two, 0] = 1.0 - result[two, 1]
    for k in range(result.shape[1]):
        has = ~two & (sizes > k)
        result[has, k] = rows[form.unary_at[has] + k]
    return result
