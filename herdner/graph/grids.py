"""Recognition of grids with equal factors along each axis. Loops compute their neighbours, and need no lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdner._ext import conditionals as loops
from herdner._ext.memory import sealed
from herdner.base.arrays import Floats, Int32s
from herdner.graph.factors import TableFactors
from herdner.graph.graph import ImpossibleGraph, UnsupportedGraph


@dataclass(frozen=True, slots=True, eq=False)
class GridForm:
    """Array layout of a graph that is a grid of two-state variables in row-major order.

    The compiled engine reads the fields by name (engine/fields.h).

    Attributes:
        rows: Number of rows.
        columns: Number of columns.
        wraps: True if the grid wraps around.
        unary: float64[V], log-odds of state 0 against state 1 under the unary factors.
        sides: float64[4, 2], the log-odds added by the neighbour above, below, left and right, if it has state 0 or 1.
        spread: Bound on the absolute value of finite log-odds.
    """

    rows: int
    columns: int
    wraps: bool
    unary: Floats
    sides: Floats
    spread: float


def grid_form(sizes: Int32s, factors: Sequence[TableFactors]) -> GridForm:
    """Convert a grid of at least 3 x 3 two-state variables, such as `ising` builds, to a `GridForm`.

    Args:
        sizes: int32[V], the number of states of each variable.
        factors: Groups of factors.

    Returns:
        The grid and its log-potentials.

    Raises:
        UnsupportedGraph: The graph is not such a grid.
        ImpossibleGraph: The unary factors of a variable forbid both states.
    """
    pairs = [group for group in factors if group.arity == 2 and len(group)]
    if len(pairs) != 1 or any(group.arity > 2 and len(group) for group in factors) or not (sizes == 2).all():
        raise UnsupportedGraph(
            "the graph is not a grid: each variable must have two states, each factor at most two variables, and one"
            " group must contain all factors of two variables"
        )
    (group,) = pairs
    columns, wraps = _grid_columns(group.scopes, len(sizes))
    if not columns:
        raise UnsupportedGraph(
            "the graph is not a grid: its factors of two variables must join all neighbours in a grid of at least"
            " 3 x 3 variables, in the order of `ising`"
        )
    n_vertical = len(sizes) - (0 if wraps else columns)
    along = [group.scale[:n_vertical], group.scale[n_vertical:]]
    if len(group.tables) > 1 or any(scale.min() != scale.max() for scale in along):
        raise UnsupportedGraph("all two-variable factors along an axis of the grid must have equal tables")
    sides = np.empty((4, 2))
    for axis, scale in enumerate(along):
        table = scale[0] * group.tables[0]
        with np.errstate(invalid="ignore"):
            sides[2 * axis] = table[:, 0] - table[:, 1]
            sides[2 * axis + 1] = table[0] - table[1]
    unary = np.zeros(len(sizes))
    for part in factors:
        if part.arity == 1:
            loops.add_unary(unary, None, part.scopes, part.table_of_factor, part.scale, part.tables)
    faults = np.flatnonzero(np.isnan(unary))
    if len(faults):
        fault = f"variable {faults[0]}: its unary factors forbid every state by -inf"
        raise ImpossibleGraph(f"{fault}; allow at least one state")
    is_finite = np.isfinite(unary)
    largest = max(unary.max(initial=0.0, where=is_finite), -unary.min(initial=0.0, where=is_finite))
    finite = np.abs(np.where(np.isfinite(sides), sides, 0.0))
    spread = float(largest + finite.max(axis=1).sum())
    return GridForm(len(sizes) // columns, columns, wraps, sealed([unary]), sealed([sides]), spread)


def _grid_columns(scopes: Int32s, n_variables: int) -> tuple[int, bool]:
    """Recognise a grid; return its number of columns, or 0 if the pairs form no grid, and True if it wraps around.

    The pairs must come first along columns, then along rows, each in the order of their first variables.
    """
    columns = int(scopes[0, 1]) - int(scopes[0, 0])
    if columns < 3 or n_variables % columns or n_variables < 3 * columns:
        return 0, False
    cells = np.arange(n_variables, dtype=np.int32).reshape(-1, columns)
    wraps = len(scopes) == 2 * n_variables
    n_vertical = n_variables - (0 if wraps else columns)
    for axis, pairs in enumerate((scopes[:n_vertical], scopes[n_vertical:])):  # one after the other to save memory
        if wraps:
            first, second = cells, np.roll(cells, -1, axis)
        else:
            first, second = (cells[:-1], cells[1:]) if axis == 0 else (cells[:, :-1], cells[:, 1:])
        if not np.array_equal(pairs[:, 0], first.ravel()) or not np.array_equal(pairs[:, 1], second.ravel()):
            return 0, False
    return columns, wraps
