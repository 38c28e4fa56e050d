"""Markov field aspect models: image segmentation with object recognition (DoGS17, Sec. 5.5; Verbeek & Triggs 2007).

An image is a grid of patches. Each patch shows a word of one or more vocabularies (texture, colour, position). Labels
of objects are drawn from the image's own mixture theta, and words from the distributions beta of their label:
probabilistic latent semantic analysis (PLSA; Hofmann 2001). A Potts field over the patches favours equal neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.seeds import Seed
from herdner.graph import FactorGraph, potts

_LEAST = 1e-12  # probability of a word that a label was never seen with


@dataclass(frozen=True, slots=True, eq=False)
class Aspects:
    """Probabilistic latent semantic analysis (PLSA) model of images.

    Attributes:
        beta: For each vocabulary, the distribution of words of each label, float64[K, W].
        log_likelihood: Log-likelihood after each iteration of EM, float64[iterations].
    """

    beta: tuple[NDArray[np.float64], ...]
    log_likelihood: NDArray[np.float64]

    def log_emissions(self, words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the log-probability of the words int[P, M] of each patch under each label, float64[P, K]."""
        return sum(np.log(table[:, words[:, m]]).T for m, table in enumerate(self.beta))  # type: ignore[return-value]

    def mixture(self, words: NDArray[np.int64], n_iterations: int = 50) -> NDArray[np.float64]:
        """Return the label mixture theta, float64[K], of an image with unknown labels, by EM with fixed ``beta``."""
        log_p = self.log_emissions(words)
        likelihood = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        theta = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
        for _ in range(n_iterations):
            joint = likelihood * theta
            theta = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        return theta


def fit_aspects(
    images: Sequence[NDArray[np.int64]],
    labels: NDArray[np.bool_],
    n_words: Sequence[int],
    seed: Seed = None,
    *,
    n_iterations: int = 60,
    smoothing: float = 0.1,
) -> Aspects:
    """Fit PLSA by EM to images, given only the set of labels of each image (Verbeek & Triggs 2007, Sec. 3).

    ``images`` contains, for each image, the words int[P, M] of its patches in M vocabularies of ``n_words`` words.
    ``labels``, bool[N, K], marks the labels in each image, at least one. ``smoothing`` is added to all counts of words.
    """
    words, owner = np.concatenate(images), np.repeat(np.arange(len(images)), [len(image) for image in images])
    # The images in which labels occur distinguish them; a little noise separates labels that always occur together.
    noise = np.random.default_rng(seed).uniform(0.9, 1.1, (len(owner), labels.shape[1]))
    responsibility = labels[owner] * noise
    responsibility /= responsibility.sum(axis=1, keepdims=True)
    path = []
    for _ in range(n_iterations):
        aspects = Aspects(_word_tables(words, responsibility, n_words, smoothing), np.array(path))
        theta = np.zeros(labels.shape)
        np.add.at(theta, owner, responsibility)
        theta /= theta.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            log_joint = aspects.log_emissions(words) + np.log(theta)[owner]
        top = log_joint.max(axis=1, keepdims=True)
        responsibility = np.exp(log_joint - top)
        total = responsibility.sum(axis=1, keepdims=True)
        path.append(float((top + np.log(total)).sum()))
        responsibility /= total
    return Aspects(_word_tables(words, responsibility, n_words, smoothing), np.array(path))


def aspect_field(
    aspects: Aspects, words: NDArray[np.int64], shape: tuple[int, int], theta: NDArray[np.float64], sigma: float
) -> FactorGraph:
    """Return the Markov random field over the labels of a grid of patches (DoGS17, eq. 4).

    Two equal neighbours add ``sigma`` to the log-potential. A patch with label a adds log theta_a and the
    log-probabilities of its words under a. ``theta`` [K] is the label mixture of the image.
    """
    unary = aspects.log_emissions(words) + np.log(np.maximum(theta, _LEAST))
    return potts(sigma, (unary - unary.max(axis=1, keepdims=True)).reshape(*shape, -1))


def patch_centres(
    height: int, width: int, size: int = 20, step: int = 10
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pixel rows and columns of the centres of patches of ``size`` pixels, one for every ``step`` pixels."""
    return np.arange(size // 2, height - size // 2 + 1, step), np.arange(size // 2, width - size // 2 + 1, step)


def pixel_labels(
    labels: ArrayLike, rows: NDArray[np.int64], columns: NDArray[np.int64], height: int, width: int
) -> NDArray[np.int32]:
    """Return the label of each pixel, [height, width]: that of the patch with the nearest centre."""
    near_row = np.abs(np.arange(height)[:, None] - rows).argmin(axis=1)
    near_column = np.abs(np.arange(width)[:, None] - columns).argmin(axis=1)
    return np.asarray(labels, np.int32).reshape(len(rows), len(columns))[np.ix_(near_row, near_column)]


def hamming_error(found: ArrayLike, truth: ArrayLike) -> float:
    """Return the share of wrong labels among the labelled pixels, whose true label is not -1."""
    given, true = np.asarray(found), np.asarray(truth)
    return float((given != true)[true != -1].mean())


def _word_tables(
    words: NDArray[np.int64], responsibility: NDArray[np.float64], n_words: Sequence[int], smoothing: float
) -> tuple[NDArray[np.float64], ...]:
    tables = []
    for m, n in enumerate(n_words):
        counts = np.stack([np.bincount(words[:, m], column, n) for column in responsibility.T]) + max(smoothing, _LEAST)
        tables.append(counts / counts.sum(axis=1, keepdims=True))
    return tuple(tables)
