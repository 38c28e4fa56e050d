"""Scans over blocks, optimised by Algorithm 2 of DoGS17: coordinate descent on the bound, the last step first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from herdner.base.arrays import Floats, Int64s
from herdner.dobrushin.blocks import BlockInfluence
from herdner.dobrushin.certificate import Certificate

SHRUNK = 0.9  # total influence that scans are optimised by where the bounds' own is not below 1


def optimise_blocks(influence: BlockInfluence, order: Iterable[int], importance: Floats) -> Int64s:
    """Algorithm 2 once on an ``order`` of blocks: int64[T], whose weighted bound is never above that of the input.

    A step of a block replaces the probabilities p of all its places by those of its rows, which are linear in p; so the
    bound after all steps is importance . R_T .. R_1 p, and each step in turn, the last one first, takes the block that
    makes it smallest, given what comes before and after it. ``importance`` float64[places]. Of blocks that are as good
    the first is taken. Time O(T x entries).

    Raises:
        ValueError: The order names a block that is not there, or the importance is not one number for each place.
    """
    order, n_places, replaced = influence.steps(order), len(influence.places), list[Floats]()
    if np.shape(importance) != (n_places,):
        raise ValueError(f"importance must be a number for each of {n_places} places, not {np.shape(importance)}")
    p = np.ones(n_places)
    for block in order.tolist():
        targets = influence.targets[_rows(influence, block)]
        replaced.append(p[targets])
        p[targets] = influence.step(p, block)
    first, worth = float(importance @ p), np.array(importance, np.float64)
    new = order.copy()
    owners = np.repeat(np.arange(len(influence.targets)), np.diff(influence.starts))
    for t in reversed(range(len(order))):
        p[influence.targets[_rows(influence, int(order[t]))]] = replaced[t]
        best = new[t] = _best(influence, owners, p, worth)
        rows = _rows(influence, best)
        moved = worth[influence.targets[rows]]
        worth[influence.targets[rows]] = 0.0
        entries = slice(int(influence.starts[rows.start]), int(influence.starts[rows.stop]))
        np.add.at(worth, influence.sources[entries], influence.values[entries] * moved[owners[entries] - rows.start])
    return new if float(importance @ influence.coupling_bounds(new.tolist())) < first else order


def certified_order(
    influence: BlockInfluence, importance: Floats, n_steps: int, broken: tuple[str, ...] = ()
) -> tuple[Int64s, Certificate]:
    """An order of ``n_steps`` blocks for the places that matter, and the certificate of that very order.

    Where rows add up to 1 or more, Algorithm 2 works as if all influences were smaller by one factor, a rule of thumb;
    the bound is by the influences as they are. The systematic scan stays unless the outcome is better.
    """
    systematic = np.arange(n_steps) % max(1, influence.n_blocks)
    total = influence.total
    working = influence if total < 1 else replace(influence, values=influence.values * (SHRUNK / total))
    orders = systematic, optimise_blocks(working, systematic, importance)
    bounds = [float(importance @ influence.coupling_bounds(order.tolist())) for order in orders]
    best = int(np.argmin(bounds))
    return orders[best], Certificate(
        bound=bounds[best],
        trivial=float(importance.sum()),
        n_steps=n_steps,
        theorem=influence.theorem,
        total_influence=total,
        systematic=bounds[0],
        broken=broken,
    )


def _best(influence: BlockInfluence, owners: Int64s, p: Floats, worth: Floats) -> int:
    """The block whose step lowers worth . p most."""
    after = np.bincount(owners, influence.values * p[influence.sources], len(influence.targets))
    gain = worth[influence.targets] * (np.minimum(after, 1.0) - p[influence.targets])
    totals = np.concatenate([[0.0], np.cumsum(gain)])[influence.rows]
    return int(np.diff(totals).argmin())


def _rows(influence: BlockInfluence, block: int) -> slice:
    return slice(int(influence.rows[block]), int(influence.rows[block + 1]))
