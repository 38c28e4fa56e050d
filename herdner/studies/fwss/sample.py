"""Frank-Wolfe Stein sampling and its block and cached variants (FWSS18 Alg. 3 to 5, 7 and 8)."""

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
    Ascent,
    FwssOptions,
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
    """Frank-Wolfe Stein sampling: each new particle is moved along `SteinField`, the others stay where they are.

    The particle's own score takes part with weight 1 / (n + 1). With quadrature weights it is moved by the field of
    equal weights: where the weights are good, the field of particles so weighted is almost 0 wherever there are any,
    and each new one would go to a mode. history: seconds, bandwidth, step, gap (the duality gap at the particle before
    it was added; NaN with equal weights) and jitter (added to the diagonal of the Gram matrix), for each particle.

    Args:
        target: A `Target`, or a factor graph over `Reals`.
        n_particles: In all, those of ``start`` included.
        step: The step rule: "constant", equal weights; "line-search" (eq. 10); "away" and "pairwise", line search that
            also takes weight off the worst particle, so that some may end with none (Lacoste-Julien and Jaggi 2015);
            "fully-corrective", Bayesian quadrature weights (eq. 11).
        init: Where each particle starts: a draw of the prior; "map": the first at the mode, the others at a particle
            moved by about h / 10; points [M, d]: these first, then draws of the prior.
        n_steps: L, moves of each particle.
        bandwidth: h; a rule is applied anew whenever the particles have grown by a quarter (the paper: for each).
        kernel_mean: What line search and correction know of mu_p: a kernel mean, samples [M, d], or "stein": estimated
            from the scores of the particles. By default the target's own, where it is known, otherwise "stein".
        batch_size: Observations in each gradient while a particle moves; the score it keeps is of all data.
        at_once: B: so many new particles are moved together, each along the field of the others too; they are added one
            after the other. 1 is the paper's algorithm, ``n_particles`` is SVGD; between them, fewer and larger matrix
            products for almost the same points.
        mode_steps: Iterations of L-BFGS, with all data, that look for the mode.
        start: Particles to go on from, as a run returned them.
        seed: Or a generator; a run continued with the same generator is the run that was not interrupted.

    Raises:
        ValueError: Arguments do not fit.
        Diverged: Numbers leave the finite ones.
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
    """PBC-FWSS (Alg. 4): the blocks of a particle's variables are moved apart, in ``workers`` threads, and joined.

    The number of workers changes nothing in the result. All ``options`` are those of `fwss`, but ``at_once``; with one
    block this is `fwss`.

    Args:
        blocks: A number of blocks of neighbouring variables, or lists of variables that together are all of them.
        moves_per_join: Moves between two joinings. While a block moves, the other variables stay where they were in the
            kernel (App. F) and in the gradient, of which only the factors that touch the block are computed. The paper
            joins once, after all ``n_steps``: where blocks depend on each other, as the layers of a network do, each
            then answers to others that have moved on, and the particle ends far from the density.
    """
    if "at_once" in options:
        raise ValueError("block_fwss moves one particle at a time; at_once is an option of fwss")
    check_integer(moves_per_join, "moves_per_join")
    run = ParticleRun(target, FwssOptions(**options), start, n_particles, seed)
    parts = _partition(blocks, run.target.dim)
    with ThreadPoolExecutor(check_integer(workers, "workers")) as pool:

        def oracle(run: ParticleRun, x: Floats, seed: int) -> Floats:
            ascents = [Ascent(run, seed, block) for block in parts]
            for done in range(0, run.plan.n_steps, moves_per_join):
                x = joined(x, ascents, min(moves_per_join, run.plan.n_steps - done))
            run.batches.n_gradients += sum(ascent.batches.n_gradients for ascent in ascents)
            return x

        def joined(x: Floats, ascents: list[Ascent], n_steps: int) -> Floats:
            def go(block: NDArray[np.intp], ascent: Ascent) -> Floats:
                return ascent.go(x, block_field(run, x, block), n_steps)

            moved = x.copy()
            for block, part in zip(parts, list(pool.map(go, parts, ascents)), strict=True):
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
    """Cache-FWSS (Alg. 7 and 8): each particle starts at the point of ``cache`` where the field is smallest.

    A few ``n_steps`` (10 in the paper) are enough from there. All ``options`` are those of `fwss`.

    Args:
        cache: [M, d], points of another sampler, such as `svgd`; each is used once, and then ``init`` applies.
    """
    options.setdefault("n_steps", 10)
    run = ParticleRun(target, FwssOptions(**options), start, n_particles, seed)
    left = check_points(cache, run.target, "cache")
    scores = run.batches.exact(left)

    def start_at(run: ParticleRun, n_new: int) -> Floats:
        nonlocal left, scores
        order = np.argsort(field_norms(run, left, scores), kind="stable")
        taken, rest = np.sort(order[:n_new]), np.sort(order[n_new:])
        x, left, scores = left[taken], left[rest], scores[rest]
        return np.concatenate([x, run.starting_points(n_new - len(x))]) if len(x) < n_new else x

    return add_particles(run, n_particles, approximate_lmo, start_at)


def field_norms(run: ParticleRun, x: Floats, scores: Floats) -> Floats:
    """[M]: squared lengths of what a particle would first be moved along at points [M, d] with scores [M, d]."""
    field, own = run.field(1), 1 / (run.n + 1)
    moves = own * scores if field is None else field(x) + own * scores
    return (moves * moves).sum(axis=1)


def _partition(blocks: int | Sequence[ArrayLike], dim: int) -> list[NDArray[np.intp]]:
    """Lists of variables that together are all, each once; ValueError otherwise."""
    if isinstance(blocks, int | np.integer):
        if not 1 <= check_integer(blocks, "blocks") <= dim:
            raise ValueError(f"blocks must be at most the number of variables, {dim}, not {blocks}")
        return np.array_split(np.arange(dim), blocks)
    parts = [np.asarray(block, np.intp).ravel() for block in blocks]
    together = np.sort(np.concatenate([np.empty(0, np.intp), *parts]))
    if not all(len(part) for part in parts) or not np.array_equal(together, np.arange(dim)):
        raise ValueError(f"blocks must name each of the variables 0 to {dim - 1} once, and none may be empty")
    return parts
