"""Bounding boxes for chains joined by links: bounds on messages that hold for all states outside the chain.

A box contains the logarithm of a positive function of a state, up to a constant, between ``low`` and ``high`` (Ihler,
Fisher and Willsky 2005; Mooij and Kappen 2009). The message of a link is a row of its table, or a mean of rows. Its box
has width 0 at the most probable state of the receiving variable, so that a box hardly widens the marginals of a chain
with little uncertainty. Boxes pass through a chain by forward-backward: sums of products of positive numbers are
smallest when every factor is smallest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner._ext import chain as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.dobrushin.interactions import sizes_by_variable
from herdner.graph.chains import ChainForm
from herdner.graph.linked_chains import LinkedChains
from herdner.graph.tables import TableGraph


class Box(NamedTuple):
    """Elementwise lower and upper bounds on an array of logarithms.

    Both are float64[.., K], with -inf <= low <= high < inf.
    """

    low: Floats
    high: Floats

    def __add__(self, other: Box) -> Box:  # type: ignore[override]
        """Return the elementwise sum of two boxes."""
        return Box(self.low + other.low, self.high + other.high)

    def at(self, where: int | slice | Int64s) -> Box:
        """Return the box of the rows with the indices ``where``: an index, a slice or an array of indices.

        Args:
            where: Index, slice or indices of the first axis.
        """
        return Box(self.low[where], self.high[where])

    def widen(self, error: Floats | float) -> Box:
        """Return bounds that are wider by the rounding error ``error`` on both sides.

        Args:
            error: At least 0, a number or an array that broadcasts to the boxes.
        """
        return Box(self.low - error, self.high + error)

    def without(self, part: Box) -> Box:
        """Return bounds on the sum that remains if a term with the bounds ``part`` is removed.

        Args:
            part: The box to subtract.
        """
        return Box(self.low - part.low, self.high - part.high)


@dataclass(frozen=True, slots=True, eq=False)
class LinkEnds:
    """The two ends of each of E links; a link has one end at each of the two variables that it joins.

    Element 2e of each array is the end of link e at variable ``scopes[e, 0]``, and element 2e + 1 is the end at
    ``scopes[e, 1]``. The index of an end is called its slot.

    Attributes:
        variable: int32[2E], the variable at which each end lies.
        other: int32[2E], the variable at the other end of the link.
        table: int32[2E], index of the table of each end in ``tables``.
        tables: float64[T, K, K], log-potentials; row = state of ``other``, column = state of ``variable``.
    """

    variable: Int32s
    other: Int32s
    table: Int32s
    tables: Floats

    @classmethod
    def of(cls, chains: LinkedChains) -> LinkEnds:
        """List the ends of all links in a graph of chains and links.

        Args:
            chains: The chains and links.

        Returns:
            Both ends of each link.
        """
        ends = np.ascontiguousarray(chains.scopes, np.int32)
        table = chains.table_of_edge.astype(np.int32)
        tables = np.concatenate([chains.tables.swapaxes(1, 2), chains.tables])
        both = np.stack([table, table + np.int32(len(chains.tables))], axis=1)
        return cls(ends.ravel(), ends[:, ::-1].ravel(), both.ravel(), np.ascontiguousarray(tables))


@dataclass(frozen=True, slots=True, eq=False)
class LinkedBoxes:
    """Chains with links, and bounds on the message along each link.

    The bounds hold for all states of the variable that sends the message.

    Attributes:
        form: The chains.
        ends: The ends of the links.
        possible: bool[V, K], the states that the chains allow.
        reference: int64[V], the most probable state of each variable under its chain alone.
        messages: For each end, the box of the message from the variable at the other end to the variable at this end,
            [2E, K].
        unbounded: bool[2E], True for ends of links that forbid pairs of possible states; their messages have no bounds.
        in_order: int64[2E], the indices (slots) of the ends, sorted by variable.
        rounding: float64[chains], bounds on the rounding errors of messages (logarithms of sums over joint states) in
            each chain, including the links of its variables.
    """

    form: ChainForm
    ends: LinkEnds
    possible: NDArray[np.bool_]
    reference: Int64s
    messages: Box
    unbounded: NDArray[np.bool_]
    in_order: Int64s
    rounding: Floats

    @classmethod
    def of(cls, compiled: TableGraph, chains: LinkedChains) -> LinkedBoxes:
        """Compute bounds on the messages along all links of a graph of chains and links.

        Args:
            compiled: The graph.
            chains: Its chains and links.

        Returns:
            The chains and links, with a box of bounds for each message.

        Raises:
            ValueError: A chain forbids all its joint states.
        """
        form, ends = chains.form, LinkEnds.of(chains)
        possible = _possible_states(form)
        reference = _nodes(form).argmax(axis=1)
        messages, unbounded = _link_messages(ends, possible, reference)
        in_order, rounding = np.argsort(ends.variable, kind="stable"), _rounding_errors(compiled, form.offsets)
        return cls(form, ends, possible, reference, messages, unbounded, in_order, rounding)

    def slots_of(self, first: int, last: int) -> Int64s:
        """Return where `LinkEnds` stores the links of the variables ``first`` to ``last`` (both included).

        Args:
            first: First variable.
            last: Last variable.

        Returns:
            int64[n], indices of ends of links.
        """
        owners = self.ends.variable[self.in_order]
        return self.in_order[np.searchsorted(owners, first) : np.searchsorted(owners, last, "right")]

    def rounding_at(self, variable: int) -> float:
        """Return a bound on the rounding errors of messages in the chain that contains a variable.

        Args:
            variable: Index of the variable.
        """
        return float(self.rounding[np.searchsorted(self.form.offsets, variable, "right") - 1])

    def sum_by_variable(self, messages: Box) -> Box:
        """Sum, for each variable, the bounds on the messages that its links send to it.

        Args:
            messages: Boxes [2E, K] of the messages, in the order of `LinkEnds`.

        Returns:
            Boxes [V, K].
        """
        total = Box(np.zeros(self.possible.shape), np.zeros(self.possible.shape))
        for to, values in zip(total, messages, strict=True):
            np.add.at(to, self.ends.variable, values)
        return total


def _rounding_errors(compiled: TableGraph, offsets: Int64s) -> Floats:
    """Return a bound on the rounding errors of the messages in each chain, float64[chains].

    The logarithm of a message adds up log-potentials of the chain's variables. None of the partial sums exceeds the
    total size of these log-potentials. Each addition, exponential and logarithm has an error of at most 2^-53 of the
    total size. There are six of these operations for each number.
    """
    sizes, counts = sizes_by_variable(compiled)
    lengths = np.diff(offsets)
    total = np.add.reduceat(sizes, offsets[:-1]) + np.log(max(2, int(compiled.sizes.max()))) * lengths
    return 4 * (np.add.reduceat(counts, offsets[:-1]) + lengths) * total * float(np.finfo(np.float64).eps)


def _possible_states(form: ChainForm) -> NDArray[np.bool_]:
    """Return a mask bool[V, K] of the states that occur in an allowed joint state of their chain.

    Marginals do not show which states are possible, because the probability of a possible state can underflow to 0.
    """
    possible, tables = np.isfinite(form.unary), np.isfinite(form.tables)
    edges, begins = form.edge_table, set(form.offsets.tolist())
    for t in range(1, len(possible)):
        if t not in begins:
            possible[t] &= possible[t - 1] @ tables[0 if edges is None else edges[t]]
    for t in range(len(possible) - 1, 0, -1):
        if t not in begins:
            possible[t - 1] &= tables[0 if edges is None else edges[t]] @ possible[t]
    return possible


def _nodes(form: ChainForm) -> Floats:
    """Return the marginals [V, K] of the chains; raise `ValueError` if a chain forbids all its joint states."""
    nodes, log_zs = np.empty(form.unary.shape), np.empty(len(form.offsets) - 1)
    fault = loops.forward_backward(form.unary, form.tables, form.offsets, form.edge_table, log_zs, nodes)
    if fault != -1:
        raise ValueError(
            "a chain has no finite normaliser: -inf entries forbid all its joint states, or a log-potential exceeds"
            " 1e300; change these log-potentials"
        )
    return nodes


def _link_messages(ends: LinkEnds, possible: NDArray[np.bool_], reference: Int64s) -> tuple[Box, NDArray[np.bool_]]:
    """Return bounds on the two messages of each link, one in each direction, and a mask of messages without bounds.

    Both are in the order of `LinkEnds`. A message is 0 at the reference state of the receiving variable.
    """
    n_states = possible.shape[1]
    low, high = np.zeros((len(ends.variable), n_states)), np.zeros((len(ends.variable), n_states))
    unbounded = np.zeros(len(ends.variable), np.bool_)
    for at in range(0, len(low), 4096):
        part = slice(at, at + 4096)
        rows = ends.tables[ends.table[part]]  # [n, other's state, own state]
        mine, theirs = possible[ends.variable[part]], possible[ends.other[part]]
        both = theirs[:, :, None] & mine[:, None, :]
        unbounded[part] = (np.isneginf(rows) & both).any(axis=(1, 2))
        with np.errstate(invalid="ignore"):
            rows = rows - np.take_along_axis(rows, reference[ends.variable[part]][:, None, None], axis=2)
        low[part] = np.where(both, rows, np.inf).min(axis=1)
        high[part] = np.where(both, rows, -np.inf).max(axis=1)
        low[part][~mine] = high[part][~mine] = 0.0
    low[unbounded], high[unbounded] = 0.0, 0.0
    return Box(low, high), unbounded


def chain_sums(
    form: ChainForm, first: int, last: int, field: Box, forwards: bool, beyond: Floats | None = None
) -> Floats:
    """Return bounds on the logarithms of the forward or backward messages for a range of variables in a chain.

    The forward message at a variable sums over the joint states of the variables before it, the backward message over
    those after it. Forward messages include the unary factor of the variable itself; backward messages do not. Neither
    includes the ``field`` of the variable. The bounds hold for all values of ``field`` in its boxes.

    Args:
        form: The chains.
        first: First variable of the range.
        last: Last variable of the range.
        field: Boxes [V, K] that are added to the unary factors.
        forwards: True for sums over the variables before, False for sums over the variables after.
        beyond: Messages from U states outside the range to the variable where the sums begin, float64[U, K]; None for
            no message (U = 1).

    Returns:
        float64[n, U, 2, K], where axis 2 holds the lower and the upper bounds.
    """
    way = range(first, last + 1) if forwards else range(last, first - 1, -1)
    outside = np.zeros((1, form.unary.shape[1])) if beyond is None else beyond
    sums = np.empty((len(way), len(outside), 2, outside.shape[1]))
    both = np.stack([part[first : last + 1] for part in field], axis=1)
    x = np.repeat(outside[:, None], 2, axis=1)
    for step, t in enumerate(way):
        if step:
            edge = t if forwards else t + 1
            table = form.tables[0 if form.edge_table is None else form.edge_table[edge]]
            table = table if forwards else table.T
            x = log_sums(x[..., :, None] + table)
        sums[t - first] = x + form.unary[t] if forwards else x
        x = x + form.unary[t] + both[t - first]
    return sums


def log_sums(x: Floats) -> Floats:
    """Return log sum exp of x over the second-last axis.

    Args:
        x: float64[.., U, K].

    Returns:
        float64[.., K].
    """
    top: Floats = x.max(axis=-2)
    safe: Floats = np.where(top > -np.inf, top, 0.0)
    sums: Floats = np.exp(x - safe[..., None, :]).sum(axis=-2)
    with np.errstate(divide="ignore"):
        return np.log(sums) + safe


def bounding_box(sums: Floats, reference: Int64s) -> Box:
    """Merge bounds on messages for each of U states outside the range into one box per variable, valid for all U.

    Args:
        sums: float64[n, U, 2, K], from `chain_sums`. The upper bound of the reference state is shifted to 0.
        reference: int64[n], the reference state of each variable.

    Returns:
        Boxes [n, K].
    """
    high = sums[:, :, 1]
    scale = np.take_along_axis(high, reference[:, None, None], axis=2)
    scale = np.where(np.isneginf(scale), high.max(axis=2, keepdims=True), scale)
    scale = np.where(np.isneginf(scale), 0.0, scale)
    return Box((sums[:, :, 0] - scale).min(axis=1), (high - scale).max(axis=1))
