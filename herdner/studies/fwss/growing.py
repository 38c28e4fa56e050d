"""The loop of Frank-Wolfe Stein sampling, which starts, moves, stores and weights particles (FWSS18, Alg. 2, 3, 5)."""

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
    GradientBatches,
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
_HISTORY = ("seconds", "bandwidth", "step", "gap", "jitter")


@dataclass(frozen=True, slots=True, kw_only=True)
class FwssOptions:
    """Options of the sampler `herdner.studies.fwss.fwss`, described in the documentation of that function.

    Attributes:
        step: See `fwss`.
        init: See `fwss`.
        n_steps: See `fwss`.
        optimiser: See `fwss`.
        bandwidth: See `fwss`.
        kernel_mean: See `fwss`.
        batch_size: See `fwss`.
        at_once: See `fwss`.
        mode_steps: See `fwss`.
    """

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
        """Check that the options of the sampler are in range."""
        check_integer(self.n_steps, "n_steps", 0)
        check_integer(self.at_once, "at_once")
        check_integer(self.mode_steps, "mode_steps")
        make_rule(self.step, None)
        check_bandwidth(self.bandwidth)
        if isinstance(self.init, str) and self.init not in ("prior", "map"):
            raise ValueError(f"`init` must be 'prior', 'map' or an array of points [M, d], got {self.init!r}")


