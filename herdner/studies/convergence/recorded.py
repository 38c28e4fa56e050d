"""Counts of visited states from recorded samples, for variables with any number of states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import gibbs as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.seeds import Seed, generator
from herdner.graph.tables import TableGraph
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs.sharing import Sharing
from herdner.inference.record import Record
from herdner.studies.convergence.exact import Focus, by_other_states, conditional, full_conditional, joint_distribution

_EVERY = Record(best=False, marginals=False, every=1)
_BLOCK = 1024  # random numbers per call of `loops.uniform_block`
_ROUNDED = 2.0**-33  # half of 2^-32, the unit of herded probabilities; keeps multiples of 1 / B from being rounded down
_MAX_RECORDED = 2**27  # largest number of recorded values, half a gigabyte


def count_recorded(
    compiled: TableGraph, plan: Gibbs, ends: Sequence[int], focus: Focus, seed: Seed, start: ArrayLike | None
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Run a sampler that records every joint state, and count the visits of each joint state.

    Args:
        compiled: The graph.
        plan: The sampler; its sweeps update all variables and end with the variable of ``focus``.
        ends: Increasing numbers of sweeps after which to count.
        focus: The variable X and its weights.
        seed: As in `Gibbs.infer`.
        start: As in `Gibbs.infer`.

    Returns:
        ``visits`` uint64[N, L, Z, K] and ``returns`` uint64[K, Z] of `VisitCounts`.

    Raises:
        ValueError: The run has too many states to record.
    """
    n_values = ends[-1] * len(compiled.sizes)
    if n_values > _MAX_RECORDED:
        raise ValueError(
            f"the states of all variables after all sweeps are {n_values} values, but only {_MAX_RECORDED} can be"
            " recorded; use fewer sweeps"
        )
    rng = generator(seed)
    stream = int(deepcopy(rng).integers(0, 2**64, (plan.n_chains, 4), dtype=np.uint64)[0, 0])
    samples = replace(plan, record=_EVERY).infer(compiled, rng, start=start).samples
    assert samples is not None
    x, z = samples[0, :, focus.variable].astype(np.int64), _state_indices(samples[0], compiled.sizes, focus.variable)
    drawn = np.zeros(len(z), np.int64)
    if len(focus.keys) > 1:  # the last update of each sweep drew its weight at random
        drawn = _layer(_uniforms(stream, len(compiled.sizes), len(z)), focus.chances[:, z])
    shape = focus.target.shape
    visits = np.zeros((len(ends), len(focus.keys), *shape), np.uint64)
    for at, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        np.add.at(visits[at], (drawn[begin:end], z[begin:end], x[begin:end]), np.uint64(1))
    y = focus.keys[drawn, z]
    by_weight = np.argsort(y, kind="stable")
    again = np.flatnonzero(y[by_weight][1:] == y[by_weight][:-1])
    returns = np.zeros(shape[::-1], np.uint64)
    np.add.at(returns, (x[by_weight[again]], z[by_weight[again + 1]]), np.uint64(1))
    return visits.cumsum(axis=0, dtype=np.uint64), returns


def focus_of_recorded(compiled: TableGraph, plan: Gibbs, sharing: Sharing, variable: int) -> Focus:
    """Compute the joint distribution and a variable's herding weights, for graphs with non-binary variables.

    Args:
        compiled: The graph.
        plan: The sampler, for its dummy edges.
        sharing: Weight sharing.
        variable: X.

    Returns:
        The joint distribution, and the index of the herding weight of each joint state.
    """
    joint = joint_distribution(compiled)
    if sharing.kind == "random-bins":
        return _focus_of_random_bins(joint, variable, sharing.n_bins)
    others = [j for j in range(joint.ndim) if j != variable]
    sizes = [joint.shape[j] for j in others]
    z = np.indices(sizes).reshape(len(others), math.prod(sizes))  # one empty state if there are no other variables
    if sharing.kind == "complete":
        keys = np.arange(z.shape[1], dtype=np.int64)
    elif sharing.kind == "bins":
        p = by_other_states(full_conditional(joint, variable), variable)
        p = p[:, 1:] if p.shape[1] == 2 else p  # the bin of a binary variable is that of state 1
        keys = _row_indices(np.maximum(np.rint(p * 2.0**32).astype(np.int64) * sharing.n_bins - 1, 0) >> 32)
    else:
        near = set(compiled.graph.blanket(variable).tolist())
        if sharing.kind == "blanket" and plan.dummy_edges is not None:
            edges = np.asarray(plan.dummy_edges).reshape(-1, 2)
            near |= set(edges[(edges == variable).any(axis=1)].ravel().tolist())
        seen = z[[at for at, j in enumerate(others) if j in near]].T
        if sharing.kind == "neighbour-sum":
            seen = np.stack([(seen == k).sum(axis=1) for k in range(max(joint.shape))], axis=1)
        keys = _row_indices(seen)
    return Focus.of(joint, variable, keys, sharing)


