"""Counting what a sampler visits by the states that it records: variables of any numbers of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.seeds import Seed
from herdner.convergence.enumeration import full_conditional, joint
from herdner.convergence.focus import Focus, by_others
from herdner.graph.tables import TableGraph
from herdner.inference.backends.gibbs import Gibbs
from herdner.sampling.record import Record
from herdner.sampling.sharing import Sharing

Ints = NDArray[np.int64]
_EVERY = Record(best=False, marginals=False, every=1)
_MOST_RECORDED = 2**27  # labels: half a gigabyte


def count_recorded(
    compiled: TableGraph, plan: Gibbs, ends: Sequence[int], focus: Focus, seed: Seed, start: ArrayLike | None
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(visits [N, 1, Z, K], returns [K, Z]) as `herdner.convergence.Counts` has them, of a plan that goes through all
    variables in a sweep and ends with that of ``focus``. ValueError where the states of a run are too many to keep.
    """
    n_labels = ends[-1] * len(compiled.sizes)
    if n_labels > _MOST_RECORDED:
        raise ValueError(
            f"with more than two labels counting keeps all states of a run, here {n_labels} labels; at most"
            f" {_MOST_RECORDED} fit: use fewer sweeps"
        )
    samples = replace(plan, record=_EVERY).infer(compiled, seed, start=start).samples
    assert samples is not None
    x, z = samples[0, :, focus.variable].astype(np.int64), _number(samples[0], compiled.sizes, focus.variable)
    shape = focus.target.shape
    visits = np.zeros((len(ends), 1, *shape), np.uint64)
    for at, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        np.add.at(visits[at, 0], (z[begin:end], x[begin:end]), np.uint64(1))
    y = focus.keys[0][z]
    by_weight = np.argsort(y, kind="stable")
    again = np.flatnonzero(y[by_weight][1:] == y[by_weight][:-1])
    returns = np.zeros(shape[::-1], np.uint64)
    np.add.at(returns, (x[by_weight[again]], z[by_weight[again + 1]]), np.uint64(1))
    return visits.cumsum(axis=0, dtype=np.uint64), returns


def focus_of_labels(compiled: TableGraph, plan: Gibbs, sharing: Sharing, variable: int) -> Focus:
    """The focus where the compiled loop does not count. ValueError for random bins, which the states do not tell."""
    if sharing.kind == "random-bins":
        raise ValueError("with more than two labels the states do not tell which random bin was drawn: use bins(B)")
    whole = joint(compiled)
    others = [j for j in range(whole.ndim) if j != variable]
    z = np.indices([whole.shape[j] for j in others]).reshape(len(others), -1)
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


def _numbered(rows: NDArray[np.integer]) -> Ints:
    """[Z]: the number of each row among the different ones."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _number(states: NDArray[np.int32], sizes: NDArray[np.integer], variable: int) -> Ints:
    """[T]: the number of the state of all variables but one, the last of them fastest."""
    found = np.zeros(len(states), np.int64)
    for j in range(len(sizes)):
        if j != variable:
            found = found * int(sizes[j]) + states[:, j]
    return found
