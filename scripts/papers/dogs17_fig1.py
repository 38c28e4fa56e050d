"""DoGS17, Fig. 1 and 9 (Sec. 5.1): guarantees of scans on 10 x 10 Ising grids with random parameters.

In the paper, the guarantee of the systematic scan is far below that of the uniform random scan for all numbers of
updates. The guarantee of DoGS is two orders of magnitude below that of the systematic scan, and iterated DoGS is
slightly better.
"""

from __future__ import annotations

import numpy as np
from dogs17 import draw_guarantees, guarantees, random_ising
from experiment import Experiment, command
from numpy.typing import NDArray

from herdner.dobrushin import tightest_influence


@command("dogs17_fig1", "DoGS17 Fig. 1, 9: guarantees of scans, 10 x 10 Ising, all variables matter")
def main(experiment: Experiment) -> None:
    budgets = list(range(200, experiment.size(1001, 3001), 200))
    replicates = experiment.size(2, 10)

    def replicate(number: int) -> dict[str, NDArray[np.float64]]:
        return guarantees(tightest_influence(random_ising(experiment.rng(number), 10)), None, budgets)

    experiment.announce(lambda: replicate(0), share=1 / replicates)
    figure, panels = experiment.axes(min(5, replicates), -(-replicates // 5), width=3.4, height=3.0)
    results = []
    for number, ax in zip(range(replicates), panels, strict=False):
        found = replicate(number)
        draw_guarantees(ax, budgets, found)
        results.append({"guarantees": found, "systematic_over_dogs": found["systematic"][-1] / found["DoGS"][-1]})
    experiment.finish({"budgets": budgets, "replicates": results}, figure)
