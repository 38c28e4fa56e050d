"""DoGS17, Fig. 4, 5, 12 to 15 (Sec. 5.4): scans for the corner of a 40 x 40 Ising grid, their guarantees and biases.

The coupling is 1 / 3.915 on the plain grid and 0.25 on the torus. In the paper, DoGS reduces the bias of the corner
much faster than the systematic scan, even faster than the guarantees show. The updates of DoGS begin in a wide
neighbourhood of the target and approach the target.
"""

from __future__ import annotations

import numpy as np
from dogs17 import Copies, draw_bias, draw_guarantees, guarantees, measured_bias
from experiment import Experiment, command

import herdner
from herdner.dobrushin import optimise_scan, tightest_influence
from herdner.dobrushin.plots import plot_distances

GRIDS = {"not toroidal": (1 / 3.915, False), "toroidal": (0.25, True)}


def quarters(order: np.ndarray, side: int) -> list[np.ndarray]:
    """Return the number of updates of each variable in each quarter of a scan."""
    return [np.bincount(part, minlength=side * side).reshape(side, side) for part in np.array_split(order, 4)]


@command("dogs17_fig4", "DoGS17 Fig. 4, 5, 12-15: scans for the corner of a 40 x 40 Ising grid")
def main(experiment: Experiment) -> None:
    side = experiment.size(12, 40)
    experiment.title = experiment.title.replace("40 x 40", f"{side} x {side}")
    budgets = [side * side * k for k in range(1, 11)]
    n_copies = experiment.size(300, 3000)
    figure, panels = experiment.axes(7, 2, width=3.2, height=3.0)
    results = {}
    for row, (name, (coupling, wrap)) in enumerate(GRIDS.items()):
        graph = herdner.ising(coupling, 0.0, (side, side), wrap=wrap)
        influence = tightest_influence(graph)
        found = guarantees(influence, {0: 1.0}, budgets)
        bias = measured_bias(Copies.of(graph, n_copies), influence, 0, budgets, experiment.seeds(10, row))
        scan = optimise_scan(influence, None, {0: 1.0}, budgets[-1])
        axes = panels[7 * row : 7 * row + 7]
        draw_guarantees(axes[0], budgets, found)
        axes[0].set_title(name)
        draw_bias(axes[1], budgets, bias)
        plot_distances(axes[2], scan.order, (side, side), 0, wrap=wrap)
        maps = quarters(scan.order, side)
        for part, (ax, image) in enumerate(zip(axes[3:], maps, strict=True)):
            ax.imshow(image, cmap="viridis")
            ax.set_title(f"updates, quarter {part + 1}", fontsize=8)
        results[name] = {"guarantees": found, "bias": bias, "quarters": maps}
    experiment.finish({"side": side, "budgets": budgets, "copies": n_copies, "grids": results}, figure)
