"""Bounds of the marginals of chains with links, and so of the error of any approximation to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int64s
from herdner.dobrushin.boxes import Box, LinkedBoxes, hull, walk
from herdner.graph.tables import Graph, compile_tables

_SLACK = 1e-10  # of rounding


@dataclass(frozen=True, slots=True, eq=False)
class MarginalBounds:
    """No marginal is below ``lower`` or above ``upper``, float64[V, K]."""

    lower: Floats
    upper: Floats

    def errors(self, marginals: Floats) -> Floats:
        """float64[V]: how far at most approximate ``marginals`` [V, K] are off, in total variation, each variable's."""
        above = np.maximum(self.upper - marginals, 0.0).sum(axis=1)
        below = np.maximum(marginals - self.lower, 0.0).sum(axis=1)
        return np.minimum(np.minimum(above, below), 1.0)


def marginal_bounds(graph: Graph) -> MarginalBounds:
    """Bounds of the marginals of a graph with loops, of chains and links.

    Take a chain A out of the graph: what is left says of the labels at the ends of its links a function F, which
    changes with one of them, the others fixed, by a ratio of means of exp(row of the link's table), over the label at
    its other end, in a chain B (the telescoping product of Weitz 2006). The law of that label is in a box, whatever
    stands at the other ends of the links of B, those to A among them. So F is in a product of boxes, and
    forward-backward through A with the least and with the largest of them bounds its marginals. The boxes of B's links
    are made smaller likewise, by the chains beyond B, except for those that lead back to A: they have labels of their
    own in every term. That is bound propagation of Mooij and Kappen (2009) on the tree of self-avoiding walks, two
    links deep, with chains in place of variables; Ihler, Fisher and Willsky (2005) bound the error of beliefs by such
    boxes. A link within a chain is taken at its worst. Time O(linked pairs of chains x their variables x K^2).

    Args:
        graph: Factors of one and two variables.

    Raises:
        ValueError: A factor joins more than two variables, or a chain has no labelling.
    """
    chains = compile_tables(graph).linked_chains
    if isinstance(chains, str):
        raise ValueError(f"{chains}: bounds of marginals are about factors of one or two variables")
    linked = LinkedBoxes.of(chains)
    form, ends = linked.form, linked.ends
    chain_of = np.repeat(np.arange(len(form.offsets) - 1), np.diff(form.offsets))
    here, there = chain_of[ends.variable], chain_of[ends.other]
    worst = _whatever(linked, here == there)
    near = _messages(linked, worst, worst, here, there)
    told = _messages(linked, near, worst, here, there)
    lower, upper = np.empty(form.unary.shape), np.empty(form.unary.shape)
    total = linked.added_up(told)
    for first, last in zip(form.offsets[:-1].tolist(), (form.offsets[1:] - 1).tolist(), strict=True):
        lower[first : last + 1], upper[first : last + 1] = _shares(_laws(linked, total, first, last))
    return MarginalBounds(lower, upper)


def _whatever(linked: LinkedBoxes, inside: NDArray[np.bool_]) -> Box:
    """What each end is told, whatever label the other end has. A link within a chain tells its first end all but what
    it says at that end's reference label, and its second end that.
    """
    low, high = linked.told.low.copy(), linked.told.high.copy()
    mine = linked.possible[linked.ends.variable]
    for slot in np.flatnonzero(inside & ~linked.open)[1::2].tolist():
        row = linked.ends.tables[linked.ends.table[slot], linked.reference[linked.ends.other[slot]]]
        low[slot] = high[slot] = np.where(mine[slot], row, 0.0)
    low[linked.open] = np.where(mine[linked.open], -np.inf, 0.0)
    low[np.flatnonzero(inside & linked.open)[1::2]] = 0.0
    return Box(low, high)


def _laws(linked: LinkedBoxes, total: Box, first: int, last: int) -> Box:
    """[n, K]: the laws of the variables of a chain."""
    reference = linked.reference[first : last + 1]
    before = hull(walk(linked.form, first, last, total, True), reference)
    behind = hull(walk(linked.form, first, last, total, False), reference)
    return before + behind + total.at(slice(first, last + 1))


