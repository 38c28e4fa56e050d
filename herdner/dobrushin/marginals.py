"""Bounds on the marginals of chains joined by links, and on the errors of approximate marginals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int64s, finite
from herdner.base.representation import short_repr
from herdner.dobrushin.boxes import Box, LinkedBoxes, bounding_box, chain_sums
from herdner.graph.linked_chains import LinkedChains
from herdner.graph.tables import Graph, compile_tables

_SLACK = 1e-10  # allowance for rounding


@dataclass(frozen=True, slots=True, eq=False)
class MarginalBounds:
    """Lower and upper bounds on the marginal probabilities of a graph.

    Attributes:
        lower: float64[V, K], lower bounds.
        upper: float64[V, K], upper bounds.
    """

    lower: Floats
    upper: Floats

    __repr__ = short_repr

    def errors(self, marginals: Floats) -> Floats:
        """Return a bound on the total variation error of the approximate marginal of each variable.

        Args:
            marginals: float64[V, K], the approximate marginals.

        Returns:
            float64[V].

        Raises:
            ValueError: The marginals have the wrong shape, or are not finite.
        """
        p = finite(marginals, "`marginals`")
        if p.shape != self.upper.shape:
            raise ValueError(f"`marginals` must have shape {list(self.upper.shape)}, got {list(p.shape)}")
        above = np.maximum(self.upper - p, 0.0).sum(axis=1)
        below = np.maximum(p - self.lower, 0.0).sum(axis=1)
        return np.minimum(np.minimum(above, below), 1.0)


def marginal_bounds(graph: Graph) -> MarginalBounds:
    """Return lower and upper bounds on the marginals of a graph of chains joined by links.

    Remove a chain A from the graph. The remaining graph contributes a function F of the states at the ends of A's
    links. If one of these states changes and the others stay fixed, F changes by a ratio of means: the mean of
    exp(table row of the link) over the state at its other end, in a chain B (the telescoping product of Weitz 2006).
    The law of that state lies in a box for all states at the other ends of B's links, including the links to A.
    Therefore F lies in a product of boxes, and forward-backward through A with their lower and upper ends bounds A's
    marginals. The boxes of B's links are narrowed in the same way by the chains beyond B. Links that lead back to A are
    not narrowed, because their states are independent in every term.

    This is the bound propagation of Mooij and Kappen (2009) on the tree of self-avoiding walks, two links deep, with
    chains in place of variables. Ihler, Fisher and Willsky (2005) bound the error of belief propagation by such boxes.
    A link within a chain is bounded by its worst case. Time O(linked pairs of chains x their variables x K^2).

    Args:
        graph: A graph with factors of one and two variables.

    Raises:
        ValueError: A factor has more than two variables, or a chain forbids all its joint states.
        ImpossibleGraph: A factor without variables is -inf.
    """
    compiled = compile_tables(graph)
    chains = compiled.require(LinkedChains, "marginal_bounds needs factors of at most two variables")
    linked = LinkedBoxes.of(compiled, chains)
    form, ends = linked.form, linked.ends
    chain_of = np.repeat(np.arange(len(form.offsets) - 1), np.diff(form.offsets))
    here, there = chain_of[ends.variable], chain_of[ends.other]
    worst = _worst_messages(linked, here == there)
    near = _messages(linked, worst, worst, here, there)
    messages = _messages(linked, near, worst, here, there)
    lower, upper = np.empty(form.unary.shape), np.empty(form.unary.shape)
    total = linked.sum_by_variable(messages)
    for first, last in zip(form.offsets[:-1].tolist(), (form.offsets[1:] - 1).tolist(), strict=True):
        lower[first : last + 1], upper[first : last + 1] = _shares(_laws(linked, total, first, last))
    return MarginalBounds(lower, upper)


def _worst_messages(linked: LinkedBoxes, inside: NDArray[np.bool_]) -> Box:
    """Return bounds on the two messages of each link, one in each direction, for all states of the sending variable.

    The bounds are in the order of `LinkEnds`. A link within a chain sends its table, divided by the row of the
    reference state at its first end, to the first end. It sends that row to the second end.
    """
    low, high = linked.messages.low.copy(), linked.messages.high.copy()
    mine = linked.possible[linked.ends.variable]
    for slot in np.flatnonzero(inside & ~linked.unbounded)[1::2].tolist():
        row = linked.ends.tables[linked.ends.table[slot], linked.reference[linked.ends.other[slot]]]
        low[slot] = high[slot] = np.where(mine[slot], row, 0.0)
    low[linked.unbounded] = np.where(mine[linked.unbounded], -np.inf, 0.0)
    low[np.flatnonzero(inside & linked.unbounded)[1::2]] = 0.0
    return Box(low, high)


def _laws(linked: LinkedBoxes, total: Box, first: int, last: int) -> Box:
    """Return bounds, [n, K], on the unnormalised log-marginals of the variables ``first`` to ``last`` (inclusive)."""
    reference = linked.reference[first : last + 1]
    before = bounding_box(chain_sums(linked.form, first, last, total, True), reference)
    behind = bounding_box(chain_sums(linked.form, first, last, total, False), reference)
    law = before + behind + total.at(slice(first, last + 1))
    return law.widen(linked.rounding_at(first))


def _shares(box: Box) -> tuple[Floats, Floats]:
    """Return the smallest and the largest probability of each state over all log-potentials in a box.

    ``box`` has bounds on the unnormalised log-marginals of n variables, [n, K].
    """
    with np.errstate(over="ignore", invalid="ignore"):
        least = 1 / (1 + np.exp(_of_others(box.high) - box.low))
        most = 1 / (1 + np.exp(_of_others(box.low) - box.high))
    least[np.isneginf(box.low)] = most[np.isneginf(box.high)] = 0.0
    return np.maximum(least - _SLACK, 0.0), np.minimum(most + _SLACK, 1.0)


def _of_others(x: Floats) -> Floats:
    """Return, for each entry of x [n, K], the log sum exp of the other entries in its row.

    The sums are computed without cancellation.
    """
    return np.stack([np.logaddexp.reduce(np.delete(x, k, axis=1), axis=1) for k in range(x.shape[1])], axis=1)


def _messages(linked: LinkedBoxes, messages: Box, worst: Box, here: Int64s, there: Int64s) -> Box:
    """Return bounds on the two messages of each link, each computed from the chain of the sending variable.

    The bounds are in the order of `LinkEnds`. The sending chain receives ``messages`` on its own links, except for
    links to the chain of the receiving variable. On these it receives ``worst``, which holds for all states.
    """
    low, high = worst.low.copy(), worst.high.copy()
    offsets = linked.form.offsets
    totals, least = linked.sum_by_variable(messages), messages is worst
    for chain in np.unique(there[here != there]).tolist():
        first, last = int(offsets[chain]), int(offsets[chain + 1]) - 1
        slots = linked.slots_of(first, last)
        laws = _laws(linked, totals, first, last) if least else None
        for to in np.unique(there[slots][there[slots] != chain]).tolist():
            back = slots[there[slots] == to]  # slots of this chain's links to the receiving chain
            if laws is None or not least:
                mixed = Box(messages.low.copy(), messages.high.copy())
                mixed.low[back], mixed.high[back] = worst.low[back], worst.high[back]
                laws = _laws(linked, linked.sum_by_variable(mixed), first, last)
            for slot in back[~linked.unbounded[back]].tolist():
                at = int(linked.ends.variable[slot]) - first
                q = laws.at(at).without(worst.at(slot))
                low[slot ^ 1], high[slot ^ 1] = _message(linked, slot ^ 1, q)
    return Box(np.maximum(low, worst.low), np.minimum(high, worst.high))


def _message(linked: LinkedBoxes, slot: int, q: Box) -> Box:
    """Return bounds on the message that a link sends to one of the two variables that it joins.

    The message is 0 at the reference state of the receiving variable.

    Args:
        linked: The chains and links.
        slot: The receiving end of the link, an index of the arrays of ``linked.ends``: the receiving variable is
            ``linked.ends.variable[slot]``, and the sending variable is ``linked.ends.other[slot]``.
        q: Bounds on the unnormalised log-marginals of the sending variable in the graph without this link.
    """
    v, other = int(linked.ends.variable[slot]), int(linked.ends.other[slot])
    states, reference = np.flatnonzero(linked.possible[other]), linked.reference[v]
    rows = linked.ends.tables[linked.ends.table[slot]][states]  # [U, K]
    base = rows[:, reference]
    weights = q.at(states) + Box(base, base)
    low, high = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for k in np.flatnonzero(linked.possible[v]).tolist():
        low[k], high[k] = _mean_range(rows[:, k] - base, weights)
    return Box(low, high).widen(np.where(linked.possible[v], linked.rounding_at(other), 0.0))


def _mean_range(values: Floats, weights: Box) -> tuple[float, float]:
    """Return the minimum and maximum of log(weighted mean of exp(``values``)) for log-weights in the box ``weights``.

    The mean is (sum of w exp(v)) / (sum of w), where log w lies in the box ``weights``.

    The sums are over the elements v of ``values``, float64[U].
    """
    order = np.argsort(values)
    v, (low, high) = values[order], weights.at(order)
    least = _threshold_means(v, high, low).min()
    most = _threshold_means(v, low, high).max()
    return float(least), float(most)


def _threshold_means(v: Floats, front: Floats, back: Floats) -> Floats:
    """Return log(weighted mean of exp(v)) for every way to divide v into a first and a second part.

    Elements of the first part have the log-weights ``front``, and elements of the second part have ``back``. A part may
    be empty. Divisions in which all weights are 0 are left out.
    """
    up = np.logaddexp(_sums_before(front + v), _sums_before((back + v)[::-1])[::-1])
    down = np.logaddexp(_sums_before(front), _sums_before(back[::-1])[::-1])
    there = down > -np.inf
    return up[there] - down[there]


def _sums_before(x: Floats) -> Floats:
    """Return log sum exp of the first 0, 1, .., U elements of x, float64[U + 1]."""
    return np.concatenate([[-np.inf], np.logaddexp.accumulate(x)])
