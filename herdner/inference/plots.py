"""Plots of traces and marginals with Matplotlib."""

# pyright: reportUnknownMemberType=false
# Matplotlib does not declare the types of its keyword arguments.

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

_MOST_POINTS = 4000  # largest number of points of a line; a screen cannot show more
_MOST_BARS = 50  # largest number of variables that are drawn by default


def plot_trace(trace: Floats, best: float, ax: Axes | None) -> Axes:
    """Plot the log-potential of each run after each sweep. A long trace is thinned to every k-th sweep.

    Args:
        trace: float64[C, n_sweeps], log-potentials.
        best: Log-potential of the best state.
        ax: Axes to draw on; None creates a figure.

    Returns:
        The axes with the plot.
    """
    ax = axes(ax)
    n_chains, n_sweeps = len(trace), int(trace.shape[1])
    sweeps = np.arange(0, n_sweeps, max(1, -(-n_sweeps // _MOST_POINTS)))
    for number, chain in enumerate(trace):
        ax.plot(sweeps + 1, chain[sweeps], linewidth=0.8, label=f"chain {number}")
    if best >= trace.max(initial=-np.inf):  # false if the best state was not recorded
        ax.axhline(best, color="0.4", linewidth=0.8, linestyle=":", label="best state")
    ax.set(xlabel="sweep", ylabel="log-potential")
    if n_chains <= 10:
        ax.legend(loc="lower right", fontsize="small")
    return ax


def plot_marginals(
    marginals: Floats, ax: Axes | None, variables: ArrayLike | None, shape: Sequence[int] | None, state: int | None
) -> Axes:
    """Plot marginals as bars or as an image; see `herdner.Result.plot_marginals`.

    Args:
        marginals: float64[V, K].
        ax: Axes to draw on; None creates a figure.
        variables: int[N], the variables to draw as bars; None is the first 50.
        shape: (rows, columns) of an image; None draws bars.
        state: The state whose probability is drawn, or None.

    Returns:
        The axes.

    Raises:
        ValueError: An argument does not fit the marginals.
    """
    if state is not None and not 0 <= state < marginals.shape[1]:
        raise ValueError(f"state must be 0 to {marginals.shape[1] - 1}, not {state}")
    if shape is None:
        return _bars(axes(ax), marginals, variables, state)
    if variables is not None:
        raise ValueError(
            "`shape` and `variables` cannot be combined: `shape` draws all variables as an image, and `variables`"
            " draws some variables as bars; pass one of them"
        )
    if np.shape(shape) != (2,):
        raise ValueError(f"shape must be (rows, columns), not {shape!r}")
    rows, columns = shape
    if rows * columns != len(marginals):
        raise ValueError(f"shape must have {len(marginals)} cells, one for each variable, not {rows} x {columns}")
    return _image(axes(ax), marginals.reshape(rows, columns, -1), state)


def _bars(ax: Axes, marginals: Floats, variables: ArrayLike | None, state: int | None) -> Axes:
    n_variables, n_states = len(marginals), int(marginals.shape[1])
    selection = np.arange(min(n_variables, _MOST_BARS)) if variables is None else np.atleast_1d(variables)
    check_variables(selection, n_variables)
    states = [state] if state is not None else [1] if n_states == 2 else range(n_states)
    places, base = np.arange(len(selection)), np.zeros(len(selection))
    colours = _colours(n_states)
    for k in states:
        ax.bar(places, marginals[selection, k], bottom=base, width=0.85, color=colours[k], label=f"{k}")
        base += marginals[selection, k]
    ticks = places[:: max(1, len(places) // 10)]
    ax.set_xticks(ticks, [str(i) for i in selection[ticks]])
    subset = "" if len(selection) >= n_variables else f" ({len(selection)} of {n_variables})"
    quantity = "probability" if len(states) > 1 else f"P(x = {states[0]})"
    ax.set(xlabel=f"variable{subset}", ylabel=quantity, ylim=(0, 1))
    if 1 < len(states) <= 20:
        ax.legend(title="state", fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def _image(ax: Axes, marginals: Floats, state: int | None) -> Axes:
    from matplotlib.colors import BoundaryNorm, ListedColormap

    n_states = int(marginals.shape[2])
    if state is None and n_states > 2:
        norm = BoundaryNorm(np.arange(n_states + 1) - 0.5, n_states)
        image = ax.imshow(
            marginals.argmax(axis=2), cmap=ListedColormap(_colours(n_states)), norm=norm, interpolation="nearest"
        )
        ax.figure.colorbar(image, ax=ax, ticks=range(0, n_states, -(-n_states // 20)), label="most probable state")
    else:
        state = n_states - 1 if state is None else state
        image = ax.imshow(marginals[:, :, state], vmin=0, vmax=1, cmap="viridis", interpolation="nearest")
        ax.figure.colorbar(image, ax=ax, label=f"P(x = {state})")
    ax.set(xlabel="column", ylabel="row")
    ax.locator_params(integer=True)
    return ax


def _colours(n: int) -> Any:
    """Return a colour for each of ``n`` states."""
    from matplotlib import colormaps

    return colormaps["tab10"].colors[:n] if n <= 10 else colormaps["turbo"](np.linspace(0.05, 0.95, n))  # type: ignore


def axes(ax: Axes | None) -> Axes:
    """Return ``ax``, or the axes of a new figure if ``ax`` is None.

    Args:
        ax: Matplotlib axes or None.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    if ax is not None:
        return ax
    return import_extra("matplotlib.pyplot", "figures need Matplotlib").subplots(layout="constrained")[1]
