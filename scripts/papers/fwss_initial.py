"""FWSS18, Fig. 2a and 7: Bayesian neural regression from the initial weights of a network, RMSE against time.

    python scripts/papers/fwss_initial.py [--splits 3]

The settings are those of Sec. 5 and App. G.3: Adam with a rate of 0.005, mini-batches of 100, 1,000 moves of each
particle, no mode. The first particle of FWSS starts at a draw from the prior, each other particle near the last one,
and the weights of earlier particles shrink by the step 2 / (n + 1). SVGD starts with as many draws and gets the same
time. The script needs naval and protein in $HERDNER_DATA/uci.
"""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import typer
from experiment import Experiment, command
from fwss_regression import Split, run_svgd, split, table

from herdner.studies.fwss import Adam, fwss

RATE = 0.005
SNAPSHOTS = 40


def rmse(chosen: Split, x: np.ndarray, weights: np.ndarray) -> float:
    """Return the test RMSE of the mean prediction of weighted particles."""
    return chosen.model.score(x, weights, *chosen.test)[0]


def fwss_curve(chosen: Split, n: int, n_steps: int, seed: int) -> tuple[list[float], list[float]]:
    """Return the times at which FWSS has 1 to n particles, and the RMSE at these times."""
    target, rng = chosen.model.target, np.random.default_rng(seed)
    starts, points, seconds, errors = target.prior(rng, 1), None, [], []
    for k in range(n):
        points = fwss(
            target, k + 1, step="constant", init=starts, n_steps=n_steps, optimiser=Adam(RATE), batch_size=100,
            start=points, seed=rng,
        )  # fmt: skip
        noise = rng.normal(size=(1, target.dim)) * (0.1 / np.sqrt(target.dim))
        starts = np.concatenate([points.x, points.x[-1:] + noise])
        seconds.append(points.seconds)
        errors.append(rmse(chosen, points.x, np.arange(1.0, k + 2)))
    return seconds, errors


def svgd_curve(chosen: Split, n: int, seconds: float, seed: int) -> tuple[list[float], list[float]]:
    """Return times during a run of SVGD of this many seconds, and the RMSE at these times."""
    found: list[tuple[float, np.ndarray]] = []
    began = time.perf_counter()

    def watch(_: int, x: np.ndarray) -> None:
        now = time.perf_counter() - began
        if now > seconds * len(found) / SNAPSHOTS:
            found.append((now, x.copy()))

    last = run_svgd(chosen, n, "prior", seconds, seed, rates=(RATE, RATE), watch=watch)
    found.append((last.seconds, last.x))
    return [now for now, _ in found], [rmse(chosen, x, np.ones(n)) for _, x in found]


@command("fwss_initial", "FWSS18 Fig. 2a and 7: neural regression from initial weights")
def main(
    experiment: Experiment,
    splits: Annotated[int, typer.Option(min=1, help="Number of random splits of each table.")] = 3,
) -> None:
    n, n_steps = experiment.size(quick=(4, 50), full=(20, 1000))
    tables = {name: table(name) for name in ("naval", "protein")}
    some = split(tables["protein"], 0)
    experiment.announce(lambda: fwss_curve(some, 2, n_steps // 10, 0), share=1 / (splits * 20 * n))
    figure, panels = experiment.axes(2)
    results = {}
    for (name, rows), panel in zip(tables.items(), panels, strict=True):
        results[name] = []
        for seed in experiment.seeds(splits):
            chosen = split(rows, seed)
            ours = fwss_curve(chosen, n, n_steps, seed)
            theirs = svgd_curve(chosen, n, ours[0][-1], seed)
            results[name].append({"FWSS": ours, "SVGD": theirs})
            for color, (method, curve) in zip(("C0", "C1"), results[name][-1].items(), strict=True):
                panel.semilogy(*curve, color=color, marker=".", label=method if len(results[name]) == 1 else None)
        panel.set(title=f"{name}: test RMSE", xlabel="seconds")
    experiment.finish(results, figure)
