"""The Markov random field of a noisy picture, and its denoising (HG16 Sec. 4.3, HGW19 Sec. 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats, Int32s, constant
from herdner.base.seeds import Seed
from herdner.graph.builders import ising, potts
from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph
from herdner.inference.backend import Backend
from herdner.inference.gibbs.sharing import bin_sharing
from herdner.inference.record import Record
from herdner.inference.registry import make_backend
from herdner.inference.result import Result
from herdner.studies.denoising.noise import FlipNoise, GaussianNoise, Noise


@dataclass(frozen=True, slots=True, eq=False)
class DenoisedPicture:
    """A denoised picture.

    Attributes:
        labels: int32[rows, columns].
        mean: float64[rows, columns], the posterior mean of what the labels look like (levels, or label numbers where
            the noise flips); None without marginals.
        noise: What the noise was taken to be.
        coupling: Of neighbouring pixels.
        result: What the backend returned.
    """

    labels: Int32s
    mean: Floats | None
    noise: Noise
    coupling: float
    result: Result


def posterior_graph(observed: ArrayLike, noise: Noise, coupling: float) -> FactorGraph:
    """The graph of the labels of the pixels, row by row, given what was observed, y [rows, columns].

    log p = ``coupling`` * sum over neighbours of (1 where their labels are equal, else -1) + sum of log p(y_i | x_i).
    With two labels that is the Ising model J s_i s_j with s = -1, 1, each pair counted once; HG16's J of eq. 17, whose
    sum has a half before it, is this coupling where the sum goes over pairs in both orders, twice it where over each
    pair once. With a negative coupling neighbours tend to differ.
    """
    y = check_observation(observed, noise)
    prior = _prior(y.shape, noise.n_labels, coupling)
    pixels, pairs = prior.factors
    if isinstance(noise, GaussianNoise):
        seen = TableFactors(pixels.scopes, noise.log_likelihood(y.ravel()))
    else:
        seen = TableFactors(pixels.scopes, noise.table.T, y.ravel())
    return FactorGraph(prior.domains, [pairs, seen])


def check_observation(observed: ArrayLike, noise: Noise) -> NDArray[Any]:
    """The observation [rows, columns] as numbers, or labels, that the noise can give; ValueError otherwise."""
    y = np.asarray(observed)
    if y.ndim != 2 or not y.size:
        raise ValueError(f"a picture has shape [rows, columns], at least one pixel, not {y.shape}")
    if isinstance(noise, FlipNoise):
        if y.dtype.kind not in "iub" or int(y.min()) < 0 or int(y.max()) >= noise.n_labels:
            raise ValueError(f"the observed labels must be whole numbers 0 to {noise.n_labels - 1}")
        return y.astype(np.int32)
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        raise ValueError("the picture holds pixels that are no finite numbers; replace them first")
    return y


def default_backend(estimate: Literal["mean", "map"] = "mean", n_sweeps: int = 30) -> Backend:
    """Herded Gibbs with one weight for each pixel, as is best in HGW19 Fig. 11, in the circular form, as the program
    of its authors decides; annealed Gibbs for the best state.
    """
    if estimate == "map":
        return make_backend("annealed-gibbs", n_sweeps=n_sweeps, record=Record(marginals=False))
    return make_backend(
        "herded-gibbs", n_sweeps=n_sweeps, sharing=bin_sharing(1), weight_memory=2**35, record=Record(best=False)
    )


def denoise(
    observed: ArrayLike,
    noise: Noise,
    coupling: float,
    backend: Backend | None = None,
    estimate: Literal["mean", "map"] = "mean",
    seed: Seed = None,
) -> DenoisedPicture:
    """Denoises one picture [rows, columns] of numbers, or of labels where the noise flips.

    Samplers start at the most likely label of each pixel by itself.

    Args:
        estimate: "mean" takes for each pixel the label of largest marginal, which for two labels is the sample average
            against a half (HGW19 Sec. 7); "map" the best state that the backend finds.

    Raises:
        ValueError: The backend gives no marginals, or does not fit.
    """
    if not np.isfinite(coupling):
        raise ValueError(f"coupling must be a finite number, not {coupling}")
    y = check_observation(observed, noise)
    graph = posterior_graph(y, noise, coupling)
    backend = default_backend(estimate) if backend is None else backend
    result = backend.infer(
        graph, seed, start=noise.most_likely(y).ravel() if backend.capabilities.start == "state" else None
    )
    if estimate == "map":
        return DenoisedPicture(result.state.reshape(y.shape), None, noise, coupling, result)
    if result.marginals is None:
        raise ValueError("this backend gives no marginals, which the mean needs; use --estimate map, or a sampler")
    if noise.n_labels == 2:
        labels = (result.marginals[:, 1] > 0.5).astype(np.int32)
    else:
        labels = result.marginals.argmax(axis=1).astype(np.int32)
    levels = noise.levels if isinstance(noise, GaussianNoise) else np.arange(noise.n_labels)
    mean = result.marginals @ np.array(levels, np.float64)
    return DenoisedPicture(labels.reshape(y.shape), mean.reshape(y.shape), noise, coupling, result)


def _prior(shape: tuple[int, ...], n_labels: int, coupling: float) -> FactorGraph:
    """The pixels and, second, the pairs of neighbours, with one tied table."""
    if n_labels == 2:
        return ising(coupling, 0.0, shape)
    grid = potts(0.0, np.broadcast_to(np.zeros(n_labels), (*shape, n_labels)))
    pixels, pairs = grid.factors
    scale = constant(coupling, len(pairs.scopes), np.float64)
    return FactorGraph(grid.domains, [pixels, TableFactors(pairs.scopes, 2 * np.eye(n_labels)[None] - 1, scale=scale)])