class ParticleRun:
    """Particles of one run, in arrays with room for the final number of particles."""

    def __init__(self, target: Target, plan: FwssOptions, start: Points | None, n: int, seed: Seed) -> None:
        """Set up a run of the sampler with room for ``n`` particles.

        If ``start`` is given, the run continues with the particles of that earlier run.

        Args:
            target: The target.
            plan: The options.
            start: Result of an earlier run to continue.
            n: Number of particles at the end.
            seed: Random seed or generator.

        Raises:
            ValueError: An argument does not fit.
        """
        self.target, self.plan, self.rng = as_target(target), plan, generator(seed)
        self.density = self.target.density
        start = resume_points(start, self.target, check_integer(n, "n_particles"))
        self.mean = resolve_kernel_mean(plan.kernel_mean, self.target)
        self.rule = make_rule(plan.step, self.mean)
        self.starts = None if isinstance(plan.init, str) else check_points(plan.init, self.target, "init")
        self.batches = GradientBatches(self.density, plan.batch_size, self.rng)
        self.batches.n_gradients = start.n_gradients
        self.n = len(start)
        self._x, self._scores = np.empty((n, self.target.dim)), np.empty((n, self.target.dim))
        self._x[: self.n], self._scores[: self.n] = start.x, start.scores
        self.weights = start.weights
        self.history = {name: [*start.history.get(name, np.full(self.n, np.nan))] for name in _HISTORY}
        fixed = None if isinstance(plan.bandwidth, str) else plan.bandwidth
        self.bandwidth = float(fixed or (self.history["bandwidth"][-1] if self.n else 1.0))
        if not self.bandwidth > 0:  # the points come from another sampler
            self.bandwidth = resolve_bandwidth(plan.bandwidth, self.x, self.scores)
        if self.n:
            self.weights = self.rule.restart(self.x, self.scores, self.bandwidth, self.weights)
        self._began = time.perf_counter() - start.seconds

    @property
    def x(self) -> Floats:
        """The particles of the run, float64[n, d]."""
        return self._x[: self.n]

    @property
    def scores(self) -> Floats:
        """Gradients of the log-density at the particles, float64[n, d], computed from all data."""
        return self._scores[: self.n]

    @property
    def seconds(self) -> float:
        """Wall time of the run in seconds, including an earlier run that this run continues."""
        return time.perf_counter() - self._began

    def pull(self, n_new: int) -> Floats:
        """Return the weights of the existing particles in the Stein field that acts on new particles.

        Args:
            n_new: Number of new particles, which have the weight 1 / (n + n_new) each.

        Returns:
            float64[n].
        """
        equal = self.plan.step == "fully-corrective"
        weights = np.full(self.n, 1 / self.n) if equal else self.weights
        return weights * (self.n / (self.n + n_new))

    def field(self, n_new: int) -> SteinField | None:
        """Return the Stein field that acts on new particles, or None if no particles exist yet.

        Args:
            n_new: Number of new particles.
        """
        return SteinField(self.x, self.pull(n_new), self.scores, self.bandwidth) if self.n else None

    def starting_points(self, n_new: int) -> Floats:
        """Choose the initial positions of ``n_new`` new particles.

        Args:
            n_new: Number of new particles.

        Returns:
            float64[n_new, d].
        """
        return np.concatenate([self._starting_point(self.n + i) for i in range(n_new)])

    def _starting_point(self, number: int) -> Floats:
        if self.starts is not None and number < len(self.starts):
            return self.starts[number : number + 1]
        if self.n and isinstance(self.plan.init, str) and self.plan.init == "map":
            particle = self.x[[self.rng.integers(self.n)]]
            return particle + self.rng.normal(size=particle.shape) * (self.bandwidth / (10 * np.sqrt(self.target.dim)))
        x = np.asarray(self.target.prior(self.rng, 1), float)
        if x.shape != (1, self.target.dim):
            raise ValueError(f"the prior must draw points of shape (1, {self.target.dim}), got {x.shape}")
        if not self.n:
            check_start(self.density, x)
        return x

    def mode(self) -> Floats:
        """Search for a mode of the density by L-BFGS, started at a draw from the prior; return it as float64[1, d]."""
        return find_mode(self.target, self._starting_point(0), self.batches, self.plan.mode_steps)

    def refresh_bandwidth(self, x: Floats) -> None:
        """Recompute the bandwidth if the number of particles has grown by a quarter since the last computation.

        Args:
            x: The initial positions of new particles, float64[B, d], which the rule "median" includes.
        """
        n, rule = self.n, self.plan.bandwidth
        if not isinstance(rule, str) or not n or not (n < 4 or _growth_steps(n) > _growth_steps(n - 1)):
            return
        if rule == "ksd" and n > 1:
            self.bandwidth = ksd_bandwidth(self.x, self.scores)
        else:
            self.bandwidth = median_bandwidth(np.concatenate([self.x, x]))  # new points have no scores, which KSD needs
        self.weights = self.rule.restart(self.x, self.scores, self.bandwidth, self.weights)

    def keep(self, x: Floats) -> None:
        """Add new particles at the points ``x`` to the run, and update the weights of all particles.

        Args:
            x: float64[B, d].
        """
        scores = self.batches.exact(x)
        check_finite(np.hstack([x, scores]), "fwss", self.plan.n_steps, self.n)
        n, n_new = self.n, len(x)
        self._x[n : n + n_new], self._scores[n : n + n_new] = x, scores
        self.n += n_new
        if n:
            result = self.rule.add(self.x, self.scores, self.bandwidth, n_new)
        else:
            equal = np.full(n_new, 1 / n_new)
            weights = self.rule.restart(self.x, self.scores, self.bandwidth, equal)
            result = StepResult(weights, 1 / np.arange(1.0, n_new + 1), np.full(n_new, np.nan))
        self.weights = result.weights
        for i in range(n_new):
            values = (self.seconds, self.bandwidth, result.steps[i], result.gaps[i], self.rule.jitter)
            for name, value in zip(_HISTORY, values, strict=True):
                self.history[name].append(value)

    def points(self) -> Points:
        """Return the particles of the run, with their weights, scores, and history."""
        history = {name: np.array(values) for name, values in self.history.items()}
        x, scores = self.x.copy(), self.scores.copy()
        return Points(x, self.weights.copy(), scores, history, self.batches.n_gradients, self.seconds)


Oracle = Callable[[ParticleRun, Floats, int], Floats]


def add_particles(
    run: ParticleRun, n: int, oracle: Oracle, start_at: Callable[[ParticleRun, int], Floats] | None = None
) -> Points:
    """Add particles to a run until it has ``n`` particles, and return all particles.

    Args:
        run: The run.
        n: Number of particles at the end.
        oracle: Function (run, initial positions, seed of mini-batches) that moves the particles.
        start_at: Function (run, number of new particles) that returns initial positions; by default
            `ParticleRun.starting_points`.
    """
    if not run.n and start_at is None and isinstance(run.plan.init, str) and run.plan.init == "map":
        run.keep(run.mode())
    while run.n < n:
        n_new = min(run.plan.at_once, n - run.n)
        x = run.starting_points(n_new) if start_at is None else start_at(run, n_new)
        run.refresh_bandwidth(x)
        run.keep(oracle(run, x, int(run.rng.integers(1 << 63))))
    return run.points()


