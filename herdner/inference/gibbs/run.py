"""One chain of a sampler: its arrays, handed to the compiled engine, and its progress piece by piece."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from herdner._ext import gibbs as loops
from herdner._ext.conditionals import independent as mark_independent
from herdner.graph.grids import GridForm
from herdner.inference.gibbs.setup import Setup

_PIECE_SECONDS = 0.1  # between looks for Ctrl-C
_MOST_JOINT = 2**24


def _equal_step(betas: NDArray[np.float64] | None) -> float:
    """By how much annealing rises from sweep to sweep, 0 where it does not rise or not in equal steps."""
    if betas is None or len(betas) < 2 or betas[1] <= betas[0]:
        return 0.0
    steps = np.diff(betas)
    return float(steps[0]) if np.ptp(steps) < 1e-12 * abs(betas).max() else 0.0


@dataclass
class Chain:
    """One chain: its state and what it records, advanced in pieces."""

    shared: Setup
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
        self.engine.set_groups(shared.compiled.factors)
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
                raise self.error(fault, variable)

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

    def error(self, fault: int, variable: int) -> Exception:
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
