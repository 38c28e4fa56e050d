"""Loopy max-product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import max_product as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.seeds import Seed
from herdner.graph.chains import constant_term, unary_table
from herdner.graph.edges import merge_parallel_factors
from herdner.graph.factors import TableFactors
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, ImpossibleGraph, Interrupted
from herdner.inference.backends.belief_propagation import propagate
from herdner.inference.backends.icm import ICM
from herdner.inference.backends.sweeps import check_message_memory, check_options
from herdner.inference.elimination_order import reduce_tables
from herdner.inference.factor_messages import FactorLayout, MessagePassing
from herdner.inference.gibbs.start import repair
from herdner.inference.record import Record
from herdner.inference.result import Result

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True)
class MaxProduct:
    """Loopy max-product: message passing in the log domain for the best state. It is exact on trees.

    See Pearl 1988; Wainwright and Jordan 2008, Sec. 8.2. Factors have any number of variables and states. A sweep
    updates the messages variable by variable: towards the variable of largest index in each component in one sweep, and
    away from it in the next. On trees two sweeps give the exact max-marginals. Inference ends when a sweep forbids no
    further state and changes no message by more than ``tolerance`` (up to an additive constant), or after ``n_sweeps``.

    At the end the variables are decoded one by one, starting at the variable of largest index: each takes the state of
    largest belief (approximate max-marginal) given the variables decoded before, the smallest state among ties. On
    trees this joint state is a best one, and on chains in the order of their variables it equals the result of
    `Viterbi`. The result is the best among this state and the states of largest belief after each sweep; if -inf
    entries forbid all of them, it is repaired.

    The schedule "residual" is that of `BeliefPropagation`: it sends the message that makes the largest change first, on
    the graph without impossible states. With damping, it often converges where sweeps do not. Each variable then takes
    its state of largest belief, and `ICM` starts at this joint state, which resolves ties.

    Attributes:
        damping: Weight of a new message: message <- (1 - damping) message + damping * new message; 1 is undamped.
        n_sweeps: Largest number of sweeps. The residual schedule computes at most as many messages as this number of
            sweeps.
        tolerance: Largest change of a message that counts as convergence.
        schedule: Order of the messages.
    """

    damping: float = 1.0
    n_sweeps: int = 100
    tolerance: float = 1e-6
    schedule: Literal["sweeps", "residual"] = "sweeps"

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"trace"}))

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)
        if self.schedule not in ("sweeps", "residual"):
            raise ValueError(f"schedule must be 'sweeps' or 'residual', got {self.schedule!r}")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Run max-product on one graph. A sweep takes time O(cells of all tables x variables of a table).

        Args:
            graph: A graph of discrete variables.
            seed: Ignored.
            start: Ignored.
            record: Requested results, which are only checked; the schedule ``sweeps`` always records a trace.

        Returns:
            The state, its log-potential, whether the messages have converged, and as trace [1, number of sweeps] the
            log-potential of the most probable states of all variables after each sweep; no trace with the
            residual schedule.

        Raises:
            UnsupportedRecord: ``record`` asks for more than a trace.
            ImpossibleGraph: The messages prove that every joint state is forbidden.
            UnsupportedGraph: No allowed state was reached.
            Interrupted: Ctrl-C stopped the sweeps.
        """
        began = perf_counter()
        self.capabilities.require(record, "max-product")
        compiled = compile_tables(graph)
        if self.schedule == "residual":
            Capabilities().require(record, "max-product with schedule='residual'")
            return self._pass_residuals(compiled, began)
        constant = constant_term(compiled.factors)
        check_message_memory(compiled, "max-product", 2, 2)
        unary = unary_table(compiled.sizes, compiled.factors)
        loop = loops.MaxProductLoop(Slots.of(compiled.sizes, compiled.factors), unary, self.damping)
        n, top, best = len(unary), -np.inf, loop.state
        trace: list[float] = []
        converged = interrupted = False
        try:
            for sweep in range(self.n_sweeps):
                at = 0
                while at < n:
                    at = loop.sweep(at, sweep % 2 == 0)
                    if loop.fault >= 0:
                        raise ImpossibleGraph(
                            f"-inf entries forbid every state of variable {loop.fault}; allow a state for each variable"
                            " and a combination of states for each factor"
                        )
                trace.append(constant + loop.log_potential())
                if trace[-1] > top:
                    top, best = trace[-1], loop.state
                if loop.change <= self.tolerance:
                    converged = True
                    break
        except KeyboardInterrupt:
            interrupted = True
        at = 0
        while at < n:
            at = loop.decode(at)
        if constant + loop.log_potential() >= top:
            best = loop.state
        best = repair(compiled, best, 0, "max-product")
        result = Result(
            state=best,
            log_potential=float(compiled.graph.log_potential(best)),
            trace=np.array([trace]),
            converged=converged,
            n_updates=n * len(trace),
            seconds=perf_counter() - began,
        )
        if interrupted:
            raise Interrupted(result)
        return result

    def _pass_residuals(self, compiled: TableGraph, began: float) -> Result:
        """Run max-product with the residual schedule, and return the result."""
        reduced = reduce_tables(compiled)
        layout = FactorLayout.of(reduced)
        run = MessagePassing(layout, self.n_sweeps, self.tolerance, self.damping, "residual", maximise=True)
        result = propagate(run, compiled, reduced, "max-product")
        best = ICM().infer(compiled, start=result.state)
        result = replace(
            result,
            state=best.state,
            log_potential=best.log_potential,
            marginals=None,
            seconds=perf_counter() - began,
        )
        if run.interrupted:
            raise Interrupted(result)
        return result


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Arrays of all factors with two or more variables, for the compiled loop; a slot is a pair of factor and variable.

    Attributes:
        sizes: int32[V], the number of states of each variable.
        scope: int32[S], the variable of each slot.
        factor_at: int64[F + 1], the first slot of each factor.
        table_at: int64[S], the position of the table that each slot reads.
        tables: float64, all tables concatenated; the tables of a group of pairs are followed by their transposes.
        scale: float64[F], the multiplier of each factor's table.
    """

    sizes: Int32s
    scope: Int32s
    factor_at: Int64s
    table_at: Int64s
    tables: Floats
    scale: Floats

    @classmethod
    def of(cls, sizes: Int32s, factors: Sequence[TableFactors]) -> Slots:
        """Build the arrays of the compiled loop from the factors of a graph.

        Args:
            sizes: int32[V], the number of states of each variable.
            factors: Groups of factors.

        Returns:
            The arrays, with one slot for each variable of each factor that has two or more variables.
        """
        groups = [group for group in merge_parallel_factors(factors) if group.arity > 1 and len(group)]
        scope = _concatenate([group.scopes.ravel() for group in groups], np.int32)
        arities = _concatenate([np.full(len(group), group.arity) for group in groups], np.int64)
        tables: list[Floats] = []
        table_at: list[Int64s] = []
        end = 0
        for group in groups:
            values, positions = _tables(group)
            tables.append(values)
            table_at.append(end + positions)
            end += len(values)
        return cls(
            sizes=sizes,
            scope=scope,
            factor_at=np.concatenate([[0], np.cumsum(arities)]),
            table_at=_concatenate(table_at, np.int64),
            tables=_concatenate(tables, np.float64),
            scale=_concatenate([group.scale for group in groups], np.float64),
        )


def _tables(group: TableFactors) -> tuple[Floats, Int64s]:
    """Concatenate the tables of a group; also return the position of the table that each slot (factor, variable) reads.

    The tables of pairs are followed by their transposes.
    """
    cells = group.rows.shape[1]
    positions = np.repeat(group.table_of_factor.astype(np.int64) * cells, group.arity)
    if group.arity > 2:
        return group.rows.ravel(), positions
    positions[::2] += group.rows.size
    return np.concatenate([group.rows.ravel(), group.tables.swapaxes(1, 2).ravel()]), positions


def _concatenate(parts: Sequence[NDArray[T]], dtype: type[T]) -> NDArray[T]:
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)
