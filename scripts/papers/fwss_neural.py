"""FWSS18, Sec. 5 and App. G.3, Table 2 and Fig. 2 and 7: Bayesian neural regression with one hidden layer.

    python scripts/papers/fwss_neural.py [--data naval --data protein] [--true-samples 0]
    python scripts/papers/fwss_neural.py --data FOLDER/YearPredictionMSD.txt

The script measures test RMSE and log-likelihood of FWSS and SVGD in the same wall time, over five random splits into 90
% training and 10 % test data. On the first split, it also measures FWSS from the prior, and RMSE against time. All
methods run in one process, with one clock and one implementation of kernel and target. FWSS starts from the mode
(L-BFGS on all data), then moves each particle on mini-batches. SVGD starts from the usual initial weights of a network,
as its authors do, and also from the same mode, to separate the effect of the start from that of the method. The script
needs $HERDNER_DATA/uci. The data set Year is read from UCI's file, YearPredictionMSD.txt. --true-samples N adds Fig.
2b, the MMD^2 to N states of HMC, in files named fwss_neural_2b. Quick runs use a fortieth of the data. If --data
selects a single table, the output files have its name, such as fwss_neural_naval.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from experiment import Experiment, command
from fwss_regression import EFFORTS, FILES, Split, run_fwss, run_svgd, split, table
from scipy.spatial.distance import pdist
from uci_files import read_uci

from herdner.studies.fwss import Adam, Points, fwss, hmc, mmd2

PAPER = {
    "naval": {"FWSS": (4.2e-4, 6.00), "SVGD": (4.9e-4, 6.08), "seconds": 150},
    "protein": {"FWSS": (4.43, -2.91), "SVGD": (4.51, -2.93), "seconds": 40},
    "year": {"FWSS": (9.50, -3.65), "SVGD": (9.54, -3.65), "seconds": 300},
}
UNITS = {"year": 100}
METHODS = ("FWSS, mode", "FWSS, prior", "SVGD, prior", "SVGD, mode")


def rows_of(data: str) -> tuple[str, np.ndarray]:
    """Return the name and the table [rows, inputs + 1] of the data set that --data selects."""
    if data in EFFORTS and data in FILES:
        return data, table(data)
    if not Path(data).is_file():
        raise SystemExit(f"--data must be naval, protein or an existing file, got {data!r}")
    return "year", read_uci(data, "year")


def run_all(chosen: Split, effort: tuple[int, int, int, int], seed: int, with_prior: bool) -> dict[str, Points]:
    """Run all methods with the same number of particles, in the time of FWSS from the mode."""
    mode_steps, n, n_steps, batch = effort
    first = run_fwss(chosen, mode_steps, n, n_steps, batch, seed)
    after_mode = float(np.ptp(first.history["seconds"]))
    prior = {"FWSS, prior": from_prior(chosen, n, n_steps, batch, first.seconds, seed)} if with_prior else {}
    return prior | {
        "FWSS, mode": first,
        "SVGD, prior": run_svgd(chosen, n, "prior", first.seconds, seed),
        "SVGD, mode": run_svgd(chosen, n, first.x[:1], after_mode, seed),
    }


def from_prior(chosen: Split, n: int, n_steps: int, batch: int, seconds: float, seed: int) -> Points:
    """Run FWSS from the prior, with as many moves for each particle as ``seconds`` allow."""
    options = {"step": "constant", "batch_size": batch, "optimiser": Adam(0.01, final=1e-4)}
    one = fwss(chosen.model.target, 2, n_steps=n_steps, seed=1, **options)
    each = int(n_steps * (seconds / n) / (one.seconds / 2))
    return fwss(chosen.model.target, n, n_steps=max(10, each), seed=seed, **options)


def curves(panel, name: str, chosen: Split, runs: dict[str, Points]) -> None:
    """Draw RMSE against time: after each particle of FWSS, and at the end of SVGD."""
    for method, points in runs.items():
        if "FWSS" in method:
            sizes = np.arange(1, len(points) + 1)
            values = [chosen.model.score(points.x[:k], np.ones(k), *chosen.test)[0] for k in sizes]
            panel.semilogy(points.history["seconds"], values, marker=".", label=method)
        else:
            value = chosen.score(points)[0]
            panel.semilogy([points.seconds], [value], marker="s", linestyle="", label=method)
    panel.axhline(PAPER[name]["FWSS"][0], color="k", linestyle=":", label="paper, FWSS")
    panel.set(title=f"{name}: test RMSE", xlabel="seconds (SVGD, mode: after the mode)")


def distances(panel, name: str, chosen: Split, runs: dict[str, Points], n_samples: int) -> dict[str, list[float]]:
    """Draw and return the MMD^2 of FWSS and SVGD to HMC samples (Fig. 2b). HMC starts at particles of FWSS."""
    init = runs["FWSS, mode"].x[:2]
    samples = hmc(
        chosen.model.target, n_samples, n_chains=len(init), n_leapfrog=10, n_warmup=n_samples // 2, init=init, seed=0
    )  # fmt: skip
    h, found = float(np.median(pdist(samples.x))), {}
    for method, points in runs.items():
        sizes = range(1, len(points) + 1) if "FWSS" in method else [len(points)]
        values = found[method] = [mmd2(points.x[:k], samples.x, h) for k in sizes]
        panel.semilogy(sizes, values, marker=".", label=method)
        print(f"  {name}, {method}: MMD^2 {values[-1]:.3g} to {n_samples} states of HMC")
    panel.set(title=f"{name}: MMD$^2$ to HMC", xlabel="particles N")
    return found


def report(name: str, found: dict[str, np.ndarray]) -> None:
    print(f"{name}: mean and standard deviation over the splits")
    for method, values in found.items():
        mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(3)
        line = f"RMSE {mean[0]:.4g} +- {sd[0]:.2g}  LL {mean[1]:.3f} +- {sd[1]:.2g}  {mean[2]:.1f} s"
        print(f"  {method:12} ({len(values)}) {line}")
    paper = PAPER[name]
    for method in ("FWSS", "SVGD"):
        print(f"  paper, {method}: RMSE {paper[method][0]:.4g}  LL {paper[method][1]:.2f}  {paper['seconds']} s")


@command("fwss_neural", "FWSS18 Table 2, Fig. 2 and 7: neural regression")
def main(
    experiment: Experiment,
    data: Annotated[
        list[str] | None, typer.Option(help="naval, protein or UCI's file of Year [default: naval and protein].")
    ] = None,
    splits: Annotated[int | None, typer.Option(min=1, help="Number of random splits [default: 5].")] = None,
    true_samples: Annotated[int, typer.Option(min=0, help="Number of HMC samples for Fig. 2b (slow).")] = 0,
) -> None:
    tables = [rows_of(one) for one in data or ["naval", "protein"]]
    names = [name for name, _ in tables]
    if len(names) == 1:
        experiment.name = f"fwss_neural_{names[0]}"
    if true_samples:
        experiment.name, experiment.title = "fwss_neural_2b", "FWSS18 Fig. 2b: neural regression, MMD to HMC"
        tables = [(name, rows[::40] if experiment.quick else rows) for name, rows in tables]
    n_splits = splits or experiment.size(quick=2, full=5)
    figure, panels = experiment.axes(len(names), rows=2 if true_samples else 1)
    some, steps = (
        split(tables[-1][1], 0, UNITS.get(names[-1], 50)),
        experiment.size(quick=5, full=EFFORTS[names[-1]][0]),
    )
    share = 30 / (3 * steps * n_splits * len(names))
    experiment.announce(lambda: run_fwss(some, 30, 1, 1, 10, 0), share)
    results: dict = {}
    for column, ((name, rows), panel) in enumerate(zip(tables, panels, strict=False)):
        effort = experiment.size(quick=(100, 10, 200, 100) if true_samples else (5, 2, 20, 20), full=EFFORTS[name])
        found: dict[str, list] = {method: [] for method in METHODS}
        for at, split_seed in enumerate(experiment.seeds(n_splits)):
            chosen = split(rows, split_seed, UNITS.get(name, 50))
            runs = run_all(chosen, effort, at, with_prior=not at)
            for method, points in runs.items():
                found[method].append([*chosen.score(points), points.seconds])
            if not at:
                curves(panel, name, chosen, runs)
                if true_samples:
                    below = panels[len(names) + column]
                    results[f"{name}, MMD^2"] = distances(below, name, chosen, runs, true_samples)
        results[name] = {method: np.array(values) for method, values in found.items()}
        report(name, results[name])
    experiment.finish({"columns": ["RMSE", "log-likelihood", "seconds"], **results}, figure)
