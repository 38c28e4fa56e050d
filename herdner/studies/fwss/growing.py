"""The loop of Frank-Wolfe Stein sampling: a particle is started, moved, weighted, and kept (FWSS18 Alg. 2, 3, 5)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats
from herdner.base.checks import check_integer
from herdner.base.seeds import Seed, generator
from herdner.studies.fwss.common import (
    Adam,
    Batches,
    Optimiser,
    check_finite,
    check_points,
    check_start,
    find_mode,
    resolve_bandwidth,
    resolve_kernel_mean,
    resume_points,
)
from herdner.studies.fwss.kernels import KernelMean, check_bandwidth, median_bandwidth, squared_distances
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.stein import SteinField, ksd_bandwidth
from herdner.studies.fwss.steps import StepResult, make_rule
from herdner.studies.fwss.targets import Target, as_target

StepRuleName = Literal["constant", "line-search", "away", "pairwise", "fully-corrective"]
_NOTED = ("seconds", "bandwidth", "step", "gap", "jitter")


@dataclass(frozen=True, slots=True, kw_only=True)
class FwssOptions:
    """The options of `herdner.studies.fwss.fwss`, which explains them."""

    step: StepRuleName = "line-search"
    init: Literal["prior", "map"] | ArrayLike = "prior"
    n_steps: int = 50
    optimiser: Optimiser = field(default_factory=Adam)
    bandwidth: float | Literal["median", "ksd"] = "median"
    kernel_mean: KernelMean | ArrayLike | Literal["stein"] | None = None
    batch_size: int | None = None
    at_once: int = 1
    mode_steps: int = 2000

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        check_integer(self.n_steps, "n_steps", 0)
        check_integer(self.at_once, "at_once")
        check_integer(self.mode_steps, "mode_steps")
        make_rule(self.step, None)
        check_bandwidth(self.bandwidth)
        if isinstance(self.init, str) and self.init not in ("prior", "map"):
            raise ValueError(f"init must be 'prior', 'map' or points [M, d], not {self.init!r}")


class ParticleRun:
    """Particles while they are made, in buffers that hold all that are wanted."""

    def __init__(self, target: Target, plan: FwssOptions, start: Points | None, n: int, seed: Seed) -> None:
        self.target, self.plan, self.rng = as_target(target), plan, generator(seed)
        self.density = self.target.density
        start = resume_points(start, self.target, check_integer(n, "n_particles"))
        self.mean = resolve_kernel_mean(plan.kernel_mean, self.target)
        self.rule = make_rule(plan.step, self.mean)
        self.starts = None if isinstance(plan.init, str) else check_points(plan.init, self.target, "init")
        self.batches = Batches(self.density, plan.batch_size, self.rng)
        self.batches.n_gradients = start.n_gradients
        self.n = len(start)
        self._x, self._scores = np.empty((n, self.target.dim)), np.empty((n, self.target.dim))
        self._x[: self.n], self._scores[: self.n] = start.x, start.scores
        self.weights = start.weights
        self.notes = {name: [*start.history.get(name, np.full(self.n, np.nan))] for name in _NOTED}
        fixed = None if isinstance(plan.bandwidth, str) else plan.bandwidth
        self.bandwidth = float(fixed or (self.notes["bandwidth"][-1] if self.n else 1.0))
        if not self.bandwidth > 0:  # points of another sampler
            self.bandwidth = resolve_bandwidth(plan.bandwidth, self.x, self.scores)
        if self.n:
            self.weights = self.rule.restart(self.x, self.scores, self.bandwidth, self.weights)
        self._began = time.perf_counter() - start.seconds

    @property
    def x(self) -> Floats:
        """[n, d]: the particles so far."""
        return self._x[: self.n]

    @property
    def scores(self) -> Floats:
        """[n, d]: the gradients of the log-density there, of all data; computed once for each particle."""
        return self._scores[: self.n]

    @property
    def seconds(self) -> float:
        """Wall time so far, that of the run it continues included."""
        return time.perf_counter() - self._began

    def pull(self, n_new: int) -> Floats:
        """[n]: the weights of the particles in the field that moves ``n_new`` more, which have the rest, 1 / n each."""
        equal = self.plan.step == "fully-corrective"
        weights = np.full(self.n, 1 / self.n) if equal else self.weights
        return weights * (self.n / (self.n + n_new))

    def field(self, n_new: int) -> SteinField | None:
        """What the particles move ``n_new`` more by; None where there are none."""
        return SteinField(self.x, self.pull(n_new), self.scores, self.bandwidth) if self.n else None

    def starting_points(self, n_new: int) -> Floats:
        """[n_new, d]: where the next particles begin."""
        return np.concatenate([self._starting_point(self.n + i) for i in range(n_new)])

    def _starting_point(self, number: int) -> Floats:
        if self.starts is not None and number < len(self.starts):
            return self.starts[number : number + 1]
        if self.n and isinstance(self.plan.init, str) and self.plan.init == "map":
            chosen = self.x[[self.rng.integers(self.n)]]
            return chosen + self.rng.normal(size=chosen.shape) * (self.bandwidth / (10 * np.sqrt(self.target.dim)))
        x = np.asarray(self.target.prior(self.rng, 1), float)
        if x.shape != (1, self.target.dim):
            raise ValueError(f"the prior must draw points of shape (1, {self.target.dim}), not {x.shape}")
        if not self.n:
            check_start(self.density, x)
        return x

    def mode(self) -> Floats:
        """[1, d]: the mode that is found from a draw of the prior."""
        return find_mode(self.target, self._starting_point(0), self.batches, self.plan.mode_steps)

    def refresh_bandwidth(self, x: Floats) -> None:
        """Applies the rule to the particles and the next one's start, when they have grown by a quarter."""
        n, rule = self.n, self.plan.bandwidth
        if not isinstance(rule, str) or not n or not (n < 4 or _quarters(n) > _quarters(n - 1)):
            return
        if rule == "ksd" and n > 1:
            self.bandwidth = ksd_bandwidth(self.x, self.scores)
        else:
            self.bandwidth = median_bandwidth(np.concatenate([self.x, x]))  # KSD needs points with scores
        self.weights = self.rule.restart(self.x, self.scores, self.bandwidth, self.weights)

    def keep(self, x: Floats) -> None:
        """Adds particles [B, d] and gives all their weights."""
        scores = self.batches.exact(x)
        check_finite(np.hstack([x, scores]), "fwss", self.plan.n_steps, self.n)
        n, n_new = self.n, len(x)
        self._x[n : n + n_new], self._scores[n : n + n_new] = x, scores
        self.n += n_new
        if n:
            taken = self.rule.add(self.x, self.scores, self.bandwidth, n_new)
        else:
            equal = np.full(n_new, 1 / n_new)
            weights = self.rule.restart(self.x, self.scores, self.bandwidth, equal)
            taken = StepResult(weights, 1 / np.arange(1.0, n_new + 1), np.full(n_new, np.nan))
        self.weights = taken.weights
        for i in range(n_new):
            noted = (self.seconds, self.bandwidth, taken.steps[i], taken.gaps[i], self.rule.jitter)
            for name, value in zip(_NOTED, noted, strict=True):
                self.notes[name].append(value)

    def points(self) -> Points:
        """What has been made."""
        notes = {name: np.array(values) for name, values in self.notes.items()}
        x, scores = self.x.copy(), self.scores.copy()
        return Points(x, self.weights.copy(), scores, notes, self.batches.n_gradients, self.seconds)


