"""Denoising under Gaussian noise: HG16, Table 2 and Fig. 9.

    python scripts/papers/hg16_denoising.py PICTURE [--coupling 0.5] [--start observed|random] [--error squared|wrong]
            [--order rows|random] [--temper 1] [--noise sd|variance] [--side 128] [--search]

For each sigma of 2, 4, 6, 8, ten noisy pictures are denoised by 30 sweeps of herded Gibbs (HG), HG-shared, Gibbs, and
mean field with damping 0.5 and 1. Table 2 is the error after 30 sweeps; Fig. 9 is the error by the number of sweeps at
sigma = 4.

The paper's picture is not available, and the paper does not specify:

* whether J = 1 of eq. 17, whose sum has a factor 1/2, is a coupling of 0.5 or of 1 per pair;
* where samplers begin, and in which order they visit pixels;
* whether its L2 error is that of the posterior means (with black 0 and white 1) or of the labels;
* whether conditionals have the factor 2 that values -1 and 1 imply and the program of HGW19 omits (--temper 0.5);
* whether sigma is the standard deviation, as the paper writes, or the variance.

--search tries all combinations of these choices, and prints, for each sigma, how many of the ten pairs of methods are
in the paper's order. No combination reproduces the order for all four sigmas; the page on the papers has the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from experiment import Experiment, command, draw_errors, summary
from numpy.typing import NDArray
from shapes import read_shape, resized

from herdner import Gibbs, Record, TableGraph, compile_tables
from herdner.graph.scan import Scan, fixed_scan, systematic_scan
from herdner.inference.backends.mean_field import MeanField
from herdner.inference.gibbs import blanket_sharing, neighbour_sum_sharing
from herdner.studies.denoising import GaussianNoise, posterior_graph

KEPT = Record(best=False, marginals=False, every=1)
SAMPLERS = {"HG": blanket_sharing(), "HG-shared": neighbour_sum_sharing(), "Gibbs": None}
DAMPINGS = {"mean field D=0.5": 0.5, "mean field D=1": 1.0}
METHODS = [*SAMPLERS, *DAMPINGS]
SIGMAS = (2, 4, 6, 8)
PRINTED = {  # HG16 Table 2, x 1000
    "HG": (21.58, 32.07, 47.52, 67.93), "HG-shared": (22.24, 31.40, 42.62, 58.49),
    "Gibbs": (21.63, 37.20, 63.78, 90.27),
    "mean field D=0.5": (15.52, 41.76, 76.24, 104.08), "mean field D=1": (17.67, 32.04, 51.19, 74.74),
}  # fmt: skip
Start = Literal["observed", "random"]
Error = Literal["squared", "wrong"]
Order = Literal["rows", "random"]
Noise = Literal["sd", "variance"]


def means(
    graph: TableGraph, name: str, start: NDArray, scan: Scan, at: list[int], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return a method's estimates of P(white) of each pixel after each number of sweeps in ``at``, [T, V]."""
    if name in DAMPINGS:  # begins with the unary factors alone
        runs = [MeanField(DAMPINGS[name], t, 0.0, trace=False).infer(graph) for t in at]
        return np.array([run.marginals[:, 1] for run in runs if run.marginals is not None])
    samples = Gibbs(at[-1], sharing=SAMPLERS[name], scan=scan, record=KEPT).infer(graph, rng, start=start).samples
    assert samples is not None
    return (np.cumsum(samples[0], axis=0) / np.arange(1, at[-1] + 1)[:, None])[np.array(at) - 1]


def errors(p: NDArray[np.float64], truth: NDArray[np.int32], error: Error) -> NDArray[np.float64]:
    """Return the errors [T] of the estimates ``p`` [T, V] of P(white)."""
    if error == "squared":
        return ((p - truth) ** 2).mean(axis=1)
    return np.where(p == 0.5, 0.5, (p > 0.5) != truth).mean(axis=1)


@dataclass(frozen=True)
class Convention:
    """Choices that the paper does not specify."""

    coupling: float
    start: Start
    error: Error
    order: Order = "rows"
    temper: float = 1.0
    noise: Noise = "sd"

    def one_noise(self, picture: NDArray[np.int32], sigma: float, at: list[int], seed: int) -> NDArray[np.float64]:
        """Return the errors of all methods on one noisy picture after each number of sweeps in ``at``, [methods, T]."""
        rng = np.random.default_rng(seed)
        sigma = sigma if self.noise == "sd" else sigma**0.5
        y = GaussianNoise(sigma).observe(picture, rng)
        # All log-potentials times ``temper``.
        graph = compile_tables(posterior_graph(y, GaussianNoise(sigma / self.temper**0.5), self.coupling * self.temper))
        first = (y > 0).astype(np.int32).ravel()
        if self.start == "random":
            first = rng.integers(0, 2, first.shape, np.int32)
        scan = systematic_scan() if self.order == "rows" else fixed_scan(rng.permutation(first.size))
        return np.array([errors(means(graph, m, first, scan, at, rng), picture.ravel(), self.error) for m in METHODS])


