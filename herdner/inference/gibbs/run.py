"""Runs of a sampler: the arrays and the progress of each, all of a plan side by side, and what they found together."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import gibbs as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.memory import NotEnoughMemory, check_memory
from herdner.graph.conditionals import Conditionals
from herdner.graph.grids import GridForm
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Interrupted
from herdner.inference.backends.sweeps import constant
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.driving import Uniforms
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.setup import Setup
from herdner.inference.gibbs.start import given_start, random_start
from herdner.inference.result import Result

_PIECE_SECONDS = 0.1  # between looks for Ctrl-C
_SHARED_PIECE_SECONDS = 0.02  # by threads, which wait for each other much longer where the machine gets busy
_MOST_JOINT = 2**24


def sample(
    plan: Plan,
    compiled: TableGraph,
    rng: np.random.Generator,
    start: ArrayLike | None,
    began: float,
    blocks: Blocks | None = None,
) -> Result:
    """All runs of a plan, and what they found together; ``blocks`` of variables are resampled together."""
    sizes = compiled.sizes
    constant(compiled)
    if sizes.max() > loops.STATES_LIMIT:
        raise ValueError(
            f"variable {sizes.argmax()} has {sizes.max()} labels; samplers take at most {loops.STATES_LIMIT}"
        )
    setup = Setup.of(plan, compiled, blocks)
    first = None if start is None else given_start(compiled, start)
    amount = f"n_chains={plan.n_chains}, n_sweeps={plan.n_sweeps}, record={plan.record}"
    what = f"sampling {len(sizes):,} variables ({amount})"
    way_out = "use a smaller n_chains, less weight_memory, or record less"
    check_memory(_footprint(setup), what, way_out)
    try:
        runs = begun(setup, rng, first)
    except MemoryError:
        raise NotEnoughMemory(f"{what} takes more memory than is left; {way_out}") from None
    try:
        if plan.threads > 1:
            _on_threads(runs, plan.threads)
        while not all(run.ended for run in runs):  # a piece of each in turn: whenever this ends, none is left behind
            for run in runs:
                run.advance()
    except KeyboardInterrupt:
        raise Interrupted(_found(setup, runs, began)) from None
    return _found(setup, runs, began)


def to_sample(graph: Graph) -> TableGraph:
    """The compiled graph; ValueError where it has nothing to sample."""
    compiled = compile_tables(graph)
    if not len(compiled.sizes):
        raise ValueError("the graph has no variables; a sampler needs at least one")
    return compiled


def _footprint(setup: Setup) -> float:
    """About how many bytes the arrays of all runs take together, and the result made of them."""
    plan, record, weights = setup.plan, setup.plan.record, setup.weights
    n, n_unary = len(setup.compiled.sizes), len(setup.form.unary)
    n_rows = 0 if isinstance(setup.form, GridForm) else len(setup.form.rows)
    n_samples = setup.n_samples
    n_averages = record.marginals + record.rao_blackwell
    each = 8.0 * (n_unary + n_rows) + 2 * n * (1 + record.best + n_samples) + 8 * plan.n_sweeps * record.trace
    each += n_unary * (4 * record.marginals + 8 * record.rao_blackwell)
    each += weights.n_dense * (4 if weights.fractions else 8 * weights.row_length)
    whole = 8.0 * n_averages * (n_unary + n * int(setup.compiled.sizes.max())) + 4 * n * n_samples * plan.n_chains
    return plan.n_chains * each + whole


def begun(setup: Setup, rng: np.random.Generator, first: NDArray[np.uint16] | None) -> list[Run]:
    """The runs before their first sweep."""
    plan, compiled = setup.plan, setup.compiled
    keys = rng.integers(0, 2**64, (plan.n_chains, 4), dtype=np.uint64)
    drivers: Sequence[Uniforms | None] = [None] * plan.n_chains
    if plan.driving is not None:
        drivers = [plan.driving.begin(setup.n_steps, plan.n_sweeps, r) for r in rng.spawn(plan.n_chains)]
    return [
        Run(setup, random_start(compiled, int(k[3])) if first is None else first.copy(), k, driver)
        for k, driver in zip(keys, drivers, strict=True)
    ]


def _on_threads(runs: list[Run], n_threads: int) -> None:
    """Several runs each on a thread, in turn where they are more; or all threads together on the sweeps of one."""
    stop, n_workers = threading.Event(), min(n_threads, len(runs)) if len(runs) > 1 else 1

    def take_turns(mine: list[Run], pool: ThreadPoolExecutor | None) -> None:
        while not stop.is_set() and not all(run.ended for run in mine):
            for run in mine:
                run.advance(pool)

    # Ctrl-C reaches the main thread alone, which only waits.
    with ThreadPoolExecutor(n_threads) as pool, ThreadPoolExecutor(n_workers) as workers:
        try:
            shared = pool if len(runs) == 1 else None
            for done in [workers.submit(take_turns, runs[w::n_workers], shared) for w in range(n_workers)]:
                done.result()
        finally:
            stop.set()


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """The arrays of one run that the engine reads and writes, by these names (engine/fields.h); None: not wanted.

    ``keys`` uint64[4]: of the streams of draws, scan, weights, start. ``state`` uint16[V]; ``next_state``: that of a
    Jacobi scan. ``unary``, ``rows``: receive the exponentials of the form's rows; ``unary_step``, ``rows_step``: what
    these are multiplied by from sweep to sweep. ``fractions``, ``dense``: the herding weights. The others are what is
    recorded, at first 0: ``counts`` and ``conditional_sums`` in the layout of the unary rows.
    """

    keys: NDArray[np.uint64]
    state: NDArray[np.uint16]
    next_state: NDArray[np.uint16] | None
    unary: Floats
    rows: Floats | None
    unary_step: Floats | None
    rows_step: Floats | None
    fractions: NDArray[np.uint32] | None
    dense: Floats | None
    counts: NDArray[np.uint32] | None
    conditional_sums: Floats | None
    conditional_counts: NDArray[np.uint32] | None
    joint: NDArray[np.uint32] | None
    joint_multipliers: Int64s | None
    trace: Floats | None
    samples: NDArray[np.uint16] | None
    best: NDArray[np.uint16] | None

    @classmethod
    def of(cls, setup: Setup, state: NDArray[np.uint16], keys: NDArray[np.uint64]) -> Arrays:
        plan, form, record, n = setup.plan, setup.form, setup.plan.record, len(state)
        rows = None if isinstance(form, GridForm) else np.empty_like(form.rows)
        fractions, dense = setup.weights.arrays(int(keys[2]), n)
        n_states, joint_multipliers = _joint_places(setup.compiled.sizes) if record.joint else (0, None)
        return cls(
            keys=keys,
            state=state,
            next_state=state.copy() if plan.scan.kind == "jacobi" else None,
            unary=np.empty_like(form.unary),
            rows=rows,
            unary_step=np.empty_like(form.unary) if setup.beta_step else None,
            rows_step=np.empty(8 if rows is None else len(rows)) if setup.beta_step else None,
            fractions=fractions,
            dense=dense,
            counts=np.zeros(len(form.unary), np.uint32) if record.marginals else None,
            conditional_sums=np.zeros(len(form.unary)) if record.rao_blackwell else None,
            conditional_counts=np.zeros(n, np.uint32) if record.rao_blackwell else None,
            joint=np.zeros(n_states, np.uint32) if record.joint else None,
            joint_multipliers=joint_multipliers,
            trace=np.full(plan.n_sweeps, np.nan) if record.trace else None,
            samples=np.empty((setup.n_samples, n), np.uint16) if record.every else None,
            best=state.copy() if record.best else None,
        )


class Run:
    """One run (a Markov chain): its arrays and the engine that works on them, advanced in pieces."""

    def __init__(
        self,
        setup: Setup,
        state: NDArray[np.uint16],
        keys: NDArray[np.uint64],
        driver: Uniforms | None = None,
        instructions: str = "",
    ) -> None:
        """Lays out the arrays of one run, and begins it.

        Args:
            driver: Where uniform numbers come from, None: the generator.
            instructions: None better than these, for tests: "plain", "avx2" or "avx512".
        """
        factors, tables = setup.compiled.factors, setup.plan.record.table_counts
        self.setup, self.driver, self.arrays = setup, driver, Arrays.of(setup, state, keys)
        self.table_counts = tuple(np.zeros(group.tables.shape) for group in factors) if tables else ()
        self.engine = loops.Engine(factors, self.table_counts)
        self.engine.begin(setup, self.arrays, instructions)
        self.piece = min(2**16, setup.n_steps)

    @property
    def done(self) -> int:
        """Updates so far."""
        return self.engine.n_updates

    @property
    def ended(self) -> bool:
        return self.done == self.setup.n_steps * self.setup.plan.n_sweeps

    def advance(self, pool: ThreadPoolExecutor | None = None) -> None:
        """The next piece, if any, of about as many updates as fit between two looks for Ctrl-C.

        On the threads of a ``pool``, if there is one: as many as share a sweep.
        """
        n_steps, done = self.setup.n_steps, self.done
        piece = self.piece if pool is None else max(self.piece // n_steps, 1) * n_steps
        end = min(done + piece, n_steps * self.setup.plan.n_sweeps)
        if end == done:
            return
        began = perf_counter()
        if self.driver is not None:
            self.engine.set_uniforms(self.driver(done, end), done)
        if pool is None:
            self.check(*self.engine.advance(done, end))
        else:
            sweeps = done // n_steps, end // n_steps
            shares = [pool.submit(self.engine.advance_parallel, me, *sweeps) for me in range(self.setup.n_threads)]
            for found in [share.result() for share in shares]:
                self.check(*found)
        seconds = max(perf_counter() - began, 1e-6)
        aim = _PIECE_SECONDS if pool is None else _SHARED_PIECE_SECONDS
        self.piece = max(1, int(piece * min(4.0, aim / seconds)))

    def release(self) -> None:
        """Keeps only what was recorded: weights and exponentials make room for the averages."""
        self.engine.flush()
        del self.engine
        self.arrays = replace(
            self.arrays, unary=np.empty(0), rows=None, unary_step=None, rows_step=None, fractions=None, dense=None
        )

    def check(self, fault: int, variable: int) -> None:
        """Raises what a fault of the engine means."""
        plan = self.setup.plan
        if fault == loops.FAULT_IMPOSSIBLE and plan.scan.kind == "jacobi":
            raise ValueError(
                "the Jacobi scan left the states that -inf entries allow, as it updates all variables at once; use"
                " scan=systematic or checkerboard"
            )
        if fault == loops.FAULT_IMPOSSIBLE:
            raise ValueError(
                f"variable {variable}: its log-potentials add up beyond the range of a double; use smaller ones, or"
                " -inf in place of large penalties"
            )
        if fault == loops.FAULT_WEIGHTS_FULL:
            raise ValueError(
                f"the herding weights need more than weight_memory, {plan.weight_memory} bytes: {self._keys(variable)}"
            )
        if fault:
            raise MemoryError("no memory is left for herding weights; use dhg (sharing=bins(B)), or a smaller n_chains")

    def _keys(self, variable: int) -> str:
        """What the keys of a variable are, and how to have fewer."""
        if self.setup.blocks is not None:
            return (
                "each labelling of what its block is joined to has weights of its own; raise weight_memory, or use"
                " fewer sweeps, or herded=false"
            )
        sharing = self.setup.plan.sharing
        if sharing is not None and sharing.kind.endswith("bins"):
            return f"{sharing.n_bins} bins are too many; raise weight_memory, or use fewer bins"
        degree = len(self.setup.compiled.sizes) - 1
        if sharing is None or sharing.kind != "complete":
            degree = len(self.setup.compiled.graph.blanket(variable))
        return (
            f"variable {variable} has {degree} neighbours, whose states are its keys; raise weight_memory, or use dhg"
            " (sharing=bins(B)), which needs one weight per bin"
        )


def _joint_places(sizes: Int32s) -> tuple[int, Int64s]:
    """The number of states and how far one label of each variable moves, the last variable fastest."""
    states = float(np.prod(sizes.astype(np.float64)))
    if states > _MOST_JOINT:
        raise ValueError(
            f"record.joint counts whole states, but this graph has {states:.3g} of them, more than {_MOST_JOINT};"
            " record marginals, or every=K, instead"
        )
    places = np.concatenate([[1], np.cumprod(sizes[:0:-1], dtype=np.int64)])[::-1]
    return int(states), np.ascontiguousarray(places)


def _found(setup: Setup, runs: list[Run], began: float) -> Result:
    """The result of all runs together, so far."""
    record = setup.plan.record
    kept, n_samples = sum(run.engine.n_recorded for run in runs), min(run.engine.n_samples for run in runs)
    best = max(runs, key=lambda run: run.engine.best_log_potential) if record.best else runs[0]
    whole = best.engine.log_potential_of(best.arrays.best if record.best else None)
    state = best.arrays.best if record.best else best.engine.state(len(setup.compiled.sizes))
    n_updates, ended = sum(run.done for run in runs), min(run.done for run in runs) // setup.n_steps
    for run in runs:
        run.release()
    traces = [run.arrays.trace[:ended] for run in runs if run.arrays.trace is not None]
    samples = [run.arrays.samples[:n_samples] for run in runs if run.arrays.samples is not None]
    averages = _averages(setup, [run.arrays for run in runs], kept) if kept else _Averages()
    if kept and record.table_counts:
        groups = zip(*(run.table_counts for run in runs), strict=True)
        averages["table_counts"] = tuple(np.sum(parts, axis=0) / kept for parts in groups)
    return Result(
        state=np.asarray(state, np.int32),
        log_potential=whole,
        trace=np.stack(traces) if traces else None,
        samples=np.stack(samples).astype(np.int32) if samples else None,
        sample_sweeps=setup.plan.burn_in + record.every * np.arange(n_samples) if samples else None,
        n_updates=n_updates,
        seconds=perf_counter() - began,
        **averages,
    )


class _Averages(TypedDict, total=False):
    marginals: Floats
    rao_blackwell: Floats
    table_counts: tuple[Floats, ...]
    joint: Floats


def _averages(setup: Setup, runs: list[Arrays], kept: int) -> _Averages:
    """What is averaged over the ``kept`` sweeps of all runs."""
    record, form, sizes = setup.plan.record, setup.form, setup.compiled.sizes
    found = _Averages()
    if record.marginals:
        shares = _total([run.counts for run in runs])
        shares /= kept
        found["marginals"] = _by_label(sizes, form, shares)
    if record.rao_blackwell:
        counts = _total([run.conditional_counts for run in runs])
        never = np.flatnonzero(counts == 0)  # of a given scan: these keep their labels
        counts[never] = 1.0
        means = _total([run.conditional_sums for run in runs])
        means /= counts if isinstance(form, GridForm) else np.repeat(counts, form.widths)
        found["rao_blackwell"] = _by_label(sizes, form, means)
        if len(never):
            found["rao_blackwell"][never] = 0.0
            for run in runs:
                found["rao_blackwell"][never, run.state[never]] += 1.0 / len(runs)
    if record.joint:
        found["joint"] = (_total([run.joint for run in runs]) / kept).reshape(sizes)
    return found


def _total(parts: Sequence[Floats | NDArray[np.uint32] | None]) -> Floats:
    recorded = [part for part in parts if part is not None]
    total = recorded[0].astype(np.float64)
    for part in recorded[1:]:
        total += part
    return total


def _by_label(sizes: Int32s, form: Conditionals | GridForm, rows: Floats) -> Floats:
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