def _shares(box: Box) -> tuple[Floats, Floats]:
    """The smallest and the largest probabilities of each label in boxes [n, K]."""
    with np.errstate(over="ignore", invalid="ignore"):
        least = 1 / (1 + np.exp(_of_others(box.high) - box.low))
        most = 1 / (1 + np.exp(_of_others(box.low) - box.high))
    least[np.isneginf(box.low)] = most[np.isneginf(box.high)] = 0.0
    return np.maximum(least - _SLACK, 0.0), np.minimum(most + _SLACK, 1.0)


def _of_others(x: Floats) -> Floats:
    """[n, K]: log sum exp over the labels but one. Never as a difference, which would leave nothing of small ones."""
    found = np.empty(x.shape)
    for k in range(x.shape[1]):
        found[:, k] = np.logaddexp.reduce(np.delete(x, k, axis=1), axis=1)
    return found


def _messages(linked: LinkedBoxes, told: Box, worst: Box, here: Int64s, there: Int64s) -> Box:
    """What each end is told by the chain of its other end, which is ``told`` so by its own links, those to the chain of
    the end itself excepted: these may say anything (``worst``).
    """
    low, high = worst.low.copy(), worst.high.copy()
    offsets = linked.form.offsets
    all_variables, least = linked.added_up(told), told is worst
    for chain in np.unique(there[here != there]).tolist():
        first, last = int(offsets[chain]), int(offsets[chain + 1]) - 1
        slots = linked.slots_of(first, last)
        laws = _laws(linked, all_variables, first, last) if least else None
        for to in np.unique(there[slots][there[slots] != chain]).tolist():
            back = slots[there[slots] == to]  # ends here of links to the chain that is told
            if laws is None or not least:
                mixed = Box(told.low.copy(), told.high.copy())
                mixed.low[back], mixed.high[back] = worst.low[back], worst.high[back]
                laws = _laws(linked, linked.added_up(mixed), first, last)
            for slot in back[~linked.open[back]].tolist():
                at = int(linked.ends.variable[slot]) - first
                q = laws.at(at).without(worst.at(slot))
                low[slot ^ 1], high[slot ^ 1] = _message(linked, slot ^ 1, q)
    return Box(np.maximum(low, worst.low), np.minimum(high, worst.high))


def _message(linked: LinkedBoxes, slot: int, q: Box) -> Box:
    """What an end is told by a link whose other end has a law in the box ``q``, 0 at the end's reference label."""
    v, other = int(linked.ends.variable[slot]), int(linked.ends.other[slot])
    labels, reference = np.flatnonzero(linked.possible[other]), linked.reference[v]
    rows = linked.ends.tables[linked.ends.table[slot]][labels]  # [U, K]
    base = rows[:, reference]
    weights = q.at(labels) + Box(base, base)
    low, high = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for k in np.flatnonzero(linked.possible[v]).tolist():
        low[k], high[k] = _mean_range(rows[:, k] - base, weights)
    return Box(low, high)


def _mean_range(values: Floats, weights: Box) -> tuple[float, float]:
    """The smallest and the largest weighted mean of ``values`` [U], by weights in a box; logarithms throughout."""
    order = np.argsort(values)
    v, (low, high) = values[order], weights.at(order)
    least = _threshold_means(v, high, low).min()
    most = _threshold_means(v, low, high).max()
    return float(least), float(most)


def _threshold_means(v: Floats, front: Floats, back: Floats) -> Floats:
    """The means of v with the weights ``front`` up to each threshold and ``back`` behind it."""
    up = np.logaddexp(_sums_before(front + v), _sums_before((back + v)[::-1])[::-1])
    down = np.logaddexp(_sums_before(front), _sums_before(back[::-1])[::-1])
    there = down > -np.inf
    return up[there] - down[there]


def _sums_before(x: Floats) -> Floats:
    """[U + 1]: log sum exp of the first 0, 1, .. U."""
    return np.concatenate([[-np.inf], np.logaddexp.accumulate(x)])
