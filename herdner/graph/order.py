"""The order in which a sweep over a graph updates its variables: one place for samplers, bounds and figures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from herdner._ext import layout
from herdner.base.arrays import Int32s, Int64s
from herdner.graph.conditionals import colours
from herdner.graph.grids import GridForm
from herdner.graph.scan import Scan
from herdner.graph.tables import Graph, TableGraph, compile_tables


def sweep_order(scan: Scan, graph: Graph) -> Int32s:
    """int32[n]: the variables that one sweep of a sampler which draws at random, such as Gibbs, updates, in order.

    Bounds of a scan (`herdner.dobrushin`) speak of this very order.

    Raises:
        ValueError: The scan is ``random``, whose order is drawn, or ``jacobi``, which has none, or a given order names
            a variable that the graph does not have.
    """
    compiled = compile_tables(graph)
    n = len(compiled.sizes)
    scan.check(n)
    if scan.kind in ("random", "jacobi"):
        raise ValueError(f"a sweep of the scan {scan.kind} has no order that is known beforehand")
    if scan.kind == "checkerboard":
        return by_colour(checkerboard_colours(compiled))[0]
    return np.arange(n, dtype=np.int32) if scan.order is None else scan.order


def checkerboard_colours(compiled: TableGraph, neighbours: tuple[Int64s, Int32s] | None = None) -> Int32s:
    """Return a colouring, int32[V], in which variables that depend on each other have different colours.

    ``neighbours`` (starts, members) lists the variables on which each variable depends; by default those with which it
    shares a factor, whatever the table of the factor.
    """
    if neighbours is None:
        grid = compiled.grid
        if isinstance(grid, GridForm) and not (grid.wraps and (grid.rows % 2 or grid.columns % 2)):
            cells = np.add.outer(np.arange(grid.rows, dtype=np.int32), np.arange(grid.columns, dtype=np.int32))
            return cells.ravel() % 2
    return colours(compiled.conditionals.blankets if neighbours is None else neighbours)


def by_colour(colour: Int32s) -> tuple[Int32s, Int64s]:
    """The variables colour by colour, those of one colour in rising order, and where each colour begins."""
    order = np.argsort(colour, kind="stable").astype(np.int32)
    return order, np.concatenate([[0], np.cumsum(np.bincount(colour))]).astype(np.int64)


def block_ranges(compiled: TableGraph, overlapping: bool = False) -> Int32s:
    """int32[B, 2]: the first and the last variable of each block of a graph of pairs, from left to right.

    A block is a run of consecutive variables, each joined to the one before it and to no other of the block. Where
    another pair lies within a run, the run is cut before its later end; ``overlapping``: the next block then begins
    right behind its earlier end instead, so that blocks are as long as they can be.
    """
    n = len(compiled.sizes)
    nearest, joins = np.full(n, -1, np.int32), np.zeros(n, np.uint8)
    for group in compiled.factors:
        if group.arity == 2:
            layout.mark_neighbours(group.scopes, nearest, joins)
    if not overlapping:
        first = np.empty(n, np.int32)
        layout.cut_runs(nearest, joins, first)
        begins = np.flatnonzero(first == np.arange(n))
        return np.stack([begins, np.append(begins, n)[1:] - 1], axis=1).astype(np.int32)
    found: list[tuple[int, int]] = []
    begin = 0
    for v in range(1, n + 1):
        left = -1 if v == n or not joins[v] else int(nearest[v])
        if v == n or not joins[v] or left >= begin:
            found.append((begin, v - 1))
            begin = left + 1 if left >= begin else v
    return np.array(found, np.int32).reshape(-1, 2)


def block_steps(ranges: Int32s, order: NDArray[np.integer]) -> tuple[Int32s, Int32s]:
    """The steps of a sweep that takes blocks in this order: the variable of each, int32[n], and its block, int32[n]."""
    order = np.asarray(order, np.int64)
    lengths = ranges[order, 1] - ranges[order, 0] + 1
    at = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return (np.repeat(ranges[order, 0], lengths) + at).astype(np.int32), np.repeat(order, lengths).astype(np.int32)
