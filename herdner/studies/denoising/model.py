"""The Markov random field of a noisy picture, and denoising with it (HG16, Sec. 4.3; HGW19, Sec. 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats, Int32s, constant
from herdner.base.checks import check_real
from herdner.base.representation import short_repr
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
    """Denoised picture, with the noise model and the coupling that `denoise` used.

    Attributes:
        labels: int32[rows, columns], the label of each pixel.
        mean: float64[rows, columns], the posterior mean of the levels of Gaussian noise, or of the labels. None without
            marginals.
        noise: The noise of the model.
        coupling: Coupling of neighbouring pixels.
        result: The result of the backend.
    """

    labels: Int32s
    mean: Floats | None
    noise: Noise
    coupling: float
    result: Result

    __repr__ = short_repr


def posterior_graph(observed: ArrayLike, noise: Noise, coupling: float) -> FactorGraph:
    """Build the graph of the posterior distribution of the pixel labels, given a noisy picture.

    log p = ``coupling`` * sum over neighbours of (1 if their labels are equal, else -1) + sum of log p(y_i | x_i). With
    two labels, this is the Ising model J s_i s_j with s = -1, 1 and each pair counted once. The sum of HG16, eq. 17 has
    a factor 1/2. Its J equals this coupling if the sum counts both orders of each pair, and twice this coupling if it
    counts each pair once. With a negative coupling, neighbours tend to differ.

    Args:
        observed: y [rows, columns], numbers for Gaussian noise, labels for flip noise.
        noise: The noise.
        coupling: Coupling of neighbouring pixels.

    Returns:
        A graph with one variable per pixel, row by row.

    Raises:
        ValueError: The observation does not fit the noise, or the coupling is not finite.
    """
    y, coupling = check_observation(observed, noise), check_real(coupling, "coupling")
    prior = _prior(y.shape, noise.n_labels, coupling)
    pixels, pairs = prior.factors
    if isinstance(noise, GaussianNoise):
        likelihood = TableFactors(pixels.scopes, noise.log_likelihood(y.ravel()))
    else:
        likelihood = TableFactors(pixels.scopes, noise.table.T, y.ravel())
    return FactorGraph(prior.domains, [pairs, likelihood])


def check_observation(observed: ArrayLike, noise: Noise) -> NDArray[Any]:
    """Check a noisy picture, and convert it to an array.

    Args:
        observed: [rows, columns].
        noise: The noise.

    Returns:
        float64[rows, columns], numbers, for Gaussian noise; int32[rows, columns], labels, for flip noise.

    Raises:
        ValueError: The observation does not fit the noise.
    """
    y = np.asarray(observed)
    if y.ndim != 2 or not y.size:
        raise ValueError(f"a picture must have shape [rows, columns] and at least one pixel, got {y.shape}")
    if isinstance(noise, FlipNoise):
        if y.dtype.kind not in "iub" or int(y.min()) < 0 or int(y.max()) >= noise.n_labels:
            raise ValueError(f"observed labels must be integers from 0 to {noise.n_labels - 1}, got {y.tolist()!s:.80}")
        return y.astype(np.int32)
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        raise ValueError("the picture has pixels that are not finite; replace them first")
    return y


def default_backend(estimate: Literal["mean", "map"] = "mean", n_sweeps: int = 30) -> Backend:
    """Return the default backend for an estimate: herded Gibbs sampling for "mean", annealed Gibbs sampling for "map".

    Herded Gibbs uses one weight per pixel, the best choice in HGW19, Fig. 11, and the circular form of weights, as the
    authors' program does.

    Args:
        estimate: The estimate, see `denoise`.
        n_sweeps: Number of sweeps.

    Raises:
        ValueError: ``estimate`` is neither "mean" nor "map".
    """
    _check_estimate(estimate)
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
    """Denoise one picture.

    Samplers start at the labels that are most likely without the neighbouring pixels.

    Args:
        observed: [rows, columns], numbers for Gaussian noise, labels for flip noise.
        noise: The noise.
        coupling: Coupling of neighbouring pixels.
        backend: An inference backend; by default `default_backend`.
        estimate: "mean" takes for each pixel the label with the largest marginal; with two labels, this compares the
            sample mean with 1/2 (HGW19, Sec. 7). "map" takes the best state that the backend visits.
        seed: Random seed or generator.

    Returns:
        The labels of the pixels, their posterior means for "mean", and the result of the backend.

    Raises:
        ValueError: The backend has no marginals for "mean", or an argument does not fit.
    """
    _check_estimate(estimate)
    y = check_observation(observed, noise)
    graph = posterior_graph(y, noise, coupling)
    backend = default_backend(estimate) if backend is None else backend
    start = noise.most_likely(y).ravel() if backend.capabilities.start == "state" else None
    result = backend.infer(graph, seed, start=start)
    if estimate == "map":
        return DenoisedPicture(result.state.reshape(y.shape), None, noise, coupling, result)
    if result.marginals is None:
        raise ValueError(
            "estimate 'mean' needs marginals, which this backend does not compute; use 'map' (--estimate map) or a"
            " sampler"
        )
    if noise.n_labels == 2:
        labels = (result.marginals[:, 1] > 0.5).astype(np.int32)
    else:
        labels = result.marginals.argmax(axis=1).astype(np.int32)
    levels = noise.levels if isinstance(noise, GaussianNoise) else np.arange(noise.n_labels)
    mean = result.marginals @ np.array(levels, np.float64)
    return DenoisedPicture(labels.reshape(y.shape), mean.reshape(y.shape), noise, coupling, result)


def _check_estimate(estimate: str) -> None:
    if estimate not in ("mean", "map"):
        raise ValueError(f"`estimate` must be 'mean' or 'map', got {estimate!r}")


def _prior(shape: tuple[int, ...], n_labels: int, coupling: float) -> FactorGraph:
    """Build the graph of the prior: one variable for each pixel, and one shared table for all pairs of neighbours."""
    if n_labels == 2:
        return ising(coupling, 0.0, shape)
    grid = potts(0.0, np.broadcast_to(np.zeros(n_labels), (*shape, n_labels)))
    pixels, pairs = grid.factors
    scale = constant(coupling, len(pairs.scopes), np.float64)
    return FactorGraph(grid.domains, [pixels, TableFactors(pairs.scopes, 2 * np.eye(n_labels)[None] - 1, scale=scale)])
