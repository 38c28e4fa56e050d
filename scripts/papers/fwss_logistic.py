"""FWSS18, Sec. 5 and App. G.3, Fig. 1, 6 and 8: Bayesian logistic regression.

    python scripts/papers/fwss_logistic.py [--data NAME or FILE]

The script measures test accuracy against time for FWSS (MAP start and prior start), SVGD, SGLD and Stein points, and
MMD^2 against the number of particles for FWSS and SVGD, with HMC for the reference samples. The paper uses the data set
Covertype. With --data, the script reads UCI's file, covtype.data or covtype.data.gz; without --data, scikit-learn
downloads Covertype. If there is no network, the script uses UCI's protein table, classified by the median of its last
column (45,730 cases of 9 features, in $HERDNER_DATA/uci), or scikit-learn's breast cancer set (569 cases of 30
features).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from experiment import Experiment, command
from fwss_regression import is_there, table
from scipy.spatial.distance import pdist
from uci_files import read_uci

from herdner.studies.fwss import (
    Adam,
    LogisticRegression,
    Points,
    fwss,
    hmc,
    median_bandwidth,
    mmd2,
    quadrature_weights,
    sgld,
    stein_points,
    svgd,
)

# The paper's rate, 0.005, does not leave the prior's draws in its 250 moves.
RATES = Adam(0.05, final=0.001)
Curve = tuple[list[float], list[float]]
Accuracy = Callable[[np.ndarray, np.ndarray], float]


def load(data: str) -> tuple[str, np.ndarray, np.ndarray]:
    """Return the name, the inputs, and the labels (0 or 1) of a data set."""
    from sklearn.datasets import fetch_covtype, load_breast_cancer

    if Path(data).is_file():
        rows = read_uci(data, "covtype")
        return "Covertype", rows[:, :-1], (rows[:, -1] == 2).astype(float)
    if data not in ("", "covtype", "protein", "breast-cancer"):
        raise SystemExit(f"--data must be covtype, protein, breast-cancer or an existing file, got {data!r}")
    if data in ("", "covtype"):
        try:
            x, y = fetch_covtype(return_X_y=True, n_retries=1, delay=0.1)
            return "Covertype", np.asarray(x), (np.asarray(y) == 2).astype(float)
        except OSError as error:
            if data:
                raise SystemExit(f"Covertype cannot be downloaded: {error}") from None
    if data == "protein" or (not data and is_there("protein")):
        rows = table("protein")
        return "UCI protein, above the median", rows[:, :-1], (rows[:, -1] > np.median(rows[:, -1])).astype(float)
    x, y = load_breast_cancer(return_X_y=True)
    return "breast cancer set", np.asarray(x), np.asarray(y, float)


def prepare(inputs: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> tuple[LogisticRegression, Accuracy]:
    """Return a model of 90 % of the data, with standardised inputs, and its accuracy function on the rest."""
    order = rng.permutation(len(inputs))
    learn, test = np.split(order, [int(0.9 * len(inputs))])
    middle, spread = (getattr(inputs[learn], what)(axis=0, dtype=float) for what in ("mean", "std"))
    scaled = (inputs - middle.astype(inputs.dtype)) / np.where(spread > 0, spread, 1).astype(inputs.dtype)
    model = LogisticRegression(scaled[learn], labels[learn])

    def accuracy(x: np.ndarray, weights: np.ndarray) -> float:
        return float(((model.predict(x, weights, scaled[test]) > 0.5) == labels[test]).mean())

    return model, accuracy


def accuracy_curves(
    model: LogisticRegression, accuracy: Accuracy, n: int, batch: int | None, seed: int
) -> dict[str, Curve]:
    """Return the accuracy of each method against wall time, by the name of the method."""
    target = model.target
    curves = {}
    starts: dict[str, dict[str, Any]] = {
        "FWSS, MAP start": {"init": "map", "step": "line-search"},
        "FWSS, prior start": {"init": "prior", "step": "constant"},
    }
    for label, start in starts.items():
        points = fwss(target, n, **start, n_steps=250, optimiser=RATES, batch_size=batch, seed=seed)
        curves[label] = grown(points, accuracy)
    seen: list[np.ndarray] = []
    points = svgd(
        target, n, n_iterations=1000, optimiser=RATES, batch_size=batch, seed=seed,
        watch=lambda i, x: seen.append(x) if i % 25 == 24 else None,
    )  # fmt: skip
    times = points.seconds * np.arange(1, len(seen) + 1) / len(seen)
    curves["SVGD"] = (times.tolist(), [accuracy(x, points.weights) for x in seen])
    points = sgld(target, 40 * n, step_size=2e-5, batch_size=batch, thin=5, n_chains=4, seed=seed)
    curves["SGLD"] = prefixes(points, np.linspace(4, 40 * n, 30).astype(int), accuracy)
    points = stein_points(target, n, bandwidth=median_bandwidth(points.x), scale=0.1, seed=seed)
    curves["Stein points"] = grown(points, accuracy)
    return curves


def grown(points: Points, accuracy: Accuracy) -> Curve:
    """Return the accuracy of the first n particles, equally weighted, against the time of particle n."""
    sizes = np.unique(np.geomspace(1, len(points), 25).astype(int))
    values = [accuracy(points.x[:n], np.full(n, 1 / n)) for n in sizes]
    return points.history["seconds"][sizes - 1].tolist(), values


def prefixes(points: Points, sizes: np.ndarray, accuracy: Accuracy) -> Curve:
    """Return the accuracy of the later half of the first n samples of a chain, for each n in ``sizes``."""
    values = [accuracy(points.x[n // 2 : n], np.ones(n - n // 2)) for n in sizes]
    return (points.seconds * sizes / len(points)).tolist(), values


def mmd_curves(
    model: LogisticRegression, samples: Points, n: int, batch: int | None, seed: int, n_iterations: int
) -> dict[str, tuple[list[int], list[float]]]:
    """Return the MMD^2 between HMC samples and the first N particles; each point of SVGD's curve is a run with N.

    The bandwidth is the median distance of the samples. Mini-batches are ten times larger than for accuracy, and the
    final rate is lower, so that their noise is smaller than the posterior's width. Corrected weights are fitted to one
    half of the HMC samples; the MMD of all particles is measured on the other half.
    """
    target, h = model.target, float(np.median(pdist(samples.x[:500])))
    sizes, batch = [k for k in (1, 5, 20, 50, 100) if k <= n], batch and 10 * batch
    options: dict[str, Any] = {"optimiser": Adam(0.02, final=1e-4), "bandwidth": h, "batch_size": batch, "seed": seed}
    points = fwss(target, n, step="constant", init="map", n_steps=250, **options)
    equal = [mmd2(points.x[:k], samples.x[1::2], h) for k in sizes]
    fitted, held_out = samples.x[::2], samples.x[1::2]
    corrected = [mmd2(points.x[:k], held_out, h, quadrature_weights(points.x[:k], fitted, h)[0]) for k in sizes]
    near = points.x[0] + h / 10 * np.random.default_rng(seed).normal(size=(n, target.dim)) / np.sqrt(target.dim)
    from_mode = [svgd(target, k, n_iterations=n_iterations // 2, init=near[:k], **options).x for k in sizes]
    options["optimiser"] = Adam(0.1, final=1e-4)  # from the prior it is further
    from_prior = [svgd(target, k, n_iterations=n_iterations, **options).x for k in sizes]
    rng = np.random.default_rng(seed)
    draws = [np.mean([mmd2(fitted[rng.choice(len(fitted), k)], held_out, h) for _ in range(10)]) for k in sizes]
    return {
        "FWSS, MAP start, equal weights": (sizes, equal),
        "FWSS, MAP start, corrected": (sizes, corrected),
        "SVGD, prior": (sizes, [mmd2(x, held_out, h) for x in from_prior]),
        "SVGD, mode": (sizes, [mmd2(x, held_out, h) for x in from_mode]),
        "exact samples": (sizes, [float(x) for x in draws]),
    }


@command("fwss_logistic", "FWSS18 Fig. 1, 6, 8: logistic regression")
def main(
    experiment: Experiment,
    data: Annotated[str, typer.Option(help="covtype, protein, breast-cancer or a file of Covertype.")] = "",
) -> None:
    name, inputs, labels = load(data)
    experiment.title, seed = f"{experiment.title}, {name}", experiment.seed
    if experiment.quick:
        inputs, labels = inputs[::20], labels[::20]
    model, accuracy = prepare(inputs, labels, experiment.rng())
    n = experiment.size(quick=20, full=100)
    batch = 100 if model.target.density.n_terms > 1000 else None
    experiment.announce(lambda: fwss(model.target, 2, batch_size=batch, step="constant", seed=0), share=1 / (30 * n))
    curves = accuracy_curves(model, accuracy, n, batch, seed)
    samples = hmc(
        model.target, experiment.size(quick=200, full=2000), n_chains=4, n_leapfrog=10, thin=1, n_warmup=200, seed=seed
    )
    distances = mmd_curves(model, samples, n, batch, seed, experiment.size(quick=1000, full=10_000))
    figure, (left, middle, right) = experiment.axes(3)
    for label, (seconds, values) in curves.items():
        left.semilogx(seconds, values, marker=".", label=label)
    left.set(title="test accuracy (Fig. 1a, 6)", xlabel="seconds")
    for label, (sizes, values) in distances.items():
        (middle if "start" in label else right).loglog(sizes, values, marker=".", label=label)
    for label in ("FWSS, MAP start, corrected", "FWSS, MAP start, equal weights"):
        right.loglog(*distances[label], marker=".", label=label)
    top = max(max(values) for _, values in curves.values())
    left.set_ylim(top - 0.08, top + 0.01)
    middle.set(title="MMD$^2$ (Fig. 1b)", xlabel="particles N")
    right.set(title="MMD$^2$, SVGD beside FWSS (Fig. 8)", xlabel="particles N")
    for label, (sizes, values) in distances.items():
        power = np.polyfit(np.log(sizes), np.log(values) / 2, 1)[0]
        rate = np.polyfit(sizes, np.log(values) / 2, 1)[0]
        print(f"{label}: MMD^2 {values[-1]:.2e} at N = {sizes[-1]}; MMD ~ N^{power:.2f} or e^({rate:.4f} N)")
    experiment.finish({"data": name, "accuracy": curves, "mmd2": distances}, figure)
