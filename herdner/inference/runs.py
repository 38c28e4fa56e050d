"""Running a Gibbs plan: its arrays, its chains on threads, its results; what happens when it is interrupted."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import gibbs as loops
from herdner._ext.conditionals import independent as mark_independent
from herdner.graph.conditionals import Conditionals, colours
from herdner.graph.grids import GridForm
from herdner.graph.tables import TableGraph
from herdner.inference.backend import Interrupted
from herdner.inference.blocks import Blocks
from herdner.inference.start import given_start, random_start
from herdner.inference.sweeps import constant
from herdner.inference.weights import Weights, dependencies, lay_out
from herdner.sampling.annealing import Annealing
from herdner.sampling.plan import Plan
from herdner.sampling.result import Result

_PIECE_SECONDS = 0.1  # between looks for Ctrl-C
_SAFE = 680.0  # nats: the product of a variable's rows, and 2^32 divided by it, stay normal doubles
_MOST_JOINT = 2**24


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
    shared = _Shared.of(plan, compiled, blocks)
    first = None if start is None else given_start(compiled, start)
    keys = rng.integers(0, 2**64, (plan.n_chains, 4), dtype=np.uint64)
    drivers = [None] * plan.n_chains
    if plan.driving is not None:
        drivers = [plan.driving.begin(shared.n_steps, plan.n_sweeps, r) for r in rng.spawn(plan.n_chains)]
    chains = [
        Chain(shared, random_start(compiled, int(k[3])) if first is None else first.copy(), k, driver)
        for k, driver in zip(keys, drivers, strict=True)
    ]
    try:
        _run(plan, chains)
    except KeyboardInterrupt:
        raise Interrupted(gathered(shared, chains, began)) from None
    return gathered(shared, chains, began)


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


@dataclass(frozen=True)
class _Shared:
    """What all chains of a run have in common."""

    plan: Plan
    compiled: TableGraph
    form: Conditionals | GridForm
    loop: str
    weights: Weights
    order: NDArray[np.int32] | None
    colour_starts: NDArray[np.int64]
    betas: NDArray[np.float64] | None
    careful: NDArray[np.uint8] | None
    blocks: Blocks | None

    @classmethod
    def of(cls, plan: Plan, compiled: TableGraph, blocks: Blocks | None) -> _Shared:
        betas = plan.annealing.betas(plan.n_sweeps) if isinstance(plan.annealing, Annealing) else None
        hottest = 1.0 if betas is None else max(1.0, float(betas.max(initial=0.0)))
        form, careful = compiled.grid, None
        general = plan.loop == "general" or plan.dummy_edges is not None or blocks is not None
        if form is None or form.spread * hottest > _SAFE or general:
            form = compiled.conditionals
            careful = (form.spread * hottest > _SAFE).astype(np.uint8)
        loop = "any" if plan.loop == "general" else _loop(form)
        order, starts = _order(plan, compiled, form)
        weights = lay_out(plan, compiled.sizes, form, loop)
        careful = careful if careful is not None and careful.any() else None
        return cls(plan, compiled, form, loop, weights, order, starts, betas, careful, blocks)

    @property
    def n_steps(self) -> int:
        """Updates of a sweep."""
        return len(self.compiled.sizes) if self.order is None else len(self.order)


def _loop(form: Conditionals | GridForm) -> str:
    """The fastest loop that fits."""
    if isinstance(form, GridForm):
        return "grid"
    if form.others_at is not None or form.sizes.min() != form.sizes.max() or form.sizes[0] < 2:
        return "any"
    return "two" if form.sizes[0] == 2 else "labels"


def _order(
    plan: Plan, compiled: TableGraph, form: Conditionals | GridForm
) -> tuple[NDArray[np.int32] | None, NDArray[np.int64]]:
    """The order of a sweep, None for 0, 1, .., and where each colour begins."""
    n = len(compiled.sizes)
    if plan.scan.kind != "checkerboard":
        return plan.scan.order, np.array([0, n if plan.scan.order is None else len(plan.scan.order)])
    if plan.herds and plan.sharing is not None and plan.sharing.kind == "complete":
        return None, np.arange(n + 1)
    if isinstance(form, GridForm) and not (form.wraps and (form.rows % 2 or form.columns % 2)):
        colour = np.add.outer(np.arange(form.rows) % 2, np.arange(form.columns) % 2).ravel() % 2
    else:
        colour, _ = colours(dependencies(plan, compiled.conditionals))
    order = np.argsort(colour, kind="stable").astype(np.int32)
    return order, np.concatenate([[0], np.cumsum(np.bincount(colour))]).astype(np.int64)


def _equal_step(betas: NDArray[np.float64] | None) -> float:
    """By how much annealing rises from sweep to sweep, 0 where it does not rise or not in equal steps."""
    if betas is None or len(betas) < 2 or betas[1] <= betas[0]:
        return 0.0
    steps = np.diff(betas)
    return float(steps[0]) if np.ptp(steps) < 1e-12 * abs(betas).max() else 0.0


@dataclass
class Chain:
    """One chain: its state and what it records, advanced in pieces."""

    shared: _Shared
    state: NDArray[np.uint16]
    keys: NDArray[np.uint64]
    driver: object | None
    piece: int = 1
    arrays: dict[str, NDArray] = field(default_factory=dict)
    table_counts: tuple[NDArray[np.float64], ...] = ()

    def __post_init__(self) -> None:
        shared, plan, form = self.shared, self.shared.plan, self.shared.form
        self.piece = min(2**16, shared.n_steps)
        self.engine = loops.Run()
        other = self.state.copy() if plan.scan.kind == "jacobi" else self.state
        unary = np.empty_like(form.unary)
        if isinstance(form, GridForm):
            self.engine.set_grid(form, self.state, other, unary)
        else:
            independent = None
            if shared.loop == "two":
                form, independent = form.padded, np.empty(len(self.state) // loops.BATCH_SIZE, np.uint8)
                mark_independent(form.starts, form.others, loops.BATCH_SIZE, independent)
            self.engine.set_model(
                form, self.state, other, unary, np.empty_like(form.rows), shared.careful, shared.loop, independent
            )
        step = _equal_step(shared.betas)
        if step:
            rows = np.empty_like(form.sides.ravel() if isinstance(form, GridForm) else form.rows)
            self.engine.set_step(np.empty_like(form.unary), rows, step)
        self.start_log_potential = self.engine.set_groups(shared.compiled.factors)
        self._set_draws()
        self.engine.set_scan(
            shared.n_steps, shared.order, plan.scan.kind == "random", plan.scan.kind == "jacobi", self.keys[0],
            self.keys[1], shared.betas, shared.colour_starts, plan.threads if plan.n_chains == 1 else 1,
        )  # fmt: skip
        if shared.blocks is not None:
            b = shared.blocks
            self.engine.set_blocks(b.first, b.edge_table, b.tables, b.range, b.longest)
        self._set_record()

    def _set_draws(self) -> None:
        plan, w = self.shared.plan, self.shared.weights
        sharing = plan.sharing
        n = len(self.state)
        fractions, dense = w.arrays(int(self.keys[2]), n)
        own = plan.scan.kind in ("systematic", "checkerboard", "jacobi")
        n_tables = (-(-self.shared.n_steps // loops.SHARD_SIZE) if own else 1) if w.hashed else 0
        one = 2.0**32 if plan.numbers == "fixed" else 1.0
        self.engine.set_draws(
            w.draw, sharing.kind if sharing else "blanket", one, plan.form == "circular",
            sharing.n_bins if sharing else 1, min(plan.error_bound, 1e300), w.key_starts, w.key_members, w.long_keys,
            w.place, w.bin_places, self.keys[2], fractions, dense, w.weights_at, w.n_keys, w.words,
            plan.weight_memory // max(n_tables, 1), n_tables,
        )  # fmt: skip

    def _set_record(self) -> None:
        record, form, plan = self.shared.plan.record, self.shared.form, self.shared.plan
        n, factors = len(self.state), self.shared.compiled.factors
        if record.table_counts:
            self.table_counts = tuple(np.zeros(group.tables.shape) for group in factors)
        if record.marginals:
            self.arrays["counts"] = np.zeros(len(form.unary), np.uint32)
        if record.rao_blackwell:
            self.arrays["conditional_sums"] = np.zeros(len(form.unary))
            self.arrays["conditional_counts"] = np.zeros(n, np.uint32)
        if record.joint:
            n_states, self.arrays["joint_place"] = _joint_places(self.shared.compiled.sizes)
            self.arrays["joint"] = np.zeros(n_states, np.uint32)
        if record.trace:
            self.arrays["trace"] = np.full(plan.n_sweeps, np.nan)
        if record.every:
            n_samples = -(-(plan.n_sweeps - plan.burn_in) // record.every)
            self.arrays["samples"] = np.empty((n_samples, n), np.uint16)
        if record.best:
            self.arrays["best"] = self.state.copy()
        self.engine.set_record(record.follows, self.arrays, self.table_counts, max(record.every, 1), plan.burn_in)

    @property
    def done(self) -> int:
        """Updates so far."""
        return self.engine.done

    @property
    def ended(self) -> bool:
        return self.done == self.shared.n_steps * self.shared.plan.n_sweeps

    def advance(self, pool: ThreadPoolExecutor | None, n_threads: int) -> None:
        """The next piece, of about as many updates as fit between two looks for Ctrl-C."""
        n_steps = self.shared.n_steps
        piece = self.piece if pool is None else max(self.piece // n_steps, 1) * n_steps
        began = perf_counter()
        self._advance(min(self.done + piece, n_steps * self.shared.plan.n_sweeps), pool, n_threads)
        seconds = max(perf_counter() - began, 1e-6)
        self.piece = max(1, int(piece * min(4.0, _PIECE_SECONDS / seconds)))

    def _advance(self, end: int, pool: ThreadPoolExecutor | None, n_threads: int) -> None:
        n_steps = self.shared.n_steps
        if self.driver is not None:
            self.engine.drive(self.driver(self.done, end), self.done)  # type: ignore[operator]
        if pool is None:
            faults = [self.engine.advance(self.done, end)]
        else:
            sweeps = self.done // n_steps, end // n_steps
            shares = [pool.submit(self.engine.advance_together, me, *sweeps) for me in range(n_threads)]
            faults = [share.result() for share in shares]
        for fault, variable in faults:
            if fault:
                raise self._error(fault, variable)

    def _keys(self, variable: int) -> str:
        """What the keys of a variable are, and how to have fewer."""
        sharing = self.shared.plan.sharing
        if sharing is not None and sharing.kind.endswith("bins"):
            return f"{sharing.n_bins} bins are too many; raise weight_memory, or use fewer bins"
        degree = len(self.shared.compiled.sizes) - 1
        if sharing is None or sharing.kind != "complete":
            degree = len(self.shared.compiled.graph.blanket(variable))
        return (
            f"variable {variable} has {degree} neighbours, whose states are its keys; raise weight_memory, or use dhg"
            " (sharing=bins(B)), which needs one weight per bin"
        )

    def _error(self, fault: int, variable: int) -> Exception:
        plan = self.shared.plan
        if fault == loops.FORBIDDEN:
            return ValueError(
                "the Jacobi scan left the states that -inf entries allow, as it updates all variables at once; use"
                " scan=systematic or checkerboard"
            )
        if fault == loops.FULL:
            return ValueError(
                f"the herding weights need more than weight_memory, {plan.weight_memory} bytes: {self._keys(variable)}"
            )
        return MemoryError("no memory is left for herding weights; use dhg (sharing=bins(B)), or fewer chains")


def _joint_places(sizes: NDArray[np.int32]) -> tuple[int, NDArray[np.int64]]:
    """The number of states and how far one label of each variable moves, the last variable fastest."""
    states = float(np.prod(sizes.astype(np.float64)))
    if states > _MOST_JOINT:
        raise ValueError(
            f"record.joint counts whole states, but this graph has {states:.3g} of them, more than {_MOST_JOINT};"
            " record marginals, or every=K, instead"
        )
    places = np.concatenate([[1], np.cumprod(sizes[:0:-1], dtype=np.int64)])[::-1]
    return int(states), np.ascontiguousarray(places)


def gathered(shared: _Shared, chains: list[Chain], began: float) -> Result:
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


def _averages(shared: _Shared, chains: list[Chain], kept: int) -> dict:
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


def _paths(shared: _Shared, chains: list[Chain]) -> dict:
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
