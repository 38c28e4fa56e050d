"""Learning of tied tables: those of links alone, or the transition table with them."""

# Matplotlib declares the arguments of its methods in part only.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from herdner.base.seeds import Seed, generator
from herdner.crf.model import Links, SkipChainModel
from herdner.crf.objectives import OBJECTIVES, Examples, Objective, Slope, scaled_links
from herdner.crf.parameters import Parameters
from herdner.inference import Backend
from herdner.inference.plots import axes
from herdner.inference.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COUNTS = Record(best=False, marginals=False, table_counts=True)

Score = Callable[[SkipChainModel], float]
"""The F1, or whatever is to be large, of a CRF on development data."""


def _blocked_gibbs() -> Backend:
    from herdner.inference.backends.blocked_gibbs import BlockedGibbs

    return BlockedGibbs(n_sweeps=4)


@dataclass(frozen=True)
class MCMCLikelihood:
    """Maximum likelihood; the expected counts come from samples (Geyer 1991; DoGS17 Sec. 5.3).

    The learned tables are averages over the second half of the iterations. Scales stay what they are: their derivatives
    need counts of single links.

    Attributes:
        backend: Any that can record ``table_counts``, asked for those alone; each iteration goes on from the states of
            the last one, the first from the right tags (persistent chains, Younes 1989; Tieleman 2008).
        step_size: Of Adam (Kingma and Ba 2015), falling as 1/sqrt of the iteration.
    """

    backend: Backend = field(default_factory=_blocked_gibbs)
    step_size: float = 0.1

    def __post_init__(self) -> None:
        if "table_counts" not in self.backend.capabilities.record:
            raise ValueError(f"{self.backend} gives no expected counts; use one such as Gibbs or BlockedGibbs")


@dataclass(frozen=True)
class Learner:
    """How tied tables are learned.

    Attributes:
        objective: "pseudo-likelihood" (blocks are sentences), "token-pseudo-likelihood", "piecewise"
            (`herdner.crf.objectives`), or `MCMCLikelihood`.
        l2: Weight of the squared distance from where the learning began, 0 for tables of links and the chain's own
            weights for the transition table.
        joint: Learn the transition table too.
        max_iterations: Of L-BFGS, or of the samples.
        patience: With development data, stop after so many iterations without a better score.
    """

    objective: str | MCMCLikelihood = "pseudo-likelihood"
    l2: float = 2.0
    joint: bool = False
    max_iterations: int = 60
    patience: int = 15

    def __post_init__(self) -> None:
        if isinstance(self.objective, str) and self.objective not in OBJECTIVES:
            known = ", ".join(OBJECTIVES)
            raise ValueError(f"objective must be one of {known}, or a MCMCLikelihood, not {self.objective!r}")
        if not self.l2 >= 0 or self.max_iterations < 1 or self.patience < 1:
            raise ValueError("l2 must be at least 0, max_iterations and patience at least 1")


@dataclass(frozen=True, slots=True)
class Step:
    """One iteration: ``value``, what is made small, per token (nan where not known), and the development score."""

    iteration: int
    value: float
    score: float | None = None


