"""Estimates of coupling and noise from the noisy picture: EM with samples of herded Gibbs, and pseudo-likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.checks import check_integer, check_real
from herdner.base.seeds import Seed, generator
from herdner.inference.backends.gibbs import circular_dhg
from herdner.inference.record import Record
from herdner.studies.denoising.model import check_observation, posterior_graph
from herdner.studies.denoising.noise import Noise

MAX_COUPLING = 1.0
_PIXELS = 2**17  # the pseudo-likelihood uses fewer than twice as many pixels
_SIDE = 512  # side of the central square from which parameters are estimated
_FIRST, _ROUNDS, _SWEEPS, _BURN_IN = 0.8, 10, 20, 10


def pseudo_likelihood_coupling(labels: ArrayLike, n_labels: int, most: float = MAX_COUPLING) -> float:
    """Return the coupling that maximises the pseudo-likelihood of a labelled picture (Besag 1975).

    The coupling is the parameter of the Potts prior of `posterior_graph`.

    It maximises the probability of each pixel's label given its neighbours, by Newton's method on fewer than 2^18
    evenly spaced pixels.

    Args:
        labels: int[rows, columns], a picture without noise.
        n_labels: Number of labels.
        most: Largest absolute value of the coupling.

    Raises:
        ValueError: The labels are not integers from 0 to ``n_labels - 1``, or another argument is out of range.
    """
    check_integer(n_labels, "n_labels", 2)
    check_real(most, "most", 0)
    x = np.asarray(labels)
    if x.ndim != 2 or not x.size or x.dtype.kind not in "iub" or int(x.min()) < 0 or int(x.max()) >= n_labels:
        raise ValueError(
            f"`labels` must be integers from 0 to {n_labels - 1} of shape [rows, columns], got {x.tolist()!s:.80}"
        )
    counts = _neighbour_counts(x, n_labels)
    step = max(1, len(counts) // _PIXELS)
    rows = np.column_stack([counts, x.ravel()])[::step].astype(np.int32)
    distinct, times = np.unique(rows, axis=0, return_counts=True)
    counts, own = distinct[:, :-1].astype(np.float64), distinct[:, -1]
    mine = counts[np.arange(len(own)), own]
    coupling = 0.0
    for _ in range(50):
        weights = np.exp(2 * coupling * (counts - counts.max(axis=1, keepdims=True) * (coupling > 0)))
        weights /= weights.sum(axis=1, keepdims=True)
        expected = (weights * counts).sum(axis=1)
        slope = 2 * (times * (mine - expected)).sum()
        curve = 4 * (times * ((weights * counts**2).sum(axis=1) - expected**2)).sum()
        if curve < 1e-9 * times.sum():
            return float(np.clip(np.sign(slope) * most if slope else coupling, -most, most))
        updated = float(np.clip(coupling + np.clip(slope / curve, -0.5, 0.5), -most, most))
        if abs(updated - coupling) < 1e-6:
            break
        coupling = updated
    return coupling


def estimate_parameters(
    observed: ArrayLike,
    noise: Noise,
    coupling: float | None = None,
    *,
    refit_noise: bool = True,
    refit_levels: bool = False,
    seed: Seed = None,
) -> tuple[Noise, float]:
    """Estimate the noise model and the coupling between neighbouring pixels from a noisy picture.

    The method is Monte Carlo EM on the central 512 x 512 pixels. A few sweeps of herded Gibbs give marginals, to which
    the noise is fitted, and a sample, whose pseudo-likelihood gives the coupling. The coupling is limited to 1, because
    it would grow without bound on smooth pictures, and samplers would then hardly change any pixel.

    Args:
        observed: [rows, columns], the noisy picture.
        noise: Initial noise, such as from `estimate_flip_noise`.
        coupling: A fixed coupling, or None to estimate it.
        refit_noise: False to keep the initial noise.
        refit_levels: True to also fit the levels of Gaussian noise.
        seed: Random seed or generator.

    Returns:
        The noise and the coupling.

    Raises:
        ValueError: The picture does not fit the noise.
    """
    y, rng = _centre(check_observation(observed, noise)), generator(seed)
    state = noise.most_likely(y)
    fixed, current = coupling is not None, _FIRST if coupling is None else coupling
    sampler = circular_dhg(_SWEEPS, _BURN_IN, n_bins=1, record=Record(best=False))
    couplings: list[float] = []
    for _ in range(_ROUNDS):
        result = sampler.infer(posterior_graph(y, noise, current), rng, start=state.ravel())
        assert result.marginals is not None
        state = result.state.reshape(y.shape)
        if refit_noise:
            noise = noise.refit(y.ravel(), result.marginals, refit_levels)
        if not fixed:
            current = max(0.0, pseudo_likelihood_coupling(state, noise.n_labels))
        couplings.append(current)
        if fixed and not refit_noise:
            break
    if fixed:
        return noise, current
    return noise, float(np.mean(couplings[-4:]))


def _centre(y: NDArray[Any]) -> NDArray[Any]:
    rows, columns = (slice(max(0, (n - _SIDE) // 2), max(0, (n - _SIDE) // 2) + _SIDE) for n in y.shape)
    return np.ascontiguousarray(y[rows, columns])


def _neighbour_counts(x: NDArray[Any], n_labels: int) -> NDArray[np.uint8]:
    """Count, for each pixel, how many of its (at most four) neighbours have each label, uint8[pixels, labels]."""
    padded = np.full((x.shape[0] + 2, x.shape[1] + 2), -1, np.int32)
    padded[1:-1, 1:-1] = x
    sides = (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:])
    counts = [sum((side == k).astype(np.uint8) for side in sides) for k in range(n_labels)]
    return np.stack(counts, axis=-1).reshape(-1, n_labels)
