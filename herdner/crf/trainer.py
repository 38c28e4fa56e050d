"""Training of the weights of a linear chain by maximum likelihood. Features are 64-bit keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdner.base.arrays import Floats
from herdner.crf.chain_data import ChainData
from herdner.crf.lbfgs import FLAT, MEMORY, minimise, minimise_l1
from herdner.crf.likelihood import Borders, ChainLikelihood

TrainingProgress = Callable[[int, dict[str, Any]], None]
"""Function called after each iteration with its index, which starts at 1, and a dictionary of values such as "loss"."""

# Constants of `_scales`, selected with bench_trainer.py. With exponent 0, training needs more iterations.
_FREQUENCY_POWER, _FREQUENCY_SHARE = 0.2, 0.1


@dataclass(frozen=True)
class StoppingRule:
    """Rule that stops training at a maximum number of iterations, a small decrease of the loss, or a small gradient.

    Attributes:
        max_iterations: Maximum number of iterations.
        min_decrease: Training ends when ``period`` iterations have lowered the loss by less than this share.
        period: Number of iterations over which the decrease is measured.
        min_gradient: Training ends when the norm of the gradient is below this number times the norm of the weights, or
            below the number itself if the norm of the weights is below 1. Not used with L1 regularisation.
    """

    max_iterations: int = 80
    min_decrease: float = 5e-3
    period: int = 5
    min_gradient: float = 0.0

    def is_met(self, losses: list[float], gradient_norm: float, weights_norm: float) -> bool:
        """Return True if training stops: the loss decreased too little, or the gradient is small.

        Args:
            losses: Losses of all iterations so far.
            gradient_norm: Euclidean norm of the gradient; infinity disables the test of the gradient.
            weights_norm: Euclidean norm of the weights.
        """
        if gradient_norm < self.min_gradient * max(weights_norm, 1.0):
            return True
        recent = losses[-self.period - 1 :]
        return len(recent) > self.period and recent[0] - recent[-1] < self.min_decrease * abs(recent[-1])


class TrainingInterrupted(KeyboardInterrupt):
    """Error: Ctrl-C stopped training. ``vector`` contains the weights of the last complete iteration.

    Attributes:
        vector: float64[d], weights of the last complete iteration.
    """

    def __init__(self, vector: Floats) -> None:
        """Store ``vector``, the weights of the last complete iteration.

        Args:
            vector: float64[d], weights of the last complete iteration.
        """
        self.vector = vector
        super().__init__("training was interrupted; the weights of the last complete iteration are kept")


def train_chain(
    data: ChainData,
    *,
    c1: float = 0.0,
    c2: float | Floats = 0.3,
    stopping_rule: StoppingRule | None = None,
    start: Floats | None = None,
    origin: Floats | None = None,
    document_weights: Floats | None = None,
    borders: Borders | None = None,
    n_threads: int | None = None,
    progress: TrainingProgress | None = None,
) -> Floats:
    """Train a linear chain: minimise the penalised loss of `ChainLikelihood` and return the weights.

    The search is L-BFGS, or OWL-QN (Andrew and Gao 2007) with L1 regularisation. It works on rescaled weights: each
    weight is divided by a scale that is about the frequency of its feature to the power of -1/5. Rescaling saves
    iterations and does not change the optimum.

    Args:
        data: Features and allowed tags of the documents.
        c1: Weight of the L1 norm.
        c2: Weight of the squared L2 norm, a number or float64[d].
        stopping_rule: Rule that ends the search; None is `StoppingRule()`.
        start: float64[d], weights at which the search starts; None is ``origin``, or 0.
        origin: float64[d], mean of the prior; None is 0.
        document_weights: float64[D], weight of each document in the likelihood; None is 1.
        borders: Log-potentials of tag sequences that the scheme forbids; None forbids nothing.
        n_threads: Number of threads; None is one for each processor.
        progress: Function called after each iteration.

    Returns:
        float64[d] with d = ``data.n_features`` + number of transitions.

    Raises:
        ImpossibleTags: Forbidden transitions rule out every tag sequence that the annotation of a sentence allows.
        TrainingInterrupted: Ctrl-C was pressed.
    """
    likelihood = ChainLikelihood(
        data, c2, origin=origin, document_weights=document_weights, borders=borders, n_threads=n_threads
    )
    search = _Search(
        likelihood, likelihood.origin if start is None else start, c1, stopping_rule or StoppingRule(), progress
    )
    try:
        search.run()
    except KeyboardInterrupt:
        raise TrainingInterrupted(search.weights) from None
    return search.weights


class _Search:
    """Search for the weights with the smallest loss. It stores the weights of the last complete iteration.

    Args:
        likelihood: Penalised loss.
        start: float64[d], weights at which the search starts.
        c1: Weight of the L1 norm.
        rule: Rule that ends the search.
        progress: Function called after each iteration, or None.
    """

    def __init__(
        self, likelihood: ChainLikelihood, start: Floats, c1: float, rule: StoppingRule,
        progress: TrainingProgress | None,
    ) -> None:  # fmt: skip
        self.likelihood, self.weights, self.c1, self.rule, self.progress = likelihood, start, c1, rule, progress
        self.scales = _scales(likelihood.data, likelihood.penalty)
        self.losses: list[float] = []
        self.gradient_norm, self.weights_norm = np.inf, 0.0
        self.evaluated = start, start  # last point and its weights

    def run(self) -> None:
        """Minimise the loss until the stopping rule is met."""
        begin, n = self.weights / self.scales, self.rule.max_iterations
        if self.c1:
            minimise_l1(self._loss, begin, self.c1 * self.scales, on_iteration=self._on_iteration, max_iterations=n,
                        n_threads=self.likelihood.n_threads)  # fmt: skip
        else:
            minimise(self._loss, begin, on_iteration=self._on_iteration, maxiter=n, maxcor=MEMORY, ftol=0.0, gtol=FLAT,
                     maxfun=10**9)  # fmt: skip

    def _loss(self, scaled: Floats) -> tuple[float, Floats]:
        vector = scaled * self.scales
        self.evaluated = scaled, vector
        value, gradient = self.likelihood(vector)
        if not self.c1:
            self.gradient_norm, self.weights_norm = float(np.linalg.norm(gradient)), float(np.linalg.norm(vector))
        gradient *= self.scales
        return value, gradient

    def _on_iteration(self, point: Floats, value: float) -> bool:
        evaluated, vector = self.evaluated
        self.weights = vector if evaluated is point else point * self.scales
        self.losses.append(value)
        if self.progress is not None:
            self.progress(len(self.losses), {"loss": value, "weights": self.weights})
        return self.rule.is_met(self.losses, self.gradient_norm, self.weights_norm)


def _scales(data: ChainData, penalty: Floats) -> Floats:
    """Return a scale for each weight, float64[d]. L-BFGS converges faster on weights divided by these scales.

    The scales approximate the curvature of the loss.
    """
    columns, _ = data.entries
    pairs = np.ones(int(data.transitions.sum()))
    sizes, counts = np.append(data.sizes[columns], pairs), np.append(data.occurrences[columns], data.n_tokens * pairs)
    return np.sqrt(sizes) * (_FREQUENCY_SHARE * sizes * counts + 2 * penalty * sizes + 1e-3) ** -_FREQUENCY_POWER
