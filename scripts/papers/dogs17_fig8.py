"""DoGS17, Fig. 8 (Sec. 5.6): scans optimised with influence bounds that are too loose by 0, 10, 30 and 50 per cent.

The graph is a 40 x 40 toroidal Ising grid with coupling 0.165, and the target variable is a corner. In the paper,
looser influence bounds make the guarantee of DoGS slightly worse, and hardly change its measured bias.
"""

from __future__ import annotations

from dogs17 import Copies, draw_bias, draw_guarantees, guarantees, measured_bias
from experiment import Experiment, command

import herdner
from herdner.dobrushin import tightest_influence

FACTORS = (1.0, 1.1, 1.3, 1.5)


@command("dogs17_fig8", "DoGS17 Fig. 8: loose bounds on influence")
def main(experiment: Experiment) -> None:
    side = experiment.size(12, 40)
    budgets = [side * side * k // 2 for k in range(1, 11)]
    graph = herdner.ising(0.165, 0.0, (side, side), wrap=True)
    copies, bound = Copies.of(graph, experiment.size(300, 3000)), tightest_influence(graph)
    figure, panels = experiment.axes(len(FACTORS), 2, width=3.4, height=2.9)
    results = {}
    for column, factor in enumerate(FACTORS):
        influence = bound.scale(factor)
        found = guarantees(influence, {0: 1.0}, budgets)
        bias = measured_bias(copies, influence, 0, budgets, experiment.seeds(10, column))
        draw_guarantees(panels[column], budgets, {name: found[name] for name in bias})
        panels[column].set_title(f"bound x {factor}")
        draw_bias(panels[len(FACTORS) + column], budgets, bias)
        results[str(factor)] = {"guarantees": found, "bias": bias}
    experiment.finish({"side": side, "budgets": budgets, "factors": results}, figure)
