"""Image reconstruction after a few samples: HGW19 Fig. 11.

    python scripts/papers/hgw19_fig11.py SHAPES [--quick] [--seed N] [--out FOLDER]

100 shapes of the folder, each pixel flipped with probability 0.3, J = 1, T = 31 samples from a random start: the share
of wrong pixels when the sample average is cut at a half (a tie is half an error), by the number of samples; 10 trials.
Herded Gibbs with the state of the neighbours (HG), their sum (HG-shared) and one weight (HG-1bin), Gibbs, and Gibbs
driven by a shift register, 1 + x^3 + x^5 with offset 3 (QMC). The paper's shapes are from all 70 classes of MPEG-7.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from experiment import Experiment, command, draw_errors, summary
from numpy.typing import NDArray
from shapes import Shapes, read_shape, resized, shape_paths

from herdner import LFSR, Gibbs, Record, bins, blanket, compile_tables, neighbour_sum
from herdner.denoising import Flip, posterior

T, P = 31, 0.3
KEPT = Record(best=False, marginals=False, every=1)
PLANS = {
    "Gibbs": Gibbs(T, record=KEPT),
    "QMC": Gibbs(T, driving=LFSR("1+x^3+x^5", 3), record=KEPT),
    "HG": Gibbs(T, sharing=blanket(), record=KEPT),
    "HG-shared": Gibbs(T, sharing=neighbour_sum(), record=KEPT),
    "HG-1bin": Gibbs(T, sharing=bins(1), record=KEPT),
}
ORDER = ("HG-1bin", "HG-shared", "HG", "QMC", "Gibbs")


def share_wrong(samples: NDArray[np.int32], shape: NDArray[np.int32]) -> NDArray[np.float64]:
    """[T]: of the cut averages of the first t ``samples`` [T, V], ties counted half."""
    truth, total, found = shape.ravel(), np.zeros(shape.size, np.int16), np.empty(len(samples))
    for t, sample in enumerate(samples, 1):
        total += sample.astype(np.int16)
        twice = 2 * total - t
        found[t - 1] = ((twice > 0) != truth).sum() + np.where(truth, 0.5, -0.5)[twice == 0].sum()
    return found / shape.size


def trial(shapes: list[NDArray[np.int32]], seed: int, coupling: float) -> NDArray[np.float64]:
    """[methods, T]: the mean over the shapes, one noisy picture of each."""
    rng = np.random.default_rng(seed)
    found = np.zeros((len(PLANS), T))
    for shape in shapes:
        graph = compile_tables(posterior(Flip(P).observe(shape, rng), Flip(P), coupling))
        for k, plan in enumerate(PLANS.values()):
            samples = plan.infer(graph, rng).samples
            assert samples is not None
            found[k] += share_wrong(samples[0], shape)
    return found / len(shapes)


@command("hgw19_fig11", f"HGW19 Fig. 11: shapes, p = {P}, J = {{coupling:g}}")
def main(
    experiment: Experiment,
    shapes: Shapes,
    coupling: Annotated[float, typer.Option(help="J; the paper's is 1.")] = 1.0,
) -> None:
    paths, n = shape_paths(shapes), experiment.size(10, 100)
    chosen = experiment.rng().permutation(len(paths))[:n]
    pictures = [read_shape(paths[i]) for i in chosen]
    if experiment.quick:
        pictures = [resized(picture, 200) for picture in pictures]
    trials = experiment.size(3, 10)
    share = pictures[0].size / sum(picture.size for picture in pictures)
    experiment.announce(lambda: trial(pictures[:1], 0, coupling), share / trials)
    found = summary(experiment.repeat(lambda s: trial(pictures, s, coupling), trials))
    figure, (axes,) = experiment.axes(1, width=6.0, height=4.5)
    draw_errors(axes, PLANS, found)
    axes.set(xlabel="samples", ylabel="share of wrong pixels", yscale="log")
    results = {name: {part: values[k] for part, values in found.items()} for k, name in enumerate(PLANS)}
    for name in ORDER:
        print(f"{name:10} {results[name]['mean'][-1]:.5f} (sd {results[name]['sd'][-1]:.5f})")
    errors = [float(results[name]["mean"][-1]) for name in ORDER]
    holds = "holds" if errors == sorted(errors) else "does not hold"
    print(f"at T = {T} the paper's order {' < '.join(ORDER)} {holds}")
    experiment.finish({"shapes": [paths[i].name for i in chosen], "order": list(ORDER), **results}, figure)


if __name__ == "__main__":
    typer.run(main)