def approximate_lmo(run: ParticleRun, x: Floats, seed: int) -> Floats:
    """Move points along the Stein field of the existing particles; return the new positions (FWSS18, Algorithm 2).

    Args:
        run: The run.
        x: Initial positions, float64[B, d].
        seed: Seed of the mini-batches.

    Returns:
        float64[B, d].
    """
    return move_along_field(run, x, run.field(len(x)), seed)


def move_along_field(run: ParticleRun, x: Floats, field: Callable[[Floats], Floats] | None, seed: int) -> Floats:
    """Move new points along the sum of ``field`` and the Stein field of the new points; return the new positions.

    Args:
        run: The run.
        x: Initial positions, float64[B, d].
        field: Stein field of the existing particles, or None.
        seed: Seed of the mini-batches.

    Returns:
        float64[B, d].
    """
    ascent = ParticleAscent(run, seed)
    moved = ascent.move(x, field, run.plan.n_steps)
    run.batches.n_gradients += ascent.batches.n_gradients
    return moved


class ParticleAscent:
    """Optimiser for the positions of new particles, in all variables or in one block of variables."""

    def __init__(self, run: ParticleRun, seed: int, block: NDArray[np.intp] | None = None) -> None:
        """Set up the optimiser for the new particles of a run.

        Args:
            run: The run.
            seed: Seed of the mini-batches.
            block: The variables to move; None for all.
        """
        self._run, self.block, self._done = run, block, 0
        self.batches = run.batches.with_rng(np.random.default_rng(seed))
        self._displacement = run.plan.optimiser.begin(run.plan.n_steps)

    def move(self, x: Floats, field: Callable[[Floats], Floats] | None, n_steps: int) -> Floats:
        """Move new particles ``n_steps`` times along a Stein field; return only the coordinates that were moved.

        Only the variables of ``block`` move, or all variables if ``block`` is None.

        Each of the B moving particles has the weight 1 / (n + B). A single particle (B = 1) is moved by its own score
        and ``field``.

        Args:
            x: float64[B, d].
            field: Stein field of the existing particles, or None.
            n_steps: Number of moves.

        Returns:
            float64[B, d], or float64[B, b] for a block of b variables.
        """
        run, n_new, block = self._run, len(x), self.block
        own = np.full(n_new, 1 / (run.n + n_new))
        x = x.copy()
        at = slice(None) if block is None else block
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for _ in range(n_steps):
                scores, part = self.batches.grad(x, block), x[:, at]
                check_finite(scores, "fwss", self._done, run.n)
                direction = own[0] * scores if n_new == 1 else SteinField(part, own, scores, run.bandwidth)(part)
                if field is not None:
                    direction += field(part)
                part = part + self._displacement(direction)
                check_finite(part, "fwss", self._done, run.n)
                x[:, at] = part
                self._done += 1
        return x[:, at]


def block_field(run: ParticleRun, x: Floats, block: NDArray[np.intp]) -> SteinField | None:
    """Return the Stein field for one block of variables, given fixed values of the other variables (FWSS18, eq. 28).

    Args:
        run: The run.
        x: The particle, float64[1, d].
        block: The variables of the block.
    """
    if not run.n:
        return None
    others = np.setdiff1d(np.arange(run.target.dim), block)
    distances = squared_distances(x[:, others], run.x[:, others])[0] if len(others) else np.zeros(run.n)
    weights = run.pull(1) * np.exp(-0.5 * distances / run.bandwidth**2)
    return SteinField(run.x[:, block], weights, run.scores[:, block], run.bandwidth)


def _growth_steps(n: int) -> int:
    """Return the largest integer k with 1.25^k <= ``n``, which rises when ``n`` has grown by about a quarter."""
    return int(np.log(n) / np.log(1.25) + 1e-9)
