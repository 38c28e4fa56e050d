"""Figures of traces and marginals, on Matplotlib's axes."""

# pyright: reportUnknownMemberType=false
# (Keywords of Matplotlib have no types.)

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.checks import check_variables
from herdner.base.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 4000  # of a line; no screen shows more
_MOST_BARS = 50


def plot_trace(trace: Floats, best: float, ax: Axes | None) -> Axes:
    """The log-potentials ``trace`` [C, n_sweeps], long ones thinned to every k-th sweep, and that of the best state."""
    ax = axes(ax)
    n_chains, n_sweeps = len(trace), int(trace.shape[1])
    shown = np.arange(0, n_sweeps, max(1, -(-n_sweeps // _MOST_POINTS)))
    for number, chain in enumerate(trace):
        ax.plot(shown + 1, chain[shown], linewidth=0.8, label=f"chain {number}")
    if best >= trace.max(initial=-np.inf):  # not so where the best state was not recorded
        ax.axhline(best, color="0.4", linewidth=0.8, linestyle=":", label="best state")
    ax.set(xlabel="sweep", ylabel="log-potential")
    if n_chains <= 10:
        ax.legend(loc="lower right", fontsize="small")
    return ax


def plot_marginals(
    marginals: Floats, ax: Axes | None, variables: ArrayLike | None, shape: Sequence[int] | None, label: int | None
) -> Axes:
    """Bars or an image of ``marginals`` [V, K], as `herdner.Result.plot_marginals` describes them."""
    if label is not None and not 0 <= label < marginals.shape[1]:
        raise ValueError(f"there is no label {label}: the labels are 0 to {marginals.shape[1] - 1}")
    if shape is None:
        return _bars(axes(ax), marginals, variables, label)
    if variables is not None:
        raise ValueError("give either shape, for an image of all variables, or the variables to show as bars")
    if np.shape(shape) != (2,):
        raise ValueError(f"shape must be (rows, columns), not {shape!r}")
    rows, columns = shape
    if rows * columns != len(marginals):
        raise ValueError(f"an image of {rows} x {columns} variables does not fit the graph's {len(marginals)}")
    return _image(axes(ax), marginals.reshape(rows, columns, -1), label)


def _bars(ax: Axes, marginals: Floats, variables: ArrayLike | None, label: int | None) -> Axes:
    n_variables, n_states = len(marginals), int(marginals.shape[1])
    chosen = np.arange(min(n_variables, _MOST_BARS)) if variables is None else np.atleast_1d(variables)
    check_variables(chosen, n_variables)
    labels = [label] if label is not None else [1] if n_states == 2 else range(n_states)
    places, base = np.arange(len(chosen)), np.zeros(len(chosen))
    colours = _colours(n_states)
    for k in labels:
        ax.bar(places, marginals[chosen, k], bottom=base, width=0.85, color=colours[k], label=f"{k}")
        base += marginals[chosen, k]
    ticks = places[:: max(1, len(places) // 10)]
    ax.set_xticks(ticks, [str(i) for i in chosen[ticks]])
    left_out = "" if len(chosen) >= n_variables else f" ({len(chosen)} of {n_variables})"
    shown = "probability" if len(labels) > 1 else f"P(x = {labels[0]})"
    ax.set(xlabel=f"variable{left_out}", ylabel=shown, ylim=(0, 1))
    if 1 < len(labels) <= 20:
        ax.legend(title="label", fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def _image(ax: Axes, marginals: Floats, label: int | None) -> Axes:
    from matplotlib.colors import BoundaryNorm, ListedColormap

    n_states = int(marginals.shape[2])
    if label is None and n_states > 2:
        norm = BoundaryNorm(np.arange(n_states + 1) - 0.5, n_states)
        image = ax.imshow(
            marginals.argmax(axis=2), cmap=ListedColormap(_colours(n_states)), norm=norm, interpolation="nearest"
        )
        ax.figure.colorbar(image, ax=ax, ticks=range(0, n_states, -(-n_states // 20)), label="most probable label")
    else:
        label = n_states - 1 if label is None else label
        image = ax.imshow(marginals[:, :, label], vmin=0, vmax=1, cmap="viridis", interpolation="nearest")
        ax.figure.colorbar(image, ax=ax, label=f"P(x = {label})")
    ax.set(xlabel="column", ylabel="row")
    ax.locator_params(integer=True)
    return ax


def _colours(n: int) -> Any:
    """A colour for each of n labels."""
    from matplotlib import colormaps

    return colormaps["tab10"].colors[:n] if n <= 10 else colormaps["turbo"](np.linspace(0.05, 0.95, n))  # type: ignore


def axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    return import_extra("matplotlib.pyplot", "figures need Matplotlib").subplots(layout="constrained")[1]
