"""Learning of tied tables: the tables of links, optionally together with the transition table."""

# Matplotlib annotates only some arguments of its methods with types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from herdner.base.arrays import Floats, Int32s
from herdner.base.seeds import Seed, generator
from herdner.crf.model import SkipChainModel
from herdner.crf.objectives import OBJECTIVES, Examples, LossGradient, Objective
from herdner.crf.parameters import Parameters
from herdner.inference import Backend
from herdner.inference.plots import axes
from herdner.inference.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COUNTS = Record(best=False, marginals=False, table_counts=True)

ScoreFunction = Callable[[SkipChainModel], float]
"""Function that returns the score of a model on development data, such as F1; larger is better."""


def _blocked_gibbs() -> Backend:
    from herdner.inference.backends.blocked_gibbs import BlockedGibbs

    return BlockedGibbs(n_sweeps=4)


@dataclass(frozen=True)
class MCMCLikelihood:
    """Maximum-likelihood objective with expected counts estimated by Gibbs sampling (Geyer 1991; DoGS17, Sec. 5.3).

    The learned tables are averages over the second half of the iterations.

    Attributes:
        backend: Backend that can record ``table_counts``. The sampler starts at the gold tags in the first iteration,
            and at its last states in the next ones (persistent chains, Younes 1989; Tieleman 2008).
        step_size: Step size of Adam (Kingma and Ba 2015); it decreases with 1/sqrt of the iteration.

    Raises:
        ValueError: The backend cannot record ``table_counts``.
    """

    backend: Backend = field(default_factory=_blocked_gibbs)
    step_size: float = 0.1

    def __post_init__(self) -> None:
        """Raise `ValueError` if the backend cannot record expected counts."""
        if "table_counts" not in self.backend.capabilities.record:
            raise ValueError(
                f"`backend` must record expected counts, got {self.backend}; use for example Gibbs or BlockedGibbs"
            )


@dataclass(frozen=True)
class Learner:
    """Settings for learning the link tables, and optionally the transition table, of a skip-chain model.

    Attributes:
        objective: "pseudo-likelihood" (blocks are sentences), "token-pseudo-likelihood", "piecewise"
            (`herdner.crf.objectives`), or an `MCMCLikelihood`.
        l2: Weight of the squared distance from the mean of the prior: 0 for tables of links, the chain's own weights
            for the transition table.
        joint: Learn the transition table together with the tables of links.
        max_iterations: Maximum number of iterations, of L-BFGS or of sampling.
        patience: Number of iterations without a better development score after which learning stops.

    Raises:
        ValueError: An attribute is out of range.
    """

    objective: str | MCMCLikelihood = "pseudo-likelihood"
    l2: float = 2.0
    joint: bool = False
    max_iterations: int = 60
    patience: int = 15

    def __post_init__(self) -> None:
        """Raise `ValueError` if a setting is out of range or unknown."""
        if isinstance(self.objective, str) and self.objective not in OBJECTIVES:
            names = ", ".join(OBJECTIVES)
            raise ValueError(f"`objective` must be one of {names}, or an MCMCLikelihood, got {self.objective!r}")
        if not self.l2 >= 0:
            raise ValueError(f"`l2` must be at least 0, got {self.l2}")
        for name in ("max_iterations", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)}")


DEFAULT_LEARNER = Learner()


@dataclass(frozen=True, slots=True)
class LearningStep:
    """Training objective, and score on development data, after one iteration of table learning.

    Attributes:
        iteration: Index of the iteration; 0 is the starting point.
        value: Objective per token, in nats; NaN where the objective is not evaluated.
        score: Score on development data; None without development data.
    """

    iteration: int
    value: float
    score: float | None = None


