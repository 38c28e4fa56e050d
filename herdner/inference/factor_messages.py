"""Message passing on graphs with factors of any arity: the layout for the compiled loops, and the schedules."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal

import numpy as np

from herdner._ext import factor_messages as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.memory import check_memory
from herdner.graph.graph import ImpossibleGraph
from herdner.inference.elimination_order import ReducedGraph

Schedule = Literal["flooding", "residual"]
"""Order of messages: all simultaneously in each sweep, or the message with the largest residual first."""

_FIRST_MESSAGES = 1024  # messages before the first check of the clock
_PIECE_SECONDS = 0.02  # least time between two checks of the clock that is aimed at
_BYTES_PER_CELL = 24  # for a table cell, which is stored twice as a logarithm and once as a potential
_BYTES_PER_ENTRY = 64  # for an entry of a message and the indices of its slot


@dataclass(frozen=True, slots=True, eq=False)
class FactorLayout:
    """Arrays of all factors of a graph for the compiled loops.

    A slot is one variable of one factor.

    Attributes:
        sizes: int32[V], number of states of each variable. Each variable has at least one factor.
        scope: int32[S], the variable of each slot.
        factor_at: int64[F + 1], the first slot of each factor.
        tables: float64, the log-potentials of all factors, one table after the other. The log-potentials of a factor
            with a weight below 1 are divided by the weight.
        weights: float64[F], the weight of each factor in tree-reweighted belief propagation, 1 in belief propagation.
    """

    sizes: Int32s
    scope: Int32s
    factor_at: Int64s
    tables: Floats
    weights: Floats

    @classmethod
    def of(cls, reduced: ReducedGraph, weights: Floats | None = None) -> FactorLayout:
        """Build the arrays from a reduced graph; a variable without factors gets a factor with log-potentials of 0.

        Args:
            reduced: The graph.
            weights: float64[F], the weight of each factor of the reduced graph; None is 1 for all.

        Returns:
            The layout of the messages between factors and variables.

        Raises:
            NotEnoughMemory: The tables and messages do not fit into memory.
        """
        sizes = np.array(reduced.sizes, np.int32)
        scope = np.array([v for scope in reduced.scopes for v in scope], np.int32)
        n_cells = sum(table.size for table in reduced.tables)
        check_memory(
            _BYTES_PER_CELL * n_cells + _BYTES_PER_ENTRY * float(sizes[scope].sum()),
            f"message passing on {len(reduced.scopes):,} factors",
            "use gibbs, which needs the least memory, or a smaller graph",
        )
        isolated = np.setdiff1d(np.arange(len(sizes), dtype=np.int32), scope)
        factor_weights = np.ones(len(reduced.scopes)) if weights is None else weights
        tables = [table.ravel() / weight for table, weight in zip(reduced.tables, factor_weights, strict=True)]
        arities = [len(scope) for scope in reduced.scopes] + [1] * len(isolated)
        return cls(
            sizes=sizes,
            scope=np.concatenate([scope, isolated]),
            factor_at=np.concatenate([[0], np.cumsum(arities, dtype=np.int64)]),
            tables=np.concatenate([*tables, np.zeros(int(sizes[isolated].sum()))]),
            weights=np.concatenate([factor_weights, np.ones(len(isolated))]),
        )


@dataclass(slots=True, eq=False)
class MessagePassing:
    """Run of message passing: the compiled loop, its schedule, and the progress.

    Attributes:
        layout: The graph.
        n_sweeps: Largest number of sweeps. The residual schedule computes at most as many messages as this number of
            sweeps.
        tolerance: The messages have converged if a sweep changes no message (on a scale from 0 to 1) and no marginal
            probability by more than ``tolerance * damping``.
        damping: Weight of a new message against the previous one, in the log domain; 1 is undamped.
        schedule: Order of the messages.
        seconds: Time limit in seconds; None is unlimited.
        maximise: Take maxima in place of sums.
        loop: The compiled loop with all messages.
        n_messages: Number of messages that were computed.
        converged: True if the messages have converged.
        residual: Largest change of a message or a marginal probability in the last sweep; infinite before the first
            sweep.
        interrupted: True if Ctrl-C stopped the run. The messages stay valid.
    """

    layout: FactorLayout
    n_sweeps: int
    tolerance: float
    damping: float
    schedule: Schedule = "flooding"
    seconds: float | None = None
    maximise: bool = False
    loop: loops.FactorMessages = field(init=False)
    n_messages: int = field(init=False, default=0)
    converged: bool = field(init=False, default=False)
    residual: float = field(init=False, default=np.inf)
    interrupted: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Set all messages to uniform distributions."""
        self.loop = loops.FactorMessages(self.layout, self.damping, self.tolerance, self.maximise)

    def run(self) -> None:
        """Pass messages until they have converged, the sweeps or the time are used up, or Ctrl-C is pressed.

        The residual schedule ends with a sweep over all messages, which checks that they have converged. If they have
        not, the schedule continues.

        Raises:
            ImpossibleGraph: Entries of -inf forbid every state of a variable.
        """
        try:
            self._run()
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self.loop.update()  # a sweep may be incomplete

    def _run(self) -> None:
        """Pass messages until they have converged, or until the sweeps or the time are used up."""
        until = np.inf if self.seconds is None else perf_counter() + self.seconds
        most = self.n_sweeps * max(1, len(self.layout.scope))
        piece = most if self.seconds is None else _FIRST_MESSAGES
        while not self.converged and self.n_messages < most and perf_counter() < until:
            if self.schedule == "residual":
                began = perf_counter()
                count, is_done = self.loop.advance(min(most - self.n_messages, piece))
                self.n_messages += count
                if perf_counter() - began < _PIECE_SECONDS:
                    piece *= 2
                self._check_states()
                if not is_done:
                    continue
            self._sweep(until)
            if self.schedule == "residual":
                self.loop.restart_residuals()

    def _sweep(self, until: float) -> None:
        """Update all messages once; stop within the sweep if the time ``until`` has passed."""
        at, n_factors = 0, len(self.layout.weights)
        while True:
            at = self.loop.sweep(at)
            self._check_states()
            if at >= n_factors:
                break
            if perf_counter() > until:
                return
        self.n_messages += max(1, len(self.layout.scope))
        self.residual = self.loop.change
        self.converged = self.residual <= self.tolerance * self.damping

    def _check_states(self) -> None:
        """Raise `ImpossibleGraph` if the compiled loop has found a variable without a possible state."""
        if self.loop.fault >= 0:
            raise ImpossibleGraph("-inf entries forbid every joint state; allow at least one joint state")
