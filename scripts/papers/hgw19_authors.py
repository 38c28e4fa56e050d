"""Comparison of herdner with the program of HGW19's authors on their graphs: Fig. 3, 4, 6, 7, 8, 9 and Table 1.

Each sampler has ten runs, as in the authors' program; hgw19_authors.toml contains lines of their result files. Two
results are called far apart if their means differ by more than 3 standard errors. The standard error is that of a
difference of two means of ten runs, by the variance of herdner's runs. For Fig. 9 (G3), the authors have one run,
divided into 100 trials; herdner makes four such runs, and the larger of two standard errors is used: between runs and
between trials. --quick omits the longest runs, of 2^23 and 2^18 sweeps. For Table 1, herdner computes D^cor by linear
algebra; the paper estimates it from 2^32 samples.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from authors_files import COLUMNS, error_table, expectation_table, read_boltzmann
from experiment import Experiment, command
from hgw19_raw import plan_of

from herdner import FactorGraph
from herdner.inference.gibbs import complete_sharing
from herdner.studies.convergence import CorrelationEstimate, focus_variable, joint_distribution

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LENGTHS, RUNS, FAR = [2**9, 2**15, 2**23], 10, 3.0
TRIAL_LENGTHS, TRIALS, SERIES = [2**3, 2**9, 2**15, 2**18], 100, 4
NOTHING = 1e-9  # parts that are 0 but for rounding


def graphs(texts: dict[str, str]) -> dict[str, FactorGraph]:
    """Return the graph of each text, which has the file format of the authors, by name."""
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, text in texts.items():
            (Path(folder) / name).write_text(text)
            found[name] = read_boltzmann(Path(folder) / name)
    return found


def compared(graph: FactorGraph, run: dict[str, Any], lengths: list[int], seed: int) -> list[dict[str, Any]]:
    """Return, for each number of sweeps, herdner's and the authors' results and their difference in standard errors."""
    plan = plan_of(run["method"], run.get("bins", 16), run.get("error_bound", 1.0))
    # The authors' Gibbs sampler shares by the joint state of all neighbours. On a complete graph, this is complete
    # sharing, because all other variables are neighbours.
    sharing = complete_sharing() if run["name"] == "G4, Gibbs" else None
    mean, sd = error_table(graph, plan, lengths, RUNS, seed, sharing=sharing, spread=True)
    rows = []
    for ours, spread, theirs in zip(mean, sd, run["rows"], strict=False):
        errors = spread * np.sqrt(2 / RUNS)
        apart = np.where(np.maximum(ours, theirs) < NOTHING, 0.0, (ours - theirs) / np.maximum(errors, 1e-300))
        names = ("ours", "theirs", "standard errors apart")
        rows.append({n: dict(zip(COLUMNS, v, strict=True)) for n, v in zip(names, (ours, theirs, apart), strict=True)})
    return rows


def expectations(graph: FactorGraph, run: dict[str, Any], lengths: list[int], seeds: list[int]) -> dict[str, Any]:
    """Return the results for Fig. 9 as in `compared`, by labels and by conditionals if the authors have them."""
    plan = plan_of(run["method"], run.get("bins", 16), 1.0)
    means, sds = np.stack([expectation_table(graph, plan, lengths, TRIALS, seed) for seed in seeds], axis=1)
    errors = np.maximum(means.std(axis=0, ddof=1), sds.mean(axis=0) / np.sqrt(TRIALS)) * np.sqrt(1 + 1 / len(seeds))
    found = {}
    for at, kind in enumerate(("labels", "conditionals")):
        if kind in run:
            ours, theirs = means.mean(axis=0)[:, at], np.array(run[kind][: len(lengths)])
            apart = (ours - theirs) / errors[:, at]
            found[kind] = {"ours": ours, "theirs": theirs, "standard errors apart": apart}
    return found


def means_of(experiment: Experiment, runs: list[dict[str, Any]], models: dict[str, FactorGraph]) -> dict[str, Any]:
    """Return the `expectations` of all runs of Fig. 9, and the number of results that are far apart."""
    lengths, rows = TRIAL_LENGTHS[: experiment.size(3, 4)], {}
    for run in runs:
        seeds = experiment.seeds(SERIES, 1)
        rows[run["name"]] = expectations(models[run["name"].split(",")[0]], run, lengths, seeds)
    apart = [row["standard errors apart"] for found in rows.values() for row in found.values()]
    return {"lengths": lengths, "rows": rows, **far_apart(apart)}


def far_apart(apart: list[Any]) -> dict[str, int]:
    """Return the number of compared results, and the number of results that are too many standard errors apart."""
    differences = np.concatenate([np.ravel(row) for row in apart])
    return {"far": int((np.abs(differences) > FAR).sum()), "compared": differences.size}


@command("hgw19_authors", "HGW19: the numbers of the authors' program")
def main(experiment: Experiment) -> None:
    held = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    models, lengths = graphs(held["graphs"]), LENGTHS[: experiment.size(2, 3)]
    rows = {}
    for run, seed in zip(held["run"], experiment.seeds(len(held["run"])), strict=True):
        rows[run["name"]] = compared(models[run["name"].split(",")[0]], run, lengths, seed)
    apart = [list(row["standard errors apart"].values()) for found in rows.values() for row in found]
    estimates = {
        name: CorrelationEstimate.exact(joint_distribution(models[name]), focus_variable(models[name])).total
        for name in held["table1"]
    }
    experiment.finish(
        {"lengths": lengths, "rows": rows, **far_apart(apart), "estimates": estimates, "table1": held["table1"]}
        | {"means": means_of(experiment, held["expectation"], models)}
    )
