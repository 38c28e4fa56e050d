"""The Gibbs family as a backend: allocation of the runs of a plan, updates in pieces, and the result of all runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import gibbs as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.memory import NotEnoughMemory, check_memory
from herdner.base.seeds import Seed, generator
from herdner.graph.chains import constant_term
from herdner.graph.conditionals import Conditionals
from herdner.graph.grids import GridForm
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import SAMPLER_CAPABILITIES, Capabilities, Interrupted
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.driving import Uniforms
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.setup import Setup
from herdner.inference.gibbs.start import check_start, random_start
from herdner.inference.record import Record
from herdner.inference.result import Result

_PIECE_SECONDS = 0.1  # time between checks for Ctrl-C
_SHARED_PIECE_SECONDS = 0.02  # if threads share a sweep, as they wait longer for each other on a busy machine
_MOST_JOINT = 2**24  # largest number of joint states that can be counted


@dataclass(frozen=True, slots=True)
class Gibbs(Plan):
    """Gibbs sampling and herded Gibbs sampling in all variants.

    The options are those of `herdner.inference.gibbs.Plan`.
    """

    capabilities: ClassVar[Capabilities] = SAMPLER_CAPABILITIES

    def infer(
        self,
        graph: Graph,
        seed: Seed = None,
        *,
        start: ArrayLike | None = None,
        record: Record | None = None,
        blocks: Blocks | None = None,
    ) -> Result:
        """Sample from one graph, in time O(n_sweeps x factors).

        Entries of -inf, such as those of tag schemes, can divide the joint states into parts that no change of a single
        variable connects. A run then visits only the part that contains its start, and its marginals are those of this
        part.

        Args:
            graph: A graph of discrete variables.
            seed: Source of randomness; the same seed gives the same result.
            start: int[V], a joint state with a log-potential above -inf; None draws one and repairs it if necessary.
            record: Results to record; None uses the option ``record``.
            blocks: Blocks of variables that are drawn jointly, as `BlockedGibbs` passes them; None draws single
                variables.

        Returns:
            The result of all runs.

        Raises:
            ValueError: The start or an option does not fit the graph, or the weights need too much memory.
            ImpossibleGraph: Entries of -inf forbid all states of a variable.
            Interrupted: Ctrl-C stopped the sweeps.
        """
        began = perf_counter()
        compiled = compile_samplable(graph)
        self.scan.check(len(compiled.sizes))
        setup = Setup.of(self if record is None else replace(self, record=record), compiled, blocks)
        runs = _allocate(setup, generator(seed), start)
        try:
            if setup.plan.threads > 1:
                _on_threads(runs, setup.plan.threads)
            while unfinished := [run for run in runs if not run.is_finished]:
                for run in unfinished:  # in turn, so that an interruption leaves all runs at about the same sweep
                    run.end_piece(*run.engine.advance(*run.begin_piece()))
        except KeyboardInterrupt:
            raise Interrupted(_result(setup, runs, began)) from None
        return _result(setup, runs, began)


def _allocate(setup: Setup, rng: np.random.Generator, start: ArrayLike | None) -> list[Run]:
    """Check the start state, and allocate all runs; raise `NotEnoughMemory` if they do not fit into memory."""
    plan, compiled = setup.plan, setup.compiled
    first = None if start is None else check_start(compiled, start)
    amount = f"n_chains={plan.n_chains}, n_sweeps={plan.n_sweeps}, record={plan.record}"
    what = f"sampling {len(compiled.sizes):,} variables ({amount})"
    remedy = "use a smaller n_chains, less weight_memory, or record less"
    check_memory(_footprint(setup), what, remedy)
    try:
        return begin_runs(setup, rng, first)
    except MemoryError:
        raise NotEnoughMemory(f"{what} needs more memory than is available; {remedy}") from None


def compile_samplable(graph: Graph) -> TableGraph:
    """Compile a graph for samplers, and raise an error if samplers cannot run on it.

    Args:
        graph: A graph of discrete variables and tables.

    Returns:
        The compiled graph.

    Raises:
        ValueError: The graph has no variables, or a variable has too many states.
        ImpossibleGraph: A constant factor is -inf.
    """
    compiled = compile_tables(graph)
    sizes = compiled.sizes
    if not len(sizes):
        raise ValueError(
            "a sampler needs at least one unobserved variable, but the graph has none; observe fewer variables"
        )
    constant_term(compiled.factors)
    if sizes.max() > loops.STATES_LIMIT:
        raise ValueError(
            f"variable {sizes.argmax()} has {sizes.max()} states; samplers support at most {loops.STATES_LIMIT} states"
        )
    return compiled


def _footprint(setup: Setup) -> float:
    """Return the approximate number of bytes that the arrays of all runs and of their result need."""
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


def begin_runs(setup: Setup, rng: np.random.Generator, first: NDArray[np.uint16] | None) -> list[Run]:
    """Allocate all runs of a setup, one for each chain.

    Args:
        setup: The setup.
        rng: Source of randomness.
        first: uint16[V], the start of all runs; None draws a start for each run.

    Returns:
        The runs before their first sweep.
    """
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
    """Finish the runs on threads: several runs in parallel, or a single run whose sweeps all threads share."""
    stop, n_workers = threading.Event(), min(n_threads, len(runs)) if len(runs) > 1 else 1

    def take_turns(mine: list[Run], pool: ThreadPoolExecutor | None) -> None:
        while not stop.is_set() and (unfinished := [run for run in mine if not run.is_finished]):
            for run in unfinished:
                if pool is None:
                    run.end_piece(*run.engine.advance(*run.begin_piece()))
                else:
                    run.advance_on(pool)

    # Only the main thread receives Ctrl-C, so it waits and does no work.
    with ThreadPoolExecutor(n_threads) as pool, ThreadPoolExecutor(n_workers) as workers:
        try:
            shared = pool if len(runs) == 1 else None
            for future in [workers.submit(take_turns, runs[w::n_workers], shared) for w in range(n_workers)]:
                future.result()
        finally:
            stop.set()


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """Arrays of one run of a sampler: states, exponentials of log-potentials, herding weights and recorded values.

    The compiled engine reads and writes the arrays, and finds the fields by name (engine/fields.h).

    An array that the plan does not need is None. Counts and sums are initially 0.

    Attributes:
        keys: uint64[4], the keys of the streams of draws, scan, weights and start.
        state: uint16[V], the start. The engine changes a copy that Python code cannot reach; a run has no state here.
        next_state: uint16[V], likewise, for the next joint state of a Jacobi scan.
        unary: float64, exponentials of the form's unary rows.
        rows: float64, exponentials of the form's other rows.
        unary_step: float64, multipliers of ``unary`` from sweep to sweep.
        rows_step: float64, multipliers of ``rows`` from sweep to sweep.
        fractions: uint32, dense herding weights of two-state variables.
        dense: float64, dense herding weights.
        counts: uint32, visits of each state, in the layout of the unary rows.
        conditional_sums: float64, sums of the conditional distributions that the draws used, in the layout of the unary
            rows.
        conditional_counts: uint32[V], number of conditional distributions in each sum.
        joint: uint32, visits of each joint state.
        joint_multipliers: int64[V], the multiplier of each variable in the index of a joint state.
        trace: float64[n_sweeps], the log-potential after each sweep.
        samples: uint16[S, V], recorded joint states.
        best: uint16[V], the joint state of largest log-potential.
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
        """Allocate the arrays of a run.

        Args:
            setup: The setup.
            state: uint16[V], the start.
            keys: uint64[4], the keys of the run's streams.

        Returns:
            The arrays.
        """
        plan, form, record, n = setup.plan, setup.form, setup.plan.record, len(state)
        rows = None if isinstance(form, GridForm) else np.empty_like(form.rows)
        fractions, dense = setup.weights.arrays(int(keys[2]), n)
        n_states, joint_multipliers = _joint_strides(setup.compiled.sizes) if record.joint else (0, None)
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
    """One run of a sampler (a Markov chain).

    The caller advances the run in pieces. A piece is a number of updates.

    Attributes:
        setup: The setup that all runs share.
        driver: Sequence of uniform numbers; None is the generator of the engine.
        arrays: The arrays of this run.
        table_counts: Counts of the cells of each group's tables, if recorded.
        engine: The compiled loop.
        piece: Number of updates of the next piece.
        piece_began: Clock time at which the current piece began, in seconds.
    """

    def __init__(
        self,
        setup: Setup,
        state: NDArray[np.uint16],
        keys: NDArray[np.uint64],
        driver: Uniforms | None = None,
        instructions: str = "",
    ) -> None:
        """Allocate the arrays of a run, and initialise the engine.

        Args:
            setup: The setup.
            state: uint16[V], the start.
            keys: uint64[4], the keys of the run's streams.
            driver: Sequence of uniform numbers; None is the generator of the engine.
            instructions: Best instruction set to use, for tests: "plain", "avx2" or "avx512"; "" is the best available.
        """
        factors, tables = setup.compiled.factors, setup.plan.record.table_counts
        self.setup, self.driver, self.arrays = setup, driver, Arrays.of(setup, state, keys)
        self.table_counts = tuple(np.zeros(group.tables.shape) for group in factors) if tables else ()
        self.engine = loops.Engine(factors, self.table_counts)
        self.engine.begin(setup, self.arrays, instructions)
        self.arrays = replace(self.arrays, state=state[:0].copy(), next_state=None)  # the engine has copies
        self.piece, self.piece_began = min(2**16, setup.n_steps), 0.0

    @property
    def n_updates(self) -> int:
        """Number of updates that the run has made."""
        return self.engine.n_updates

    @property
    def is_finished(self) -> bool:
        """True after the last sweep of the run."""
        return self.n_updates == self.setup.n_steps * self.setup.plan.n_sweeps

    def begin_piece(self) -> tuple[int, int]:
        """Prepare the next piece: a number of updates so small that the caller can soon respond to Ctrl-C.

        Returns:
            The first update of the piece, and the update after the piece, for `loops.Engine.advance`.
        """
        start = self.n_updates
        end = min(start + self.piece, self.setup.n_steps * self.setup.plan.n_sweeps)
        self.piece_began = perf_counter()
        if self.driver is not None:
            self.engine.set_uniforms(self.driver(start, end), start)
        return start, end

    def end_piece(self, fault: int, variable: int, is_shared: bool = False) -> None:
        """Raise the error of a piece if it failed, and choose the number of updates of the next piece.

        Args:
            fault: Code of the fault; 0 is success.
            variable: Index of the variable at which the fault occurred.
            is_shared: Threads share the sweeps of the run.
        """
        self.check(fault, variable)
        aim = _SHARED_PIECE_SECONDS if is_shared else _PIECE_SECONDS
        elapsed = max(perf_counter() - self.piece_began, 1e-6)
        self.piece = max(1, int(self.piece * min(4.0, aim / elapsed)))

    def advance_on(self, pool: ThreadPoolExecutor) -> None:
        """Run the next sweeps on threads that share the updates of each sweep.

        Args:
            pool: The threads.
        """
        n_steps = self.setup.n_steps
        self.piece = max(self.piece // n_steps, 1) * n_steps
        first, last = (update // n_steps for update in self.begin_piece())
        shares = [pool.submit(self.engine.advance_parallel, me, first, last) for me in range(self.setup.n_threads)]
        results = [share.result() for share in shares]
        self.end_piece(*next((each for each in results if each[0]), results[0]), is_shared=True)

    def release(self) -> None:
        """Free the herding weights and the cached exponentials, so that enough memory is left for the averages."""
        self.engine.flush()
        del self.engine
        self.arrays = replace(
            self.arrays, unary=np.empty(0), rows=None, unary_step=None, rows_step=None, fractions=None, dense=None
        )

    def check(self, fault: int, variable: int) -> None:
        """Raise the error that belongs to a fault code of the compiled engine.

        Args:
            fault: Code of the fault; 0 is success.
            variable: Index of the variable at which the fault occurred.

        Raises:
            ValueError: The scan reached a forbidden state, log-potentials overflowed, or the weights exceed
                their memory.
            MemoryError: No memory is left for herding weights.
        """
        plan = self.setup.plan
        if fault == loops.FAULT_IMPOSSIBLE and plan.scan.kind == "jacobi":
            raise ValueError(
                "the Jacobi scan reached a state that -inf entries forbid, because it updates all variables at once;"
                " use a systematic or checkerboard scan"
            )
        if fault == loops.FAULT_IMPOSSIBLE:
            raise ValueError(
                f"the log-potentials of variable {variable} add up beyond the range of doubles; use smaller"
                " log-potentials, or -inf in place of large penalties"
            )
        if fault == loops.FAULT_WEIGHTS_FULL:
            raise ValueError(
                f"the herding weights need more than weight_memory={plan.weight_memory} bytes:"
                f" {self._weight_advice(variable)}"
            )
        if fault:
            raise MemoryError("no memory is left for herding weights; use the backend dhg, or a smaller n_chains")

    def _weight_advice(self, variable: int) -> str:
        """Return the end of the error message for too many herding weights: the reason and the remedies."""
        if self.setup.blocks is not None:
            return (
                "each joint state of the neighbours of a block has its own weights; increase weight_memory, use fewer"
                " sweeps, or set herded=false"
            )
        sharing = self.setup.plan.sharing
        if sharing is not None and sharing.kind.endswith("bins"):
            return f"{sharing.n_bins} bins are too many; increase weight_memory, or use fewer bins"
        degree = len(self.setup.compiled.sizes) - 1
        if sharing is None or sharing.kind != "complete":
            degree = len(self.setup.compiled.graph.blanket(variable))
        return (
            f"variable {variable} has {degree} neighbours, and each of their joint states has a weight; increase"
            " weight_memory, or use the backend dhg (sharing=bins(B)), which needs one weight per bin"
        )


def _joint_strides(sizes: Int32s) -> tuple[int, Int64s]:
    """Return the number of joint states, and the stride of each variable in the index of a joint state.

    The stride of the last variable is 1.
    """
    states = float(np.prod(sizes.astype(np.float64)))
    if states > _MOST_JOINT:
        raise ValueError(
            f"a run can record the frequencies of at most {_MOST_JOINT} joint states, but this graph has {states:.3g};"
            " instead of `joint`, record `marginals`, or every K-th state by `every=K`"
        )
    strides = np.concatenate([[1], np.cumprod(sizes[:0:-1], dtype=np.int64)])[::-1]
    return int(states), np.ascontiguousarray(strides)


def _result(setup: Setup, runs: list[Run], began: float) -> Result:
    """Return the result of all updates that the runs have made."""
    record = setup.plan.record
    n_recorded = [max(0, run.n_updates // setup.n_steps - setup.plan.burn_in) for run in runs]
    n_kept, n_samples = sum(n_recorded), -(-min(n_recorded) // record.every) if record.every else 0
    best = max(runs, key=lambda run: run.engine.best_log_potential) if record.best else runs[0]
    log_potential = best.engine.log_potential_of(best.arrays.best if record.best else None)
    n = len(setup.compiled.sizes)
    state = best.arrays.best if record.best else best.engine.state(n)
    last_states = [run.engine.state(n) for run in runs] if record.rao_blackwell else []
    n_updates, n_sweeps = sum(run.n_updates for run in runs), min(run.n_updates for run in runs) // setup.n_steps
    for run in runs:
        run.release()
    traces = [run.arrays.trace[:n_sweeps] for run in runs if run.arrays.trace is not None]
    samples = [run.arrays.samples[:n_samples] for run in runs if run.arrays.samples is not None]
    averages = _averages(setup, [run.arrays for run in runs], last_states, n_kept) if n_kept else _Averages()
    if n_kept and record.table_counts:
        groups = zip(*(run.table_counts for run in runs), strict=True)
        averages["table_counts"] = tuple(np.sum(parts, axis=0) / n_kept for parts in groups)
    return Result(
        state=np.asarray(state, np.int32),
        log_potential=log_potential,
        trace=np.stack(traces) if traces else None,
        samples=np.stack(samples).astype(np.int32) if samples else None,
        sample_sweeps=setup.plan.burn_in + record.every * np.arange(n_samples) if samples else None,
        n_updates=n_updates,
        seconds=perf_counter() - began,
        **averages,
    )


class _Averages(TypedDict, total=False):
    """Fields of a result that are averages over sweeps and runs."""

    marginals: Floats
    rao_blackwell: Floats
    table_counts: tuple[Floats, ...]
    joint: Floats


def _averages(setup: Setup, runs: list[Arrays], last_states: list[Int32s], n_kept: int) -> _Averages:
    """Average the records of all sweeps and runs.

    ``n_kept`` is the number of recorded sweeps. ``last_states`` are the states after the last sweep of each run; they
    are read for `rao_blackwell` only.
    """
    record, form, sizes = setup.plan.record, setup.form, setup.compiled.sizes
    averages = _Averages()
    if record.marginals:
        shares = _total([run.counts for run in runs])
        shares /= n_kept
        averages["marginals"] = _by_state(sizes, form, shares)
    if record.rao_blackwell:
        counts = _total([run.conditional_counts for run in runs])
        never = np.flatnonzero(counts == 0)  # variables that a fixed scan does not update keep their states
        counts[never] = 1.0
        means = _total([run.conditional_sums for run in runs])
        means /= counts if isinstance(form, GridForm) else np.repeat(counts, form.widths)
        averages["rao_blackwell"] = _by_state(sizes, form, means)
        if len(never):
            averages["rao_blackwell"][never] = 0.0
            for state in last_states:
                averages["rao_blackwell"][never, state[never]] += 1.0 / len(runs)
    if record.joint:
        averages["joint"] = (_total([run.joint for run in runs]) / n_kept).reshape(sizes)
    return averages


def _total(parts: Sequence[Floats | NDArray[np.uint32] | None]) -> Floats:
    """Return the sum of the arrays that are not None. At least one must not be None."""
    recorded = [part for part in parts if part is not None]
    total = recorded[0].astype(np.float64)
    for part in recorded[1:]:
        total += part
    return total


def _by_state(sizes: Int32s, form: Conditionals | GridForm, rows: Floats) -> Floats:
    """Convert the concatenated state probabilities of all variables to an array [V, K].

    The row of a two-state variable has only the probability of state 1.
    """
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
