"""Markov chain samplers for comparison and reference samples: SGLD (Welling and Teh 2011) and HMC (Neal 2011)."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.base.checks import check_integer
from herdner.base.seeds import Seed, generator
from herdner.graph import DensityGraph
from herdner.studies.fwss.common import GradientBatches, check_finite, first_points, resume_points
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.targets import Target, as_target

_WANTED, _SHRINK, _DELAY, _FORGET = 0.8, 0.05, 10.0, 0.75  # dual averaging as in Hoffman and Gelman 2014


def sgld(
    target: Target,
    n_samples: int,
    *,
    step_size: float = 1e-3,
    decay: float = 0.0,
    burn_in: int = 0,
    thin: int = 1,
    n_chains: int = 1,
    init: Literal["prior"] | ArrayLike = "prior",
    batch_size: int | None = None,
    start: Points | None = None,
    seed: Seed = None,
) -> Points:
    """Sample from a target by stochastic gradient Langevin dynamics (SGLD).

    A step is x += e_t / 2 grad + N(0, e_t) with e_t = step_size (1 + t)^-decay. In the result, samples of the chains
    alternate. The history holds step_size and t.

    Args:
        target: A `Target`, or a factor graph over `Reals`.
        n_samples: Number of samples, including those of ``start``.
        step_size: Step size at t = 0.
        decay: Exponent of the decreasing step size.
        burn_in: Number of steps of each chain before its first sample.
        thin: Number of steps of each chain per sample.
        n_chains: Number of chains.
        init: Initial points, float64[n_chains, d], or "prior" for draws of the prior.
        batch_size: Number of data terms per gradient; None for all.
        start: Result of an earlier run; its chains and its t are continued.
        seed: Random seed or generator.

    Returns:
        The samples, with equal weights.

    Raises:
        ValueError: An argument is out of range.
        DivergenceError: A coordinate of a chain is not finite.
    """
    target, rng = as_target(target), generator(seed)
    n, chains = check_integer(n_samples, "n_samples"), check_integer(n_chains, "n_chains")
    every = check_integer(thin, "thin")
    if not (0 < step_size < np.inf and 0 <= decay < np.inf):
        raise ValueError(f"`step_size` must be above 0, and `decay` must be at least 0, got {step_size} and {decay}")
    previous, x = _begin(target, start, n, chains, init, rng)
    batches, samples = GradientBatches(target.density, batch_size, rng), [previous.x]
    t = int(previous.history.get("t", [0])[-1])
    first = 0 if len(previous) else check_integer(burn_in, "burn_in", 0)
    n_steps = first + every * -(-(n - len(previous)) // chains)
    began = time.perf_counter()
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(n_steps):
            size = step_size * (1 + t) ** -decay
            x = x + size / 2 * batches.grad(x) + np.sqrt(size) * rng.normal(size=x.shape)
            t += 1
            check_finite(x, "sgld", step)
            if step >= first and (step - first) % every == every - 1:
                samples.append(x)
    samples = np.concatenate(samples)[:n]
    history = {"step_size": np.array([step_size]), "t": np.array([t])}
    seconds = previous.seconds + time.perf_counter() - began
    return Points(samples, np.full(n, 1 / n), None, history, previous.n_gradients + batches.n_gradients, seconds)


def hmc(
    target: Target,
    n_samples: int,
    *,
    n_leapfrog: int = 20,
    step_size: float | None = None,
    n_warmup: int = 500,
    thin: int = 1,
    n_chains: int = 4,
    init: Literal["prior"] | ArrayLike = "prior",
    start: Points | None = None,
    seed: Seed = None,
) -> Points:
    """Sample from a target by Hamiltonian Monte Carlo (HMC).

    During the warm-up, dual averaging adapts the step size to an acceptance rate of 0.8, unless the step size is given.
    After the first half of the warm-up, the scale of each variable is set to its standard deviation in the later states
    of that half. In the result, samples of the chains alternate. The history holds step_size, scale [d], and the
    acceptance of each chain after the warm-up.

    Args:
        target: A `Target`, or a factor graph over `Reals`.
        n_samples: Number of samples, including those of ``start``.
        n_leapfrog: Mean number of leapfrog steps; the number varies between trajectories by up to a fifth.
        step_size: A fixed step size, or None to adapt it.
        n_warmup: Number of iterations of the warm-up.
        thin: Number of iterations of each chain per sample.
        n_chains: Number of chains.
        init: Initial points, float64[n_chains, d], or "prior" for draws of the prior.
        start: Result of an earlier run; its chains are continued without a warm-up.
        seed: Random seed or generator.

    Returns:
        The samples, with equal weights.

    Raises:
        ValueError: An argument is out of range.
    """
    target, rng = as_target(target), generator(seed)
    n, chains = check_integer(n_samples, "n_samples"), check_integer(n_chains, "n_chains")
    every = check_integer(thin, "thin")
    check_integer(n_leapfrog, "n_leapfrog")
    if step_size is not None and not (np.isfinite(step_size) and step_size > 0):
        raise ValueError(f"`step_size` must be above 0, got {step_size}")
    previous, x = _begin(target, start, n, chains, init, rng)
    began = time.perf_counter()
    dynamics = _Dynamics(target.density, x, n_leapfrog, rng)
    if len(previous) and "step_size" in previous.history:
        dynamics.size, dynamics.scale = float(previous.history["step_size"][0]), previous.history["scale"]
    else:
        dynamics.warm_up(check_integer(n_warmup, "n_warmup", 0), step_size)
    samples, accepted = [previous.x], np.zeros(chains)
    n_iterations = every * -(-(n - len(previous)) // chains)
    for iteration in range(n_iterations):
        accepted += dynamics.step()
        if iteration % every == every - 1:
            samples.append(dynamics.x)
    samples = np.concatenate(samples)[:n]
    history = {"step_size": np.array([dynamics.size]), "scale": dynamics.scale}
    history["acceptance"] = accepted / max(1, n_iterations)
    seconds = previous.seconds + time.perf_counter() - began
    return Points(samples, np.full(n, 1 / n), None, history, previous.n_gradients + dynamics.n_gradients, seconds)


class _Dynamics:
    """State of parallel HMC chains: positions [chains, variables], step size, and one scale per variable."""

    def __init__(self, density: DensityGraph, x: Floats, n_leapfrog: int, rng: np.random.Generator) -> None:
        self._density, self._n_leapfrog, self._rng = density, n_leapfrog, rng
        self.x, self.size, self.scale, self.n_gradients = x, 0.1, np.ones(x.shape[1]), 0
        self._values, self._slopes = density.log_density(x), self._grad(x)

    def step(self) -> Floats:
        """Run one trajectory of each chain, and accept or reject its end point; return the acceptance probabilities."""
        momentum = self._rng.normal(size=self.x.shape)
        n = max(1, round(self._n_leapfrog * self._rng.uniform(0.8, 1.2)))
        x, slopes, p, size = self.x, self._slopes, momentum, self.size * self.scale
        with np.errstate(all="ignore"):
            for _ in range(n):
                p = p + size / 2 * slopes
                x = x + size * p
                slopes = self._grad(x)
                p = p + size / 2 * slopes
            finite = np.isfinite(x).all(axis=1) & np.isfinite(slopes).all(axis=1)
            values = np.full(len(x), -np.inf)
            values[finite] = self._density.log_density(x[finite])
            gain = values - self._values + ((momentum**2).sum(axis=1) - (p**2).sum(axis=1)) / 2
            chance = np.where(finite & ~np.isnan(gain), np.exp(np.minimum(gain, 0)), 0.0)
        accepted = self._rng.uniform(size=len(x)) < chance
        self.x = np.where(accepted[:, None], x, self.x)
        self._values = np.where(accepted, values, self._values)
        self._slopes = np.where(accepted[:, None], slopes, self._slopes)
        return chance

    def warm_up(self, n: int, step_size: float | None) -> None:
        """Run n warm-up steps that adapt the step size and the scale of each variable.

        In the first half, all variables have scale 1. Then their scales are estimated, and the step size is adapted
        again.
        """
        if step_size is not None:
            self.size = step_size
        seen: list[Floats] = []
        for half in (n // 2, n - n // 2):
            middle, mean, smoothed = np.log(10 * self.size), 0.0, np.log(self.size)
            for t in range(1, half + 1):
                chance = float(self.step().mean())
                seen.append(self.x)
                if step_size is None:
                    mean += (_WANTED - chance - mean) / (t + _DELAY)
                    log_size = middle - np.sqrt(t) / _SHRINK * mean
                    smoothed += t**-_FORGET * (log_size - smoothed)
                    self.size = float(np.exp(np.clip(log_size, -30, 10)))
            if half and step_size is None:
                self.size = float(np.exp(np.clip(smoothed, -30, 10)))
            if half and half == n // 2 and len(seen) == half:
                spread = np.concatenate(seen[half // 2 :]).std(axis=0)
                scale = np.where(spread > 0, spread, 1.0)
                factor = float(np.exp(np.log(scale).mean()))
                if step_size is None:
                    self.size /= factor
                self.scale = scale if step_size is None else scale / factor

    def _grad(self, x: Floats) -> Floats:
        self.n_gradients += len(x)
        return self._density.grad(x)


def _begin(
    target: Target, start: Points | None, n_samples: int, n: int, init: ArrayLike, rng: np.random.Generator
) -> tuple[Points, Floats]:
    """Return the samples of the earlier run ``start``, and the initial states of n chains, float64[n, d]."""
    previous = resume_points(start, target, n_samples, "n_samples")
    if len(previous):
        if len(previous) < n:
            raise ValueError(f"`start` must have at least {n} samples, one per chain, got {len(previous)}")
        # Samples of the chains alternate, so the chain of a sample is the sample's index modulo n.
        last = np.arange(len(previous) - n, len(previous))
        return previous, previous.x[last[np.argsort(last % n)]]
    if not isinstance(init, str) and np.shape(init)[:1] != (n,):
        raise ValueError(f"`init` must have {n} points, one per chain, got shape {np.shape(init)}")
    return previous, first_points(init, target, n, rng)
