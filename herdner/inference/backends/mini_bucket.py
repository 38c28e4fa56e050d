"""Proven bounds on log Z by mini-bucket elimination."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s
from herdner.base.memory import check_memory
from herdner.base.seeds import Seed
from herdner.graph.tables import Graph, compile_tables
from herdner.inference.backend import Capabilities, ImpossibleGraph
from herdner.inference.elimination_order import ReducedGraph, find_elimination_order, log_z_margin, reduce_tables
from herdner.inference.gibbs.start import repair
from herdner.inference.record import Record
from herdner.inference.result import Result

ScopedTable = tuple[tuple[int, ...], Floats]  # variables in ascending order, and log-potentials


@dataclass(frozen=True, slots=True)
class MiniBucket:
    """Mini-bucket elimination: a lower and an upper bound on log Z for factors of any arity (Dechter and Rish 2003).

    Variables are eliminated one after the other. If the product of a bucket is larger than the limit, its tables are
    divided into smaller groups. The variable is summed out of one group. For the upper bound, it is maximised out of
    the other groups; for the lower bound, it is minimised out of the other groups. Without a division both bounds equal
    log Z.

    Attributes:
        max_log2_cells: Largest size of a product, as log2 of the number of table cells. More cells give closer bounds.
    """

    max_log2_cells: float = 16.0

    capabilities: ClassVar[Capabilities] = Capabilities(linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` unless ``max_log2_cells`` is from 0 to 30."""
        if not 0 <= self.max_log2_cells <= 30:
            raise ValueError(f"max_log2_cells must be a number from 0 to 30, got {self.max_log2_cells!r}")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Compute bounds on log Z of one graph.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Ignored.
            start: Ignored.
            record: Requested results, which are only checked.

        Returns:
            log_z_bounds; log_z if both bounds are equal, because no bucket was divided; and a probable state, whose
            variables are set in reverse elimination order. If -inf entries forbid the state, it is repaired. The
            log-potential of the state, minus a rounding error, is also a lower bound.

        Raises:
            ImpossibleGraph: The upper bound shows that -inf entries forbid every joint state.
            NotEnoughMemory: A product does not fit into memory.
            UnsupportedGraph: The repair reached no allowed state.
            UnsupportedRecord: ``record`` has fields other than best.
        """
        began = perf_counter()
        self.capabilities.require(record, "mini-bucket")
        compiled = compile_tables(graph)
        reduced = reduce_tables(compiled)
        order = find_elimination_order(np.array(reduced.sizes, np.int32), reduced.scopes).order.tolist()
        upper, choices = _eliminate(reduced, order, 2.0**self.max_log2_cells, is_upper=True)
        if upper == -math.inf:
            raise ImpossibleGraph("-inf entries forbid every joint state; allow at least one joint state")
        lower, _ = _eliminate(reduced, order, 2.0**self.max_log2_cells, is_upper=False)
        state = repair(compiled, reduced.original_states(_choose(order, choices)[None])[0], 0, "mini-bucket")
        log_potential = float(compiled.graph.log_potential(state))
        margin = log_z_margin(compiled)
        return Result(
            state=state,
            log_potential=log_potential,
            log_z=upper if lower == upper else None,
            log_z_bounds=(max(lower, log_potential) - margin, upper + margin),
            seconds=perf_counter() - began,
        )


def _eliminate(
    reduced: ReducedGraph, order: Sequence[int], most_cells: float, is_upper: bool
) -> tuple[float, list[list[ScopedTable]]]:
    """Eliminate all variables; return a lower or upper bound on log Z, and all tables, bucket by bucket."""
    position = {v: place for place, v in enumerate(order)}
    buckets: list[list[ScopedTable]] = [[] for _ in order]
    for scope, table in zip(reduced.scopes, reduced.tables, strict=True):
        buckets[min(position[v] for v in scope)].append((scope, table))
    bound = reduced.constant
    for place, v in enumerate(order):
        groups = _divide(buckets[place], most_cells)
        if not groups:
            bound += math.log(reduced.sizes[v])
        for number, group in enumerate(groups):
            scope, product = _multiply(group)
            axis = scope.index(v)
            if number == 0:
                message = np.logaddexp.reduce(product, axis=axis)
            else:
                message = product.max(axis=axis) if is_upper else product.min(axis=axis)
            rest = tuple(u for u in scope if u != v)
            if rest:
                buckets[min(position[u] for u in rest)].append((rest, message))
            else:
                bound += float(message)
    return bound, buckets


def _divide(tables: Sequence[ScopedTable], most_cells: float) -> list[list[ScopedTable]]:
    """Divide a bucket's tables, largest first, into groups whose products have at most ``most_cells`` cells each."""
    groups: list[tuple[dict[int, int], list[ScopedTable]]] = []
    for scope, table in sorted(tables, key=lambda pair: -pair[1].size):
        sizes = dict(zip(scope, table.shape, strict=True))
        for joint, members in groups:
            if math.prod((joint | sizes).values()) <= most_cells:
                joint |= sizes
                members.append((scope, table))
                break
        else:
            groups.append((sizes, [(scope, table)]))
    return [members for _, members in groups]


def _multiply(tables: Sequence[ScopedTable]) -> ScopedTable:
    """Multiply tables: add their log-potentials over the union of their scopes, and return the resulting table."""
    union = tuple(sorted({v for scope, _ in tables for v in scope}))
    whole = {v: size for scope, table in tables for v, size in zip(scope, table.shape, strict=True)}
    check_memory(16.0 * math.prod(whole.values()), "a product of mini-bucket", "lower max_log2_cells")
    product = np.zeros((1,) * len(union))
    for scope, table in tables:
        sizes = dict(zip(scope, table.shape, strict=True))
        product = product + table.reshape([sizes.get(v, 1) for v in union])
    return union, product


def _choose(order: Sequence[int], buckets: Sequence[Sequence[ScopedTable]]) -> Int32s:
    """Choose the best state of each variable in reverse elimination order, given the states chosen before."""
    state = np.zeros(len(order), np.int32)
    for v, tables in zip(reversed(order), reversed(buckets), strict=True):
        rows = [table[tuple(slice(None) if u == v else int(state[u]) for u in scope)] for scope, table in tables]
        state[v] = int(np.sum(rows, axis=0).argmax()) if rows else 0
    return state
