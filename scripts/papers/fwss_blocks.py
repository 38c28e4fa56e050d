"""FWSS18, App. G.5, Fig. 9: FWSS, block FWSS (PBC-FWSS) with workers, and SVGD against time.

    python scripts/papers/fwss_blocks.py [--workers 2]

The model is a neural regression with 100 units. The paper's data set, Year, is not available; with UCI's protein table
($HERDNER_DATA/uci), the posterior has 1,103 dimensions. Block FWSS moves each block of variables separately. The number
of workers changes only the time; the number of blocks also changes the result.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from experiment import Experiment, command
from fwss_regression import run_svgd, split, table

from herdner.studies.fwss import Adam, Points, block_fwss, fwss


def curve(chosen, points: Points) -> tuple[np.ndarray, list[float]]:
    """Return the time and RMSE after each new particle; for SVGD, only the final time and RMSE."""
    if "seconds" not in points.history:
        return np.array([points.seconds]), [chosen.score(points)[0]]
    sizes = range(1, len(points) + 1)
    return points.history["seconds"], [chosen.model.score(points.x[:k], np.ones(k), *chosen.test)[0] for k in sizes]


@command("fwss_blocks", "FWSS18 Fig. 9: blocks of variables, protein")
def main(
    experiment: Experiment, workers: Annotated[int, typer.Option(min=1, help="Number of threads of block FWSS.")] = 2
) -> None:
    seed = experiment.seed
    chosen = split(table("protein"), seed, units=100)
    target, n = chosen.model.target, experiment.size(quick=3, full=15)
    n_steps = experiment.size(quick=20, full=1000)
    options: dict[str, Any] = {
        "step": "constant", "n_steps": n_steps, "batch_size": 500, "optimiser": Adam(0.01, final=5e-4), "seed": seed,
    }  # fmt: skip
    tenth: dict[str, Any] = options | {"n_steps": max(1, n_steps // 10)}
    experiment.announce(lambda: fwss(target, 2, **tenth), share=2 / (10 * 6 * n))
    runs = {
        "FWSS": fwss(target, n, **options),
        "2 blocks, 1 worker": block_fwss(target, n, blocks=2, workers=1, **options),
        f"2 blocks, {workers} workers": block_fwss(target, n, blocks=2, workers=workers, **options),
        "4 blocks, 1 worker": block_fwss(target, n, blocks=4, workers=1, **options),
        "2 blocks, joined once": block_fwss(target, min(n, 2), blocks=2, moves_per_join=n_steps, **options),
    }
    runs["SVGD"] = run_svgd(chosen, n, "prior", runs["FWSS"].seconds, seed)
    same = np.array_equal(runs["2 blocks, 1 worker"].x, runs[f"2 blocks, {workers} workers"].x)
    figure, (panel,) = experiment.axes(1, width=6)
    results = {}
    for label, points in runs.items():
        seconds, values = curve(chosen, points)
        results[label] = {"seconds": seconds, "RMSE": values}
        if "once" not in label:  # far above all others
            panel.plot(seconds, values, marker=".", label=label)
        print(f"{label}: RMSE {values[-1]:.3f} after {seconds[-1]:.1f} s")
    print(f"one worker and {workers} give {'the same points' if same else 'DIFFERENT points'}")
    panel.set(xlabel="seconds", ylabel="test RMSE")
    experiment.finish(results, figure)