def _focus_of_random_bins(joint: Floats, variable: int, n_bins: int) -> Focus:
    """Compute the joint distribution and the herding weights of a variable under random-bin sharing.

    Probabilities are rounded by systematic sampling with one uniform number u.

    The rounded counts change where u passes 1 minus the fraction of a cumulative probability. Therefore each z has at
    most K weights, in the order of u.
    """
    target = by_other_states(joint, variable)
    p = conditional(target)
    sums = p.cumsum(axis=1)[:, :-1] * n_bins  # without the last state, whose sum is always n_bins
    whole_part = np.floor(sums + _ROUNDED)
    thresholds = np.sort(np.clip(1 - (sums - whole_part), 0, 1), axis=1)  # [Z, K - 1]
    borders = np.hstack([np.zeros((len(p), 1)), thresholds, np.ones((len(p), 1))])
    middles = (borders[:, 1:] + borders[:, :-1]) / 2  # [Z, K]
    multiples_before = np.floor(sums[:, None] + _ROUNDED + middles[..., None])  # [Z, L, K - 1]
    ends = np.full((*middles.shape, 1), float(n_bins))
    multiples = np.diff(np.concatenate([0 * ends, multiples_before, ends], axis=2), axis=2)  # [Z, L, K]
    aims, keys = np.unique(multiples.reshape(-1, p.shape[1]), axis=0, return_inverse=True)
    sizes = tuple(size for j, size in enumerate(joint.shape) if j != variable)
    chances = np.ascontiguousarray(np.diff(borders, axis=1).T)
    return Focus(variable, target, keys.reshape(middles.shape).T.astype(np.int64), chances, aims / n_bins, sizes)


def _uniforms(stream: int, n_steps: int, n_sweeps: int) -> Floats:
    """Return the random number in [0, 1) that the engine uses in the last update of each sweep, float64[sweeps]."""
    block, place = np.divmod(np.arange(1, n_sweeps + 1) * n_steps - 1, _BLOCK)
    blocks, first = np.unique(block, return_index=True)
    places = zip(blocks.tolist(), np.split(place, first[1:]), strict=True)
    return np.concatenate([loops.uniform_block(stream, each)[here] for each, here in places])


def _layer(u: Floats, chances: Floats) -> Int64s:
    """Return, for each of T samples, the index of the herding weight that the random number ``u`` selects, int64[T].

    Weight l of sample t has probability ``chances[l, t]``.
    """
    return np.minimum((u >= chances.cumsum(axis=0)).sum(axis=0), len(chances) - 1).astype(np.int64)


def _row_indices(rows: NDArray[np.integer]) -> Int64s:
    """Assign an index to each distinct row of a matrix, and return the index of each of the Z rows, int64[Z]."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _state_indices(states: Int32s, sizes: NDArray[np.integer], variable: int) -> Int64s:
    """Return, for each of T samples, the index of the joint state of all variables except ``variable``, int64[T].

    The last variable is the fastest.
    """
    index = np.zeros(len(states), np.int64)
    for j in range(len(sizes)):
        if j != variable:
            index = index * int(sizes[j]) + states[:, j]
    return index