Oracle = Callable[[ParticleRun, Floats, int], Floats]


def add_particles(
    run: ParticleRun, n: int, oracle: Oracle, start_at: Callable[[ParticleRun, int], Floats] | None = None
) -> Points:
    """Adds particles until there are ``n``; ``oracle`` moves them, with a seed of its own for its mini-batches."""
    if not run.n and start_at is None and isinstance(run.plan.init, str) and run.plan.init == "map":
        run.keep(run.mode())
    while run.n < n:
        n_new = min(run.plan.at_once, n - run.n)
        x = run.starting_points(n_new) if start_at is None else start_at(run, n_new)
        run.refresh_bandwidth(x)
        run.keep(oracle(run, x, int(run.rng.integers(1 << 63))))
    return run.points()


def approximate_lmo(run: ParticleRun, x: Floats, seed: int) -> Floats:
    """[B, d]: the particles moved along the field of all (Alg. 2)."""
    return moved_along(run, x, run.field(len(x)), seed)


def moved_along(run: ParticleRun, x: Floats, field: Callable[[Floats], Floats] | None, seed: int) -> Floats:
    """[B, d]: the particles moved along a field, and their own scores."""
    ascent = Ascent(run, seed)
    moved = ascent.go(x, field, run.plan.n_steps)
    run.batches.n_gradients += ascent.batches.n_gradients
    return moved


class Ascent:
    """Moves of new particles, or of one ``block`` of their variables: the optimiser and the mini-batches of a run."""

    def __init__(self, run: ParticleRun, seed: int, block: NDArray[np.intp] | None = None) -> None:
        self._run, self.block, self._done = run, block, 0
        self.batches = run.batches.with_rng(np.random.default_rng(seed))
        self._move = run.plan.optimiser.begin(run.plan.n_steps)

    def go(self, x: Floats, field: Callable[[Floats], Floats] | None, n_steps: int) -> Floats:
        """The variables of the block (by default all) of x [B, d] after so many more moves.

        The moving particles have the weight 1 / (n + B) each; one alone is moved by its own score only.
        """
        run, n_new, block = self._run, len(x), self.block
        own = np.full(n_new, 1 / (run.n + n_new))
        x = x.copy()
        at = slice(None) if block is None else block
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for _ in range(n_steps):
                scores, part = self.batches.grad(x, block), x[:, at]
                direction = own[0] * scores if n_new == 1 else SteinField(part, own, scores, run.bandwidth)(part)
                if field is not None:
                    direction += field(part)
                part = part + self._move(direction)
                check_finite(part, "fwss", self._done, run.n)
                x[:, at] = part
                self._done += 1
        return x[:, at]


def block_field(run: ParticleRun, x: Floats, block: NDArray[np.intp]) -> SteinField | None:
    """The field of these variables, the kernel's factor of the others fixed as it is at x [1, d] (FWSS18 eq. 28)."""
    if not run.n:
        return None
    others = np.setdiff1d(np.arange(run.target.dim), block)
    distances = squared_distances(x[:, others], run.x[:, others])[0] if len(others) else np.zeros(run.n)
    weights = run.pull(1) * np.exp(-0.5 * distances / run.bandwidth**2)
    return SteinField(run.x[:, block], weights, run.scores[:, block], run.bandwidth)


def _quarters(n: int) -> int:
    """How often 1 has grown by a quarter on the way to n."""
    return int(np.log(n) / np.log(1.25) + 1e-9)