@dataclass(frozen=True)
class LearningCurve:
    """The iterations of a run, and the ``chosen`` one."""

    steps: tuple[Step, ...]
    chosen: int

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws value and score against the iteration (extra ``evaluate``); returns the axes of the value."""
        ax = axes(ax)
        numbers = [step.iteration for step in self.steps]
        ax.plot(numbers, [step.value for step in self.steps], color="tab:blue")
        ax.set_xlabel("iteration")
        ax.set_ylabel("objective per token", color="tab:blue")
        if any(step.score is not None for step in self.steps):
            scores = ax.twinx()
            scores.plot(numbers, [np.nan if s.score is None else s.score for s in self.steps], color="tab:orange")
            scores.set_ylabel("development F1", color="tab:orange")
        ax.axvline(self.chosen, color="grey", linestyle=":", linewidth=1)
        return ax


class _Enough(Exception):
    """No better score for as long as patience lasts."""


@dataclass
class _Watch:
    """Scores each iteration, keeps the best CRF and stops when patience ends. Without a score the last one is kept."""

    learner: Learner
    n_tokens: int
    score: Score | None
    progress: Callable[[Step], None] | None
    steps: list[Step] = field(default_factory=list[Step])
    best: SkipChainModel | None = None
    chosen: int = 0

    def take(self, value: float, crf: SkipChainModel) -> None:
        score = None if self.score is None else self.score(crf)
        step = Step(len(self.steps), value / max(self.n_tokens, 1), score)
        self.steps.append(step)
        if self.progress is not None:
            self.progress(step)
        if self.best is None or score is None or score > (self.steps[self.chosen].score or 0.0):
            self.best, self.chosen = crf, step.iteration
        if step.iteration - self.chosen >= self.learner.patience:
            raise _Enough


def learn(
    crf: SkipChainModel,
    examples: Examples,
    learner: Learner | None = None,
    *,
    score: Score | None = None,
    seed: Seed = 0,
    progress: Callable[[Step], None] | None = None,
    adapted: bool = False,
) -> tuple[SkipChainModel, LearningCurve]:
    """The CRF with learned tables, and how it went. ``crf`` is where the learning begins, and with ``adapted`` also
    where the prior has its mean (Chelba and Acero 2004).

    ``score`` is asked after each iteration; the CRF of the best score is returned, without it the last one. ``seed``
    matters to `MCMCLikelihood` only.

    Raises:
        ValueError: Right tags are forbidden, or a backend gives no counts.
    """
    learner = learner or Learner()
    watch = _Watch(learner, len(examples.unary), score, progress)
    parameters = Parameters(crf, learner.joint, adapted=adapted)
    try:
        if isinstance(learner.objective, MCMCLikelihood):
            _ascend(parameters, examples, learner, learner.objective, generator(seed), watch)
        else:
            _minimise(parameters, examples, learner, OBJECTIVES[learner.objective], watch)
    except _Enough:
        pass
    assert watch.best is not None
    return watch.best, LearningCurve(tuple(watch.steps), watch.chosen)


def _minimise(
    parameters: Parameters, examples: Examples, learner: Learner, objective: Objective, watch: _Watch
) -> None:
    """L-BFGS (Liu and Nocedal 1989, by SciPy) on the objective and the L2 norm."""
    from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    seen: dict[bytes, float] = {}

    def value_and_slope(vector: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        total, slope = parameters.loss(vector, objective, examples, learner.l2)
        seen[vector.tobytes()] = total
        return total, slope

    first, _ = value_and_slope(parameters.start)
    if not np.isfinite(first):
        raise ValueError("the right tags are forbidden by the transition table: they do not fit the tag scheme")
    watch.take(first, parameters.crf_of(parameters.start))

    def after(vector: NDArray[np.float64]) -> None:
        value = seen.get(vector.tobytes(), np.nan)
        seen.clear()
        watch.take(value, parameters.crf_of(vector))

    minimize(
        value_and_slope, parameters.start, jac=True, method="L-BFGS-B", callback=after,
        options={"maxiter": learner.max_iterations},
    )  # fmt: skip


def _ascend(
    parameters: Parameters,
    examples: Examples,
    learner: Learner,
    likelihood: MCMCLikelihood,
    rng: np.random.Generator,
    watch: _Watch,
) -> None:
    """Adam on observed less expected counts; what is handed to the watch are averages from the second half on."""
    backend, start = likelihood.backend, examples.states
    vector, mean = parameters.start, parameters.start
    first, second = np.zeros_like(vector), np.zeros_like(vector)
    for iteration in range(learner.max_iterations):
        slope, start = _sampled_slope(parameters.crf_of(vector), examples, backend, rng, start)
        change = parameters.vector(*slope[1:]) + 2 * learner.l2 * (vector - parameters.origin)
        first, second = 0.9 * first + 0.1 * change, 0.99 * second + 0.01 * change**2
        size = likelihood.step_size / np.sqrt(iteration + 1)
        corrected = first / (1 - 0.9 ** (iteration + 1)), second / (1 - 0.99 ** (iteration + 1))
        vector = vector - size * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
        n_averaged = iteration + 1 - learner.max_iterations // 2
        mean = vector if n_averaged <= 1 else mean + (vector - mean) / n_averaged
        watch.take(np.nan, parameters.crf_of(mean))


def _sampled_slope(
    crf: SkipChainModel, examples: Examples, backend: Backend, rng: np.random.Generator, start: NDArray[np.int32]
) -> tuple[Slope, NDArray[np.int32]]:
    """Expected less observed counts, and the state that the sampler ended in."""
    linked = scaled_links(crf, examples)
    nothing = np.zeros(len(crf.transition))
    plain = replace(crf, start=nothing, end=nothing)  # the borders are in the unaries
    links = [Links(each.ends, each.scale[:, 0]) for each in linked]
    graph = plain.unroll(examples.unary, examples.sentence_offsets, links)
    result = backend.infer(graph, rng, start=start, record=_COUNTS)
    assert result.table_counts is not None
    y, left_right = examples.states, examples.states[examples.neighbours]
    transition = result.table_counts[1][0].copy()
    np.subtract.at(transition, tuple(left_right.T), 1)
    tables: list[NDArray[np.float64]] = []
    for at, each in enumerate(linked):
        table = result.table_counts[4 + at][0].copy() if len(result.table_counts) > 4 else np.zeros_like(each.table)
        np.subtract.at(table, tuple(y[each.ends].T), each.scale[:, 0])
        tables.append(table)
    return Slope(np.nan, transition, tuple(tables), tuple(np.zeros(4) for _ in linked)), result.state
