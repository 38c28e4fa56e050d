"""Image reconstruction after a few samples: HGW19, Fig. 11.

    python scripts/papers/hgw19_fig11.py SHAPES [--start observed|random] [--order random|rows] [--factor 1|2]
            [--trials 10]

The script flips each pixel of 100 shapes of the folder with probability 0.3, and denoises with J = 1 and T = 31 samples
in 10 trials. The script measures the share of wrong pixels of the rounded sample average (an average of 1/2 is half an
error) after each number of samples. The samplers are Gibbs, Gibbs driven by a shift register (QMC; 1 + x^3 + x^5 with
offset 3), and herded Gibbs with herding weights by the state of the neighbours (HG), by the sum of the neighbours
(HG-shared), and with one weight per pixel (HG-1bin). The paper's shapes are from all 70 classes of MPEG-7.

The defaults follow the authors' program, which begins at the noisy picture (in the paper: at random), and visits the
pixels in an order that is drawn once for each picture. The authors' program draws with sigma(J sum + b y), although the
values -1 and 1 of the paper's model imply sigma(2 J sum + 2 b y) (--factor 2). HG-1bin decides by the carry in both
programs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import numpy as np
import typer
from experiment import Experiment, command, draw_errors, summary
from numpy.typing import NDArray
from shapes import Shapes, read_shape, resized, shape_paths

from herdner import Gibbs, Record, compile_tables
from herdner.graph.scan import fixed_scan, systematic_scan
from herdner.inference.gibbs import LFSR, bin_sharing, blanket_sharing, neighbour_sum_sharing
from herdner.studies.denoising import FlipNoise, posterior_graph

T, P = 31, 0.3
Start = Literal["observed", "random"]
Order = Literal["random", "rows"]
KEPT = Record(best=False, marginals=False, every=1)
PLANS = {
    "Gibbs": Gibbs(T, record=KEPT),
    "QMC": Gibbs(T, driving=LFSR("hgw19"), record=KEPT),
    "HG": Gibbs(T, sharing=blanket_sharing(), record=KEPT),
    "HG-shared": Gibbs(T, sharing=neighbour_sum_sharing(), record=KEPT),
    "HG-1bin": Gibbs(T, sharing=bin_sharing(1), record=KEPT),
}
ORDER = ("HG-1bin", "HG-shared", "HG", "QMC", "Gibbs")


def share_wrong(samples: NDArray[np.int32], shape: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the share of wrong pixels after each sample, [T]: those of the rounded average of ``samples`` [T, V]."""
    truth, total, found = shape.ravel(), np.zeros(shape.size, np.int16), np.empty(len(samples))
    for t, sample in enumerate(samples, 1):
        total += sample.astype(np.int16)
        twice = 2 * total - t
        found[t - 1] = ((twice > 0) != truth).sum() + np.where(truth, 0.5, -0.5)[twice == 0].sum()
    return found / shape.size


@dataclass(frozen=True)
class Convention:
    """Choices in which the paper and its authors' program differ."""

    coupling: float
    start: Start
    order: Order
    factor: float

    def trial(self, shapes: list[NDArray[np.int32]], seed: int) -> NDArray[np.float64]:
        """Return the mean share of wrong pixels over one noisy picture of each shape, [methods, T]."""
        rng = np.random.default_rng(seed)
        found = np.zeros((len(PLANS), T))
        b = math.log((1 - P) / P) / 2  # of the paper, p(y | x) proportional to exp(b x y)
        seen = FlipNoise(1 / (1 + math.exp(self.factor * b)))
        for shape in shapes:
            y = FlipNoise(P).observe(shape, rng)
            graph = compile_tables(posterior_graph(y, seen, self.coupling * self.factor / 2))
            scan = systematic_scan() if self.order == "rows" else fixed_scan(rng.permutation(y.size))
            for k, plan in enumerate(PLANS.values()):
                first = y if self.start == "observed" else rng.integers(0, 2, y.shape, np.int32)
                samples = replace(plan, scan=scan).infer(graph, rng, start=first.ravel()).samples
                assert samples is not None
                found[k] += share_wrong(samples[0], shape) * shape.size
        return found / sum(shape.size for shape in shapes)


@command("hgw19_fig11", f"HGW19 Fig. 11: shapes, p = {P}, J = {{coupling:g}}")
def main(
    experiment: Experiment,
    shapes: Shapes,
    coupling: Annotated[float, typer.Option(help="Coupling J; 1 in the paper.")] = 1.0,
    start: Annotated[Start, typer.Option(help="Initial state of the samplers.")] = "observed",
    order: Annotated[Order, typer.Option(help="Order of the pixels in a sweep.")] = "random",
    factor: Annotated[
        float, typer.Option(min=0, help="Factor of J and b in the conditionals: 1, or the model's 2.")
    ] = 1.0,
    trials: Annotated[int | None, typer.Option(min=1, help="Number of noisy pictures per shape [default: 10].")] = None,
) -> None:
    convention = Convention(coupling, start, order, factor)
    paths, n = shape_paths(shapes), experiment.size(10, 100)
    chosen = experiment.rng().permutation(len(paths))[:n]
    pictures = [read_shape(paths[i]) for i in chosen]
    if experiment.quick:
        pictures = [resized(picture, 200) for picture in pictures]
    trials = trials or experiment.size(3, 10)
    share = pictures[0].size / sum(picture.size for picture in pictures)
    experiment.announce(lambda: convention.trial(pictures[:1], 0), share / trials)
    found = summary(experiment.repeat(partial(convention.trial, pictures), trials))
    figure, (axes,) = experiment.axes(1, width=6.0, height=4.5)
    draw_errors(axes, PLANS, found)
    axes.set(xlabel="samples", ylabel="share of wrong pixels", yscale="log")
    results = {name: {part: values[k] for part, values in found.items()} for k, name in enumerate(PLANS)}
    experiment.finish({"shapes": [paths[i].name for i in chosen], "order": list(ORDER), **results}, figure)
