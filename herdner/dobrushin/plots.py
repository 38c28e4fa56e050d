"""Figures of scans, on Matplotlib's axes: their guarantees over the steps, and where a scan goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int64s

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 4000  # of a line; no screen shows more


def plot_guarantees(ax: Axes, curves: Mapping[str, Floats]) -> Axes:
    """Dobrushin variation against steps; the legend says the best guarantee of each scan, as DoGS17 Fig. 1 does."""
    for name, curve in curves.items():
        shown = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), _MOST_POINTS)).astype(np.int64))
        label = f"{name} ({curve.min():.3g})"
        ax.semilogy(shown, curve[shown], linewidth=1.0, label=label)  # pyright: ignore[reportUnknownMemberType]
    ax.set(xlabel="updates", ylabel="guarantee")
    ax.legend(fontsize="small")  # pyright: ignore[reportUnknownMemberType]
    return ax


def plot_distances(ax: Axes, order: ArrayLike, shape: Sequence[int], target: int, *, wrap: bool = False) -> Axes:
    """How often variables of a grid are updated, by their Manhattan distance to a target (DoGS17 Fig. 4)."""
    counts = np.bincount(grid_distances(shape, target, wrap=wrap)[np.asarray(order)])
    ax.bar(np.arange(len(counts)), counts, width=1.0)  # pyright: ignore[reportUnknownMemberType]
    ax.set(xlabel="Manhattan distance to the target", ylabel="updates")
    return ax


def grid_distances(shape: Sequence[int], target: int, *, wrap: bool = False) -> Int64s:
    """int64[V]: the Manhattan distance of each variable of a grid, in row-major order, to one of them."""
    total = np.zeros(tuple(shape), np.int64)
    for axis, (side, at) in enumerate(zip(shape, np.unravel_index(target, tuple(shape)), strict=True)):
        away = np.abs(np.arange(side) - at)
        away = np.minimum(away, side - away) if wrap else away
        total += np.expand_dims(away, tuple(a for a in range(len(shape)) if a != axis))
    return total.ravel()
