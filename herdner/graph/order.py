"""The order in which a sweep over a graph updates its variables, for samplers and bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from herdner._ext import layout
from herdner.base.arrays import Int32s, Int64s
from herdner.graph.conditionals import greedy_colouring
from herdner.graph.grids import GridForm
from herdner.graph.scan import Scan
from herdner.graph.tables import Graph, TableGraph, compile_tables


def sweep_order(scan: Scan, graph: Graph) -> Int32s:
    """Return the variables that one sweep of Gibbs sampling updates, in the order of their updates.

    The bounds of a scan in `herdner.dobrushin` hold for this order.

    Args:
        scan: A systematic, checkerboard or fixed scan.
        graph: The graph that is swept.

    Returns:
        int32[n], variables.

    Raises:
        ValueError: The scan is random or Jacobi, or it names a variable that the graph does not have.
    """
    compiled = compile_tables(graph)
    n = len(compiled.sizes)
    scan.check(n)
    if scan.kind in ("random", "jacobi"):
        raise ValueError(f"a {scan.kind} scan has no predetermined order; use a systematic, checkerboard or fixed scan")
    if scan.kind == "checkerboard":
        return order_by_colour(checkerboard_colours(compiled))[0]
    return np.arange(n, dtype=np.int32) if scan.order is None else scan.order


def checkerboard_colours(compiled: TableGraph, neighbours: tuple[Int64s, Int32s] | None = None) -> Int32s:
    """Return a colouring of the variables: variables that depend on each other have different colours.

    Args:
        compiled: The graph.
        neighbours: (starts int64[V + 1], members int32), the variables on which each variable depends; None is the
            Markov blankets.

    Returns:
        int32[V], the colour of each variable; the colours of a checkerboard for a grid that allows them.
    """
    if neighbours is None:
        grid = compiled.find(GridForm)
        if grid is not None and not (grid.wraps and (grid.rows % 2 or grid.columns % 2)):
            cells = np.add.outer(np.arange(grid.rows, dtype=np.int32), np.arange(grid.columns, dtype=np.int32))
            return cells.ravel() % 2
    return greedy_colouring(compiled.conditionals.blankets if neighbours is None else neighbours)


def order_by_colour(colours: Int32s) -> tuple[Int32s, Int64s]:
    """Return the variables sorted by colour, and in ascending order within a colour.

    Args:
        colours: int32[V], the colour of each variable.

    Returns:
        The variables, int32[V]; and the index of the first variable of each colour, int64[C + 1].
    """
    order = np.argsort(colours, kind="stable").astype(np.int32)
    return order, np.concatenate([[0], np.cumsum(np.bincount(colours))]).astype(np.int64)


def block_ranges(compiled: TableGraph, overlapping: bool = False) -> Int32s:
    """Divide the variables of a pairwise graph into blocks, and return the first and the last variable of each block.

    A block is a run of consecutive variables. Factors join each variable of a block to the variable before it, and no
    other pair in the block. If another factor joins two variables of one run, the run is cut before the later variable.

    Args:
        compiled: A graph of factors of at most two variables.
        overlapping: Start the block after a cut right after the earlier variable of the pair, so that blocks overlap
            and are as long as possible.

    Returns:
        int32[B, 2], the first and the last variable of each block.
    """
    n = len(compiled.sizes)
    nearest, joins = np.full(n, -1, np.int32), np.zeros(n, np.uint8)
    for group in compiled.factors:
        if group.arity == 2:
            first, second = group.scopes[:, 0], group.scopes[:, 1]
            left, right = np.minimum(first, second), np.maximum(first, second)
            is_next = left == right - 1
            joins[right[is_next]] = 1
            np.maximum.at(nearest, right[~is_next], left[~is_next])
    if not overlapping:
        first = np.empty(n, np.int32)
        layout.cut_runs(nearest, joins, first)
        starts = np.flatnonzero(first == np.arange(n))
        return np.stack([starts, np.append(starts, n)[1:] - 1], axis=1).astype(np.int32)
    ranges: list[tuple[int, int]] = []
    start = 0
    for v in range(1, n + 1):
        left = int(nearest[v]) if v < n and joins[v] else v - 1  # the block must begin after this variable
        if left >= start:
            ranges.append((start, v - 1))
            start = left + 1
    return np.array(ranges, np.int32).reshape(-1, 2)


def block_steps(ranges: Int32s, order: NDArray[np.integer]) -> tuple[Int32s, Int32s]:
    """Return the steps of a sweep over blocks of variables; each step updates one variable of a block.

    Args:
        ranges: int32[B, 2], the first and the last variable of each block.
        order: int[N], the blocks in the order of their updates.

    Returns:
        Two arrays int32[n]: the variable that each step updates, and the index of the variable's block.
    """
    order = np.asarray(order, np.int64)
    lengths = ranges[order, 1] - ranges[order, 0] + 1
    at = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return (np.repeat(ranges[order, 0], lengths) + at).astype(np.int32), np.repeat(order, lengths).astype(np.int32)
