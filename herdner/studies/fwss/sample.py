"""Frank-Wolfe Stein sampling with its block and cached variants (FWSS18, Alg. 3 to 5, 7 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats
from herdner.base.checks import check_integer
from herdner.base.seeds import Seed
from herdner.studies.fwss.common import Adam, Optimiser, check_points
from herdner.studies.fwss.growing import (
    FwssOptions,
    ParticleAscent,
    ParticleRun,
    StepRuleName,
    add_particles,
    approximate_lmo,
    block_field,
)
from herdner.studies.fwss.kernels import KernelMean
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.targets import Target


def fwss(
    target: Target,
    n_particles: int,
    *,
    step: StepRuleName = "line-search",
    init: Literal["prior", "map"] | ArrayLike = "prior",
    n_steps: int = 50,
    optimiser: Optimiser = Adam(),  # noqa: B008 (frozen)
    bandwidth: float | Literal["median", "ksd"] = "median",
    kernel_mean: KernelMean | ArrayLike | Literal["stein"] | None = None,
    batch_size: int | None = None,
    at_once: int = 1,
    mode_steps: int = 2000,
    start: Points | None = None,
    seed: Seed = None,
) -> Points:
    """Sample by Frank-Wolfe Stein sampling: each new particle moves along a `SteinField`; earlier particles stay fixed.

    The new particle's own score has the weight 1 / (n + 1). With quadrature weights, the field still has equal weights:
    under quadrature weights, the field of the particles is almost 0 near them, and every new particle would move to a
    mode. The history holds one entry per particle: seconds, bandwidth, step, gap (the duality gap at the particle
    before it was added, NaN for equal weights), and jitter (added to the diagonal of the Gram matrix).

    Args:
        target: A `Target`, or a factor graph over `Reals`.
        n_particles: Number of particles, including those of ``start``.
        step: Step rule. "constant": equal weights. "line-search": eq. 10. "away" and "pairwise": line search that also
            removes weight from the worst particle, which may end without weight (Lacoste-Julien and Jaggi 2015).
            "fully-corrective": Bayesian quadrature weights (eq. 11).
        init: Initial positions. "prior": draws of the prior. "map": the first particle starts at the mode, later ones
            at a random particle, displaced by about h / 10. Points [M, d]: these in order, then draws of the prior.
        n_steps: L, number of moves of each particle.
        optimiser: Optimiser of the moves.
        bandwidth: h, or a rule, "median" or "ksd". A rule is applied whenever the number of particles has grown by a
            quarter (in the paper: for each particle).
        kernel_mean: mu_p for the weights: a kernel mean, samples [M, d], or "stein" to estimate it from
            the scores of the particles. The default is the target's own kernel mean if it has one, else "stein".
        batch_size: Number of data terms per gradient while a particle moves; None for all. The stored score always uses
            all data.
        at_once: B, number of new particles that move together. Each of them also moves along the field of the other new
            particles. The new particles are added one after another. 1 is the paper's algorithm, and ``n_particles`` is
            SVGD. Values in between give almost the same points with fewer and larger matrix products.
        mode_steps: Largest number of iterations of L-BFGS in the search for the mode, which uses all data.
        start: Result of an earlier run to continue.
        seed: Random seed or generator. A run that continues with the same generator equals an uninterrupted run.

    Returns:
        The particles with their weights.

    Raises:
        ValueError: An argument is out of range.
        DivergenceError: A coordinate of a particle is not finite.
    """
    plan = FwssOptions(
        step=step, init=init, n_steps=n_steps, optimiser=optimiser, bandwidth=bandwidth, kernel_mean=kernel_mean,
        batch_size=batch_size, at_once=at_once, mode_steps=mode_steps,
    )  # fmt: skip
    return add_particles(ParticleRun(target, plan, start, n_particles, seed), n_particles, approximate_lmo)


def block_fwss(
    target: Target,
    n_particles: int,
    *,
    blocks: int | Sequence[ArrayLike] = 2,
    workers: int = 1,
    moves_per_join: int = 10,
    start: Points | None = None,
    seed: Seed = None,
    **options: Any,
) -> Points:
    """Sample by PBC-FWSS: threads move blocks of a particle's variables in parallel (FWSS18, Algorithm 4).

    The result does not depend on the number of workers. With one block, this is `fwss`.

    Args:
        target: A `Target`, or a factor graph over `Reals`.
        n_particles: Number of particles, including those of ``start``.
        blocks: A number of blocks of neighbouring variables, or lists of variables that cover all variables once.
        workers: Number of threads.
        moves_per_join: Number of moves between two joins. A join copies the new values of all blocks into the particle.
            Between joins, each block moves with the old values of the other variables, in the kernel (App. F) and in
            the gradient, which is computed only for factors that contain variables of the block. The paper joins once,
            after all ``n_steps``. If blocks depend on each other, such as the layers of a network, each block then uses
            outdated values of the other blocks, and the particle ends where the density is low.
        start: Result of an earlier run to continue.
        seed: Random seed or generator.
        options: Options of `fwss`, without ``at_once``.

    Returns:
        The particles with their weights.

    Raises:
        ValueError: An argument is out of range.
        DivergenceError: A coordinate of a particle is not finite.
    """
    if "at_once" in options:
        raise ValueError("block_fwss does not support `at_once`, because it moves one particle at a time; use fwss")
    check_integer(moves_per_join, "moves_per_join")
    run = ParticleRun(target, FwssOptions(**options), start, n_particles, seed)
    parts = _partition(blocks, run.target.dim)
    with ThreadPoolExecutor(check_integer(workers, "workers")) as pool:

        def oracle(run: ParticleRun, x: Floats, seed: int) -> Floats:
            ascents = [ParticleAscent(run, seed, block) for block in parts]
            for done in range(0, run.plan.n_steps, moves_per_join):
                x = moved_together(x, ascents, min(moves_per_join, run.plan.n_steps - done))
            run.batches.n_gradients += sum(ascent.batches.n_gradients for ascent in ascents)
            return x

        def moved_together(x: Floats, ascents: list[ParticleAscent], n_steps: int) -> Floats:
            def move(block: NDArray[np.intp], ascent: ParticleAscent) -> Floats:
                return ascent.move(x, block_field(run, x, block), n_steps)

            moved = x.copy()
            for block, part in zip(parts, list(pool.map(move, parts, ascents)), strict=True):
                moved[:, block] = part
            return moved

        return add_particles(run, n_particles, oracle)


def cached_fwss(
    target: Target,
    n_particles: int,
    *,
    cache: Points | ArrayLike,
    start: Points | None = None,
    seed: Seed = None,
    **options: Any,
) -> Points:
    """Sample by Cache-FWSS, which starts each new particle at a cached point (FWSS18, Algorithms 7 and 8).

    This is the cached point where the Stein field is smallest. After this start, a few moves suffice (``n_steps`` is 10
    by default, as in the paper).

    Args:
        target: A `Target`, or a factor graph over `Reals`.
        n_particles: Number of particles, including those of ``start``.
        cache: float64[M, d], points of another sampler, such as `svgd`. Each point is used once; further particles
            start as ``init`` says.
        start: Result of an earlier run to continue.
        seed: Random seed or generator.
        options: Options of `fwss`.

    Returns:
        The particles with their weights.

    Raises:
        ValueError: An argument is out of range.
        DivergenceError: A coordinate of a particle is not finite.
    """
    options.setdefault("n_steps", 10)
    run = ParticleRun(target, FwssOptions(**options), start, n_particles, seed)
    candidates = check_points(cache, run.target, "cache")
    scores = run.batches.exact(candidates)

    def start_at(run: ParticleRun, n_new: int) -> Floats:
        nonlocal candidates, scores
        order = np.argsort(field_norms(run, candidates, scores), kind="stable")
        nearest, rest = np.sort(order[:n_new]), np.sort(order[n_new:])
        x, candidates, scores = candidates[nearest], candidates[rest], scores[rest]
        return np.concatenate([x, run.starting_points(n_new - len(x))]) if len(x) < n_new else x

    return add_particles(run, n_particles, approximate_lmo, start_at)


def field_norms(run: ParticleRun, x: Floats, scores: Floats) -> Floats:
    """Return, for each of M points, the squared norm of the direction in which a new particle at this point would move.

    Args:
        run: The run.
        x: float64[M, d].
        scores: float64[M, d].

    Returns:
        float64[M].
    """
    field, own = run.field(1), 1 / (run.n + 1)
    moves = own * scores if field is None else field(x) + own * scores
    return (moves * moves).sum(axis=1)


def _partition(blocks: int | Sequence[ArrayLike], dim: int) -> list[NDArray[np.intp]]:
    """Return the blocks as arrays of variables; raise `ValueError` unless every variable is in exactly one block."""
    if isinstance(blocks, int | np.integer):
        if not 1 <= check_integer(blocks, "blocks") <= dim:
            raise ValueError(f"`blocks` must be at most the number of variables, {dim}, got {blocks}")
        return np.array_split(np.arange(dim), blocks)
    parts = [np.asarray(block, np.intp).ravel() for block in blocks]
    together = np.sort(np.concatenate([np.empty(0, np.intp), *parts]))
    if not all(len(part) for part in parts) or not np.array_equal(together, np.arange(dim)):
        raise ValueError(
            f"`blocks` must contain each of the variables 0 to {dim - 1} once, and no block may be empty, got"
            f" {[part.tolist() for part in parts]!s:.80}"
        )
    return parts
