"""Bounding boxes: what chains can be told by what they are linked to, whatever labels stand there.

A box holds the logarithms of a positive function of a label between ``low`` and ``high``, up to a factor that all
labels share (the boxes of Ihler, Fisher and Willsky 2005 and of Mooij and Kappen 2009). A link says one of the rows of
its table, or a mean of them: its box has no width at the label that its end most probably has, so that a chain that is
sure of a label can hardly be moved. Boxes pass through a chain by forward-backward: sums of products of positive
numbers are smallest where all of them are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner._ext import chain as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.graph.chains import ChainForm
from herdner.graph.linked_chains import LinkedChains


class Box(NamedTuple):
    """float64[.., K] each; -inf <= low <= high < inf."""

    low: Floats
    high: Floats

    def __add__(self, other: Box) -> Box:  # type: ignore[override]
        return Box(self.low + other.low, self.high + other.high)

    def at(self, where: int | slice | Int64s) -> Box:
        """The boxes of some rows."""
        return Box(self.low[where], self.high[where])

    def without(self, part: Box) -> Box:
        """What is left when one of the boxes that were added up is taken out."""
        return Box(self.low - part.low, self.high - part.high)


@dataclass(frozen=True, slots=True, eq=False)
class LinkEnds:
    """The ends of E links, two of each: slot 2e is that at ``scopes[e, 0]``, 2e + 1 that at ``scopes[e, 1]``.

    Attributes:
        variable: int32[2E], the variable of the slot.
        other: int32[2E], that at the link's other end.
        table: int32[2E], which of ``tables`` holds the log-potentials.
        tables: float64[T, K, K], the other end's label first.
    """

    variable: Int32s
    other: Int32s
    table: Int32s
    tables: Floats

    @classmethod
    def of(cls, chains: LinkedChains) -> LinkEnds:
        """The ends of its links."""
        ends = np.ascontiguousarray(chains.scopes, np.int32)
        table = chains.table_of_edge.astype(np.int32)
        tables = np.concatenate([chains.tables.swapaxes(1, 2), chains.tables])
        both = np.stack([table, table + np.int32(len(chains.tables))], axis=1)
        return cls(ends.ravel(), ends[:, ::-1].ravel(), both.ravel(), np.ascontiguousarray(tables))


@dataclass(frozen=True, slots=True, eq=False)
class LinkedBoxes:
    """Chains and their links, and what each end can be told, whatever label the other end has.

    Attributes:
        form: The chains.
        ends: The ends of the links.
        possible: bool[V, K], the labels that the chains leave.
        reference: int64[V], the one that they think best.
        told: [2E, K], the box of each end's link.
        open: bool[2E], the link forbids pairs of labels that are possible, so that there is no box for it.
        in_order: int64[2E], the ends by their variables.
    """

    form: ChainForm
    ends: LinkEnds
    possible: NDArray[np.bool_]
    reference: Int64s
    told: Box
    open: NDArray[np.bool_]
    in_order: Int64s

    @classmethod
    def of(cls, chains: LinkedChains) -> LinkedBoxes:
        """Lays them out. ValueError where a chain has no labelling."""
        form, ends = chains.form, LinkEnds.of(chains)
        possible = _possible_labels(form)
        reference = _nodes(form).argmax(axis=1)
        told, is_open = _told(ends, possible, reference)
        return cls(form, ends, possible, reference, told, is_open, np.argsort(ends.variable, kind="stable"))

    def slots_of(self, first: int, last: int) -> Int64s:
        """The ends of links at the variables first .. last."""
        owners = self.ends.variable[self.in_order]
        return self.in_order[np.searchsorted(owners, first) : np.searchsorted(owners, last, "right")]

    def added_up(self, told: Box) -> Box:
        """[V, K]: boxes of all ends, added up at their variables."""
        total = Box(np.zeros(self.possible.shape), np.zeros(self.possible.shape))
        for to, values in zip(total, told, strict=True):
            np.add.at(to, self.ends.variable, values)
        return total


def _possible_labels(form: ChainForm) -> NDArray[np.bool_]:
    """[V, K]: the labels that some labelling of their chain has; not by sums, in which few of very many vanish."""
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
    """[V, K]: the marginals of the chains. ValueError where one has no labelling."""
    nodes, log_zs = np.empty(form.unary.shape), np.empty(len(form.offsets) - 1)
    fault = loops.forward_backward(form.unary, form.tables, form.offsets, form.edge_table, log_zs, nodes)
    if fault != -1:
        raise ValueError("a chain has no labelling that its -inf entries allow, or log-potentials beyond 1e300")
    return nodes


def _told(ends: LinkEnds, possible: NDArray[np.bool_], reference: Int64s) -> tuple[Box, NDArray[np.bool_]]:
    """The box of each end's link, 0 at the ``reference`` label of its variable, and which ends have none."""
    n_labels = possible.shape[1]
    low, high = np.zeros((len(ends.variable), n_labels)), np.zeros((len(ends.variable), n_labels))
    is_open = np.zeros(len(ends.variable), np.bool_)
    for at in range(0, len(low), 4096):
        part = slice(at, at + 4096)
        rows = ends.tables[ends.table[part]]  # [n, other's label, own label]
        mine, theirs = possible[ends.variable[part]], possible[ends.other[part]]
        both = theirs[:, :, None] & mine[:, None, :]
        is_open[part] = (np.isneginf(rows) & both).any(axis=(1, 2))
        with np.errstate(invalid="ignore"):
            rows = rows - np.take_along_axis(rows, reference[ends.variable[part]][:, None, None], axis=2)
        low[part] = np.where(both, rows, np.inf).min(axis=1)
        high[part] = np.where(both, rows, -np.inf).max(axis=1)
        low[part][~mine] = high[part][~mine] = 0.0
    low[is_open], high[is_open] = 0.0, 0.0
    return Box(low, high), is_open


def walk(form: ChainForm, first: int, last: int, field: Box, forwards: bool, beyond: Floats | None = None) -> Floats:
    """float64[n, U, 2, K]: of each variable of a part of a chain, the logarithms of the sums over all labellings before
    it (or behind it), by their lowest and by their highest log-potentials. What stands at the variable itself counts
    forwards only, and its ``field`` [V, K] never does.

    ``beyond`` [U, K]: what labels outside say of the first variable of the way; None: nothing (U = 1).
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
    """log sum exp over the last axis but one."""
    top: Floats = x.max(axis=-2)
    safe: Floats = np.where(top > -np.inf, top, 0.0)
    sums: Floats = np.exp(x - safe[..., None, :]).sum(axis=-2)
    with np.errstate(divide="ignore"):
        return np.log(sums) + safe


def hull(sums: Floats, reference: Int64s) -> Box:
    """The smallest boxes [n, K] around those of all labels outside, ``sums`` [n, U, 2, K], each made 0 at the highest
    log-potential of the ``reference`` [n].
    """
    high = sums[:, :, 1]
    scale = np.take_along_axis(high, reference[:, None, None], axis=2)
    scale = np.where(np.isneginf(scale), high.max(axis=2, keepdims=True), scale)
    scale = np.where(np.isneginf(scale), 0.0, scale)
    return Box((sums[:, :, 0] - scale).min(axis=1), (high - scale).max(axis=1))