def in_order(ours: Sequence[float], sigma_index: int) -> int:
    """Return the number of pairs of methods, of ten, whose errors are in the order of Table 2."""
    theirs = [PRINTED[method][sigma_index] for method in METHODS]
    return sum(bool((a < b) == (c < d)) for (a, c), (b, d) in combinations(zip(ours, theirs, strict=True), 2))


def search(experiment: Experiment, shape: NDArray[np.int32], runs: int, n_sweeps: int) -> None:
    """Print and write the errors of all conventions, those nearest to the paper's order first."""
    experiment.name, found = "hg16_conventions", {}
    starts, kinds, orders, noises = ("observed", "random"), ("squared", "wrong"), ("rows", "random"), ("sd", "variance")
    for values in product((0.5, 1.0), starts, kinds, orders, (1.0, 0.5), noises):
        convention = Convention(*values)  # type: ignore[arg-type]
        table = np.array([
            experiment.repeat(lambda s, g=sigma, c=convention: c.one_noise(shape, g, [n_sweeps], s), runs, sigma)
            .mean(axis=0)[:, 0]
            for sigma in SIGMAS
        ])  # fmt: skip
        found[convention] = table, [in_order(row, k) for k, row in enumerate(table)]
    for convention, (table, pairs) in sorted(found.items(), key=lambda item: -sum(item[1][1])):
        print(f"{pairs} of 10 pairs: {convention}; x 1000: {np.round(1000 * table, 1).tolist()}")
    results = {str(c): {"pairs": pairs, "error": table} for c, (table, pairs) in found.items()}
    experiment.finish({"sigmas": SIGMAS, "methods": METHODS, "printed": PRINTED, "conventions": results})


def show(table: dict[str, list[tuple[float, float]]]) -> None:
    """Print the errors and the order of the five methods beside those of the paper."""
    print(f"{'error x 1000':18}" + "".join(f"{f'sigma {sigma}':>16}{'paper':>8}" for sigma in SIGMAS))
    for method, row in table.items():
        cells = (f"{1e3 * m:8.2f} ({1e3 * sd:5.2f}){p:8.2f}" for (m, sd), p in zip(row, PRINTED[method], strict=True))
        print(f"{method:18}" + "".join(cells))
    for k, sigma in enumerate(SIGMAS):
        ours, theirs = [table[m][k][0] for m in METHODS], [PRINTED[m][k] for m in METHODS]
        ranked, printed = ([METHODS[i] for i in np.argsort(values)] for values in (ours, theirs))
        same = "as in the paper" if ranked == printed else f"the paper: {' < '.join(printed)}"
        print(f"sigma {sigma}: {' < '.join(ranked)}; {same}; {in_order(ours, k)} of 10 pairs in its order")


@command(
    "hg16_denoising", "HG16 Table 2, Fig. 9: {picture.stem}, J = {coupling:g} a pair, {start} start, {error} error"
)
def main(
    experiment: Experiment,
    picture: Annotated[Path, typer.Argument(help="Clean binary picture.", exists=True, dir_okay=False)],
    coupling: Annotated[float, typer.Option(help="J of each pair of neighbours, counted once.")] = 0.5,
    start: Annotated[Start, typer.Option(help="Initial state of the samplers.")] = "observed",
    error: Annotated[
        Error, typer.Option(help="Squared error of the posterior mean, or share of wrong labels.")
    ] = "squared",
    order: Annotated[Order, typer.Option(help="Order of the pixels in a sweep.")] = "rows",
    temper: Annotated[float, typer.Option(min=0, help="Factor of all log-potentials.")] = 1.0,
    noise: Annotated[Noise, typer.Option(help="Meaning of sigma.")] = "sd",
    side: Annotated[int, typer.Option(min=3, help="Largest side after scaling.")] = 128,
    search_all: Annotated[bool, typer.Option("--search", help="Try all combinations of the choices.")] = False,
) -> None:
    shape = resized(read_shape(picture), experiment.size(min(side, 64), side))
    runs, n_sweeps = experiment.size(3, 10), 30
    if search_all:
        search(experiment, shape, runs, n_sweeps)
        return
    convention, at = Convention(coupling, start, error, order, temper, noise), {sigma: [n_sweeps] for sigma in SIGMAS}
    at[4] = list(range(1, n_sweeps + 1))
    experiment.announce(lambda: convention.one_noise(shape, 4, at[4], 0), 1 / (1.2 * runs))
    found = {
        sigma: summary(
            experiment.repeat(lambda s, sigma=sigma: convention.one_noise(shape, sigma, at[sigma], s), runs, sigma)
        )
        for sigma in SIGMAS
    }
    table = {
        m: [(float(t["mean"][k, -1]), float(t["sd"][k, -1])) for t in found.values()] for k, m in enumerate(METHODS)
    }
    show(table)
    figure, (axes,) = experiment.axes(1, width=6.0, height=4.5)
    draw_errors(axes, METHODS, found[4])
    axes.set(xlabel="sweeps", ylabel="error at sigma = 4", yscale="log")
    curves = {method: found[4]["mean"][k] for k, method in enumerate(METHODS)}
    experiment.finish({"sigmas": SIGMAS, "table": table, "printed": PRINTED, "fig9": curves}, figure)
