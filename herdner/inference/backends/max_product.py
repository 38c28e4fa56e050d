"""Loopy max-product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import max_product as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.seeds import Seed
from herdner.graph.chains import check_cells, edge_recipes, recipe_table, unary_table
from herdner.graph.factors import TableFactors
from herdner.graph.linked_chains import pair_keys
from herdner.graph.tables import Graph, compile_tables
from herdner.inference.backend import Capabilities, ImpossibleGraph, Interrupted
from herdner.inference.backends.sweeps import check_options, check_room, constant
from herdner.inference.gibbs.start import repaired
from herdner.inference.record import Record
from herdner.inference.result import Result

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True)
class MaxProduct:
    """Loopy max-product: the best state by message passing, exact on trees.

    Messages in the log domain (Pearl 1988; Wainwright and Jordan 2008, Sec. 8.2), over factors of any numbers of
    variables and labels. A sweep lets one variable after the other take in the messages of all its factors, towards the
    largest variable of each component in one sweep and away from it in the next, so that on trees two sweeps give
    the exact max-marginals. message <- (1 - damping) message + damping * new message; ``damping`` = 1 is undamped.
    Stops after ``n_sweeps``, or when in a sweep no label was newly ruled out and no message was more than ``tolerance``
    from the one that replaced it; constants added to a message, and labels that are ruled out, do not count.

    At the end the variables are decided one by one, away from the largest of each component, each by its belief given
    those decided before; ties go to the smallest label. On trees this is a best state, and on chains in
    the order of their variables that of `Viterbi` and `Exact`. The state returned is the best of this one and
    those that the beliefs alone gave after each sweep; if -inf entries forbid all of them, a repaired one.
    """

    damping: float = 1.0
    n_sweeps: int = 100
    tolerance: float = 1e-6

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"trace"}))

    def __post_init__(self) -> None:
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Time of a sweep O(cells of all tables x their variables). ``seed`` is ignored.

        trace [1, n_sweeps]: the log-potential of the state that the beliefs gave after each sweep; shorter than the
        option where the messages have converged.

        Raises:
            ImpossibleGraph: Messages show that no state is allowed.
            UnsupportedGraph: No allowed state was found.
        """
        began = perf_counter()
        self.capabilities.check("max-product", record)
        compiled = compile_tables(graph)
        fixed = constant(compiled)
        check_room(compiled, "max-product", 2, 2)
        unary = unary_table(compiled.sizes, compiled.factors)
        loop = loops.MaxProduct(Slots.of(compiled.sizes, compiled.factors), unary, self.damping)
        n, seen, best = len(unary), -np.inf, loop.state.copy()
        trace: list[float] = []
        stopped = False
        try:
            for sweep in range(self.n_sweeps):
                at = 0
                while at < n:
                    at = loop.sweep(at, sweep % 2 == 0)
                    _check_possible(loop.fault)
                trace.append(fixed + loop.log_potential())
                if trace[-1] > seen:
                    seen, best = trace[-1], loop.state.copy()
                if loop.change <= self.tolerance:
                    break
        except KeyboardInterrupt:
            stopped = True
        at = 0
        while at < n:
            at = loop.decode(at)
        if fixed + loop.log_potential() >= seen:
            best = loop.state
        if compiled.graph.log_potential(best) == -np.inf:
            best = repaired(compiled, best, 0, "max-product")
        result = Result(
            state=best,
            log_potential=float(compiled.graph.log_potential(best)),
            trace=np.array([trace]),
            n_updates=n * len(trace),
            seconds=perf_counter() - began,
        )
        if stopped:
            raise Interrupted(result)
        return result


def _check_possible(variable: int) -> None:
    if variable >= 0:
        raise ImpossibleGraph(
            f"-inf entries forbid every state: they leave variable {variable} no label; allow a label for each variable"
            " and a combination of labels for each factor"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The factors of two and more variables laid out for message passing; see ``herdner._ext.max_product``."""

    sizes: Int32s
    scope: Int32s
    factor_of: Int32s
    factor_at: Int64s
    message_at: Int64s
    table_at: Int64s
    tables: Floats
    scale: Floats
    starts: Int64s
    slots: Int32s
    order: Int32s

    @classmethod
    def of(cls, sizes: Int32s, factors: Sequence[TableFactors]) -> Slots:
        groups = [group for group in without_parallels(factors) if group.arity > 1 and len(group)]
        scope = _joined([group.scopes.ravel() for group in groups], np.int32)
        arities = _joined([np.full(len(group), group.arity) for group in groups], np.int64)
        factor_at = _ends(arities)
        factor_of = np.repeat(np.arange(len(arities), dtype=np.int32), arities)
        tables: list[Floats] = []
        table_at: list[Int64s] = []
        end = 0
        for group in groups:
            values, begins = _tables(group)
            tables.append(values)
            table_at.append(end + begins)
            end += len(values)
        slots = np.argsort(scope, kind="stable").astype(np.int32)
        starts = _ends(np.bincount(scope, minlength=len(sizes)))
        order = np.empty(len(sizes), np.int32)
        loops.traverse(scope, factor_of, factor_at, starts, slots, order)
        return cls(
            sizes=sizes,
            scope=scope,
            factor_of=factor_of,
            factor_at=factor_at,
            message_at=_ends(sizes[scope]),
            table_at=_joined(table_at, np.int64),
            tables=_joined(tables, np.float64),
            scale=_joined([group.scale for group in groups], np.float64),
            starts=starts,
            slots=slots,
            order=order,
        )


def without_parallels(factors: Sequence[TableFactors]) -> Sequence[TableFactors]:
    """The same factors, those of one pair of variables added up: else they would be a loop that messages run around."""
    pairs = [group for group in factors if group.arity == 2 and len(group)]
    if not pairs:
        return factors
    scopes = np.sort(np.concatenate([group.scopes for group in pairs]), axis=1)
    _, first, edge = np.unique(pair_keys(scopes), return_index=True, return_inverse=True)
    if len(first) == len(scopes):
        return factors
    edges = np.split(edge.reshape(-1), np.cumsum([len(group) for group in pairs])[:-1])
    turned = [group.scopes[:, 0] > group.scopes[:, 1] for group in pairs]
    recipe_of, recipes = edge_recipes(pairs, edges, turned, len(first))
    check_cells(len(recipes), max(max(group.tables.shape[1:]) for group in pairs))
    tables = [recipe_table(pairs, recipe) for recipe in recipes]
    joined = [group for group in factors if group.arity != 2]
    for shape in sorted({table.shape for table in tables}):
        chosen = [r for r, table in enumerate(tables) if table.shape == shape]
        renumber = np.full(len(tables), -1, np.int32)
        renumber[chosen] = np.arange(len(chosen))
        mine = renumber[recipe_of] >= 0
        joined.append(
            TableFactors(scopes[first[mine]], np.stack([tables[r] for r in chosen]), renumber[recipe_of[mine]])
        )
    return joined


def _tables(group: TableFactors) -> tuple[Floats, Int64s]:
    """The tables of a group in a row, for pairs followed by their transposes, and where each slot's begins."""
    cells = group.rows.shape[1]
    begins = np.repeat(group.table_of_factor.astype(np.int64) * cells, group.arity)
    if group.arity > 2:
        return group.rows.ravel(), begins
    begins[::2] += group.rows.size
    return np.concatenate([group.rows.ravel(), group.tables.swapaxes(1, 2).ravel()]), begins


def _joined(parts: Sequence[NDArray[T]], dtype: type[T]) -> NDArray[T]:
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)


def _ends(lengths: NDArray[np.integer]) -> Int64s:
    """[0, the running sums]."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
