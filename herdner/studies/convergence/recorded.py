"""Counting what a sampler visits by the states that it records: variables of any numbers of labels."""

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
from herdner.studies.convergence.exact import Focus, by_others, conditional, full_conditional, joint_distribution

_EVERY = Record(best=False, marginals=False, every=1)
_BLOCK = 1024  # numbers of a call of `loops.uniform_block`
_ROUNDED = 2.0**-33  # probabilities are herded as multiples of 2^-32: one that is a multiple of 1 / B stays it
_MOST_RECORDED = 2**27  # labels: half a gigabyte


def count_recorded(
    compiled: TableGraph, plan: Gibbs, ends: Sequence[int], focus: Focus, seed: Seed, start: ArrayLike | None
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(visits [N, 1, Z, K], returns [K, Z]) as in `herdner.studies.convergence.Counts`, of a plan that goes through all
    variables in a sweep and ends with that of ``focus``. ValueError where the states of a run are too many to keep.
    """
    n_labels = ends[-1] * len(compiled.sizes)
    if n_labels > _MOST_RECORDED:
        raise ValueError(
            f"with more than two labels counting keeps all states of a run, here {n_labels} labels; at most"
            f" {_MOST_RECORDED} fit: use fewer sweeps"
        )
    rng = generator(seed)
    stream = int(deepcopy(rng).integers(0, 2**64, (plan.n_chains, 4), dtype=np.uint64)[0, 0])
    samples = replace(plan, record=_EVERY).infer(compiled, rng, start=start).samples
    assert samples is not None
    x, z = samples[0, :, focus.variable].astype(np.int64), _number(samples[0], compiled.sizes, focus.variable)
    drawn = np.zeros(len(z), np.int64)
    if len(focus.keys) > 1:  # the last update of each sweep has drawn its weight
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


def focus_of_labels(compiled: TableGraph, plan: Gibbs, sharing: Sharing, variable: int) -> Focus:
    """The focus where the compiled loop does not count."""
    whole = joint_distribution(compiled)
    if sharing.kind == "random-bins":
        return _focus_of_random_bins(whole, variable, sharing.n_bins)
    others = [j for j in range(whole.ndim) if j != variable]
    sizes = [whole.shape[j] for j in others]
    z = np.indices(sizes).reshape(len(others), math.prod(sizes))  # one state of none beside a single variable
    if sharing.kind == "complete":
        keys = np.arange(z.shape[1], dtype=np.int64)
    elif sharing.kind == "bins":
        p = by_others(full_conditional(whole, variable), variable)
        p = p[:, 1:] if p.shape[1] == 2 else p  # of two labels the bin is that of label 1
        keys = _numbered(np.maximum(np.rint(p * 2.0**32).astype(np.int64) * sharing.n_bins - 1, 0) >> 32)
    else:
        near = set(compiled.graph.blanket(variable).tolist())
        if sharing.kind == "blanket" and plan.dummy_edges is not None:
            edges = np.asarray(plan.dummy_edges).reshape(-1, 2)
            near |= set(edges[(edges == variable).any(axis=1)].ravel().tolist())
        seen = z[[at for at, j in enumerate(others) if j in near]].T
        if sharing.kind == "neighbour-sum":
            seen = np.stack([(seen == k).sum(axis=1) for k in range(max(whole.shape))], axis=1)
        keys = _numbered(seen)
    return Focus.of(whole, variable, keys, sharing)


def _focus_of_random_bins(whole: Floats, variable: int, n_bins: int) -> Focus:
    """The focus of probabilities that are rounded by systematic sampling with one uniform number u: the counts of
    multiples change where u passes 1 less the fraction of a cumulative probability, so that z has at most K weights, in
    the order of u.
    """
    target = by_others(whole, variable)
    p = conditional(target)
    sums = p.cumsum(axis=1)[:, :-1] * n_bins  # of the labels but the last, after which all multiples are given out
    whole_part = np.floor(sums + _ROUNDED)
    turns = np.sort(np.clip(1 - (sums - whole_part), 0, 1), axis=1)  # [Z, K - 1]
    borders = np.hstack([np.zeros((len(p), 1)), turns, np.ones((len(p), 1))])
    middles = (borders[:, 1:] + borders[:, :-1]) / 2  # [Z, K]
    given_out = np.floor(sums[:, None] + _ROUNDED + middles[..., None])  # [Z, L, K - 1]
    ends = np.full((*middles.shape, 1), float(n_bins))
    multiples = np.diff(np.concatenate([0 * ends, given_out, ends], axis=2), axis=2)  # [Z, L, K]
    aims, keys = np.unique(multiples.reshape(-1, p.shape[1]), axis=0, return_inverse=True)
    sizes = tuple(size for j, size in enumerate(whole.shape) if j != variable)
    chances = np.ascontiguousarray(np.diff(borders, axis=1).T)
    return Focus(variable, target, keys.reshape(middles.shape).T.astype(np.int64), chances, aims / n_bins, sizes)


def _uniforms(stream: int, n_steps: int, n_sweeps: int) -> Floats:
    """[T]: the numbers that the last of ``n_steps`` updates of each sweep takes, as the engine makes them."""
    block, place = np.divmod(np.arange(1, n_sweeps + 1) * n_steps - 1, _BLOCK)
    blocks, first = np.unique(block, return_index=True)
    places = zip(blocks.tolist(), np.split(place, first[1:]), strict=True)
    return np.concatenate([loops.uniform_block(stream, each)[here] for each, here in places])


def _layer(u: Floats, chances: Floats) -> Int64s:
    """[T]: which of the weights [L, T] a number chooses."""
    return np.minimum((u >= chances.cumsum(axis=0)).sum(axis=0), len(chances) - 1).astype(np.int64)


def _numbered(rows: NDArray[np.integer]) -> Int64s:
    """[Z]: the number of each row among the different ones."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _number(states: Int32s, sizes: NDArray[np.integer], variable: int) -> Int64s:
    """[T]: the number of the state of all variables but one, the last of them fastest."""
    found = np.zeros(len(states), np.int64)
    for j in range(len(sizes)):
        if j != variable:
            found = found * int(sizes[j]) + states[:, j]
    return found
