"""Plots of scans with Matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_POINTS = 4000  # number of points of a curve; more would not be visible


def plot_guarantees(ax: Axes, curves: Mapping[str, Floats]) -> Axes:
    """Plot the Dobrushin variation of scans against the number of steps, as in DoGS17, Fig. 1.

    The legend shows the smallest value of each curve.

    Args:
        ax: Matplotlib axes to draw on.
        curves: For each legend entry, the Dobrushin variation after 0, 1, .., T steps, float64[T + 1].

    Returns:
        The axes.
    """
    for name, curve in curves.items():
        shown = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), _MAX_POINTS)).astype(np.int64))
        label = f"{name} ({curve.min():.3g})"
        ax.semilogy(shown, curve[shown], linewidth=1.0, label=label)  # pyright: ignore[reportUnknownMemberType]
    ax.set(xlabel="updates", ylabel="guarantee")
    ax.legend(fontsize="small")  # pyright: ignore[reportUnknownMemberType]
    return ax


def plot_distances(ax: Axes, order: ArrayLike, shape: Sequence[int], target: int, *, wrap: bool = False) -> Axes:
    """Plot how many steps of a scan update variables at each grid distance from a target variable (DoGS17, Fig. 4).

    Args:
        ax: Matplotlib axes to draw on.
        order: int[T], the variable of each step.
        shape: Side lengths of the grid.
        target: Index of the target variable, in row-major order.
        wrap: True if the grid is a torus.

    Returns:
        The axes.
    """
    counts = np.bincount(grid_distances(shape, target, wrap=wrap)[np.asarray(order)])
    ax.bar(np.arange(len(counts)), counts, width=1.0)  # pyright: ignore[reportUnknownMemberType]
    ax.set(xlabel="Manhattan distance to the target", ylabel="updates")
    return ax


def grid_distances(shape: Sequence[int], target: int, *, wrap: bool = False) -> Int64s:
    """Return the Manhattan distance of each variable of a grid from the variable ``target``.

    Args:
        shape: Side lengths of the grid.
        target: Index of that variable, in row-major order.
        wrap: True if the grid is a torus.

    Returns:
        int64[V], in row-major order.
    """
    total = np.zeros(tuple(shape), np.int64)
    for axis, (side, at) in enumerate(zip(shape, np.unravel_index(target, tuple(shape)), strict=True)):
        away = np.abs(np.arange(side) - at)
        away = np.minimum(away, side - away) if wrap else away
        total += np.expand_dims(away, tuple(a for a in range(len(shape)) if a != axis))
    return total.ravel()