@dataclass(frozen=True)
class LearningCurve:
    """Training objective, and score on development data, after each iteration of table learning.

    Attributes:
        steps: All iterations.
        best_iteration: Index of the iteration whose tables were returned.
    """

    steps: tuple[LearningStep, ...]
    best_iteration: int

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the training objective and the development score of each iteration (needs the extra ``evaluate``).

        Args:
            ax: Axes to draw on; None creates new axes.

        Returns:
            The axes of the objective.
        """
        ax = axes(ax)
        iterations = [step.iteration for step in self.steps]
        ax.plot(iterations, [step.value for step in self.steps], color="tab:blue")
        ax.set_xlabel("iteration")
        ax.set_ylabel("objective per token", color="tab:blue")
        if any(step.score is not None for step in self.steps):
            scores = ax.twinx()
            scores.plot(iterations, [np.nan if s.score is None else s.score for s in self.steps], color="tab:orange")
            scores.set_ylabel("development F1", color="tab:orange")
        ax.axvline(self.best_iteration, color="grey", linestyle=":", linewidth=1)
        return ax


@dataclass
class _BestModel:
    """Record of all iterations of learning, and the best model so far.

    The best model is the model with the best score, or the last model if there are no scores.
    """

    patience: int
    n_tokens: int
    score: ScoreFunction | None
    progress: Callable[[LearningStep], None] | None
    model: SkipChainModel
    steps: list[LearningStep] = field(default_factory=list[LearningStep])
    iteration: int = 0

    def update(self, value: float, model: SkipChainModel) -> bool:
        """Record an iteration and its ``model``; return True after ``patience`` iterations without a better score."""
        score = None if self.score is None else self.score(model)
        step = LearningStep(len(self.steps), value / max(self.n_tokens, 1), score)
        self.steps.append(step)
        if self.progress is not None:
            self.progress(step)
        if len(self.steps) == 1 or score is None or score > (self.steps[self.iteration].score or 0.0):
            self.model, self.iteration = model, step.iteration
        return step.iteration - self.iteration >= self.patience


def learn_tables(
    model: SkipChainModel,
    examples: Examples,
    learner: Learner = DEFAULT_LEARNER,
    *,
    score: ScoreFunction | None = None,
    seed: Seed = 0,
    progress: Callable[[LearningStep], None] | None = None,
    adapted: bool = False,
) -> tuple[SkipChainModel, LearningCurve]:
    """Learn the link tables of a skip-chain model, and also the transition table if ``learner.joint``.

    Args:
        model: Model at whose tables learning starts.
        examples: Documents with gold tags.
        learner: Settings of learning.
        score: Function that scores the model of each iteration on development data. The model with the best score is
            returned. Without this function, the model of the last iteration is returned.
        seed: Seed of the sampler of `MCMCLikelihood`.
        progress: Function called after each iteration.
        adapted: Centre the prior on the tables of ``model`` (Chelba and Acero 2004).

    Returns:
        The model with learned tables, and the learning curve.

    Raises:
        ValueError: The transition table has the entry -inf for two adjacent gold tags.
    """
    best = _BestModel(learner.patience, len(examples.unary), score, progress, model)
    parameters = Parameters(model, learner.joint, adapted)
    if isinstance(learner.objective, MCMCLikelihood):
        _ascend(parameters, examples, learner, generator(seed), best)
    else:
        _descend(parameters, examples, learner, OBJECTIVES[learner.objective], best)
    return best.model, LearningCurve(tuple(best.steps), best.iteration)


def _descend(
    parameters: Parameters, examples: Examples, learner: Learner, objective: Objective, best: _BestModel
) -> None:
    """Minimise the penalised objective by L-BFGS."""
    from herdner.crf.lbfgs import minimise

    def loss(vector: Floats) -> tuple[float, Floats]:
        return parameters.loss(vector, objective, examples, learner.l2)

    first, _ = loss(parameters.start)
    if not np.isfinite(first):
        raise ValueError(
            "two adjacent gold tags have the entry -inf in the transition table; give gold tags that are well formed"
            " in the tag scheme"
        )
    if not best.update(first, parameters.to_model(parameters.start)):
        minimise(
            loss, parameters.start, maxiter=learner.max_iterations,
            on_iteration=lambda vector, value: best.update(value, parameters.to_model(vector)),
        )  # fmt: skip


def _ascend(
    parameters: Parameters, examples: Examples, learner: Learner, rng: np.random.Generator, best: _BestModel
) -> None:
    """Maximise the likelihood by Adam with sampled gradients, and average the last half of the parameter vectors."""
    likelihood = learner.objective
    assert isinstance(likelihood, MCMCLikelihood)
    backend, start = likelihood.backend, examples.states
    vector, mean = parameters.start, parameters.start
    first, second = np.zeros_like(vector), np.zeros_like(vector)
    for iteration in range(learner.max_iterations):
        sampled, start = _sample_gradient(parameters.to_model(vector), examples, backend, rng, start)
        gradient = parameters.vector(sampled.transition, sampled.tables)
        gradient += 2 * learner.l2 * (vector - parameters.origin)
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        size = likelihood.step_size / np.sqrt(iteration + 1)
        corrected = first / (1 - 0.9 ** (iteration + 1)), second / (1 - 0.99 ** (iteration + 1))
        vector = vector - size * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
        n_averaged = iteration + 1 - learner.max_iterations // 2
        mean = vector if n_averaged <= 1 else mean + (vector - mean) / n_averaged
        if best.update(np.nan, parameters.to_model(mean)):
            return


def _sample_gradient(
    model: SkipChainModel, examples: Examples, backend: Backend, rng: np.random.Generator, start: Int32s
) -> tuple[LossGradient, Int32s]:
    """Return a sampled gradient of the loss (expected minus observed tag counts), and the sampler's last state."""
    without_borders = model.without_borders()  # the examples' log-potentials include the borders
    graph = without_borders.unroll(examples.unary, examples.sentence_offsets, examples.links)
    result = backend.infer(graph, rng, start=start, record=_COUNTS)
    assert result.table_counts is not None
    y, pairs = examples.states, examples.states[examples.neighbours]
    transition = result.table_counts[1][0].copy()
    np.subtract.at(transition, tuple(pairs.T), 1)
    tables: list[Floats] = []
    for k, (each, ends) in enumerate(zip(model.link_tables, examples.links, strict=True)):
        table = result.table_counts[4 + k][0].copy() if len(result.table_counts) > 4 else np.zeros_like(each.table)
        np.subtract.at(table, tuple(y[ends].T), 1)
        tables.append(table)
    return LossGradient(np.nan, transition, tuple(tables)), result.state
