"""Loopy belief propagation on factor graphs of any arity (Kschischang, Frey and Loeliger 2001)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats
from herdner.inference.elimination_order import ReducedGraph


@dataclass(slots=True, eq=False)
class FactorGroup:
    """Factors of a graph whose tables have the same shape.

    Attributes:
        scopes: int64[F, a], the variables of each factor.
        tables: float64[F, K1, .., Ka], log-potentials.
        messages: float64[F, Ki] for each axis i, the log-messages from the factors to their variables on this axis,
            normalised to a maximum of 0.
    """

    scopes: NDArray[np.int64]
    tables: Floats
    messages: list[Floats]


@dataclass(slots=True, eq=False)
class FactorMessages:
    """Sum-product messages on a reduced graph (see `reduce_graph`); each sweep updates all messages simultaneously.

    The messages are finite, because a reduced graph has no impossible states.

    Attributes:
        reduced: The graph.
        damping: Weight of a new message against the previous one, in the log domain; 1 is undamped.
        groups: Factors with tables of one shape, and their messages.
        sizes: Number of states of each variable of the reduced graph.
    """

    reduced: ReducedGraph
    damping: float = 1.0
    groups: list[FactorGroup] = field(init=False)
    sizes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Group the factors by the shapes of their tables, and set all messages to uniform distributions."""
        self.sizes = self.reduced.sizes
        shapes: dict[tuple[int, ...], list[int]] = {}
        for number, table in enumerate(self.reduced.tables):
            shapes.setdefault(table.shape, []).append(number)
        self.groups = []
        for shape, numbers in shapes.items():
            scopes = np.array([self.reduced.scopes[number] for number in numbers], np.int64)
            tables = np.stack([self.reduced.tables[number] for number in numbers])
            self.groups.append(FactorGroup(scopes, tables, [np.zeros((len(numbers), size)) for size in shape]))

    def sweep(self) -> float:
        """Update all messages once.

        Returns:
            The largest change of a marginal probability.
        """
        before = self.beliefs()
        sums = self._sums()
        for group in self.groups:
            cavities, total = self._products(group, sums)
            for axis, cavity in enumerate(cavities):
                fresh = _log_sum(total, axis + 1) - cavity
                fresh -= fresh.max(axis=1, keepdims=True)
                group.messages[axis] += self.damping * (fresh - group.messages[axis])
        return float(np.abs(self.beliefs() - before).max(initial=0.0))

    def beliefs(self) -> Floats:
        """Return the marginals of all variables of the reduced graph, float64[n, K]."""
        sums = self._sums()
        if not sums.size:
            return sums
        sums -= sums.max(axis=1, keepdims=True)
        np.exp(sums, out=sums)
        return sums / sums.sum(axis=1, keepdims=True)

    def log_z(self) -> float:
        """Return the Bethe approximation of log Z (Yedidia, Freeman and Weiss 2005), which is exact on trees."""
        beliefs = self.beliefs()
        entropy = -np.sum(beliefs * np.log(np.where(beliefs > 0, beliefs, 1.0)), axis=1)
        degrees = np.zeros(len(self.sizes))
        value = self.reduced.constant
        sums = self._sums()
        for group in self.groups:
            np.add.at(degrees, group.scopes, 1)
            _, total = self._products(group, sums)
            flat, tables = total.reshape(len(total), -1), group.tables.reshape(len(total), -1)
            p = np.exp(flat - flat.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            used = p > 0
            value += float(np.sum(p[used] * (tables[used] - np.log(p[used]))))
        return value - float(((degrees - 1) * entropy).sum())

    def _sums(self) -> Floats:
        """Return the sum of the messages to each variable, [n, K]; states that a variable does not have get -inf."""
        widest = max(self.sizes, default=1)
        sums = np.zeros((len(self.sizes), widest))
        sums[np.arange(widest) >= np.array(self.sizes, int).reshape(-1, 1)] = -np.inf
        for group in self.groups:
            for axis, message in enumerate(group.messages):
                np.add.at(sums[:, : message.shape[1]], group.scopes[:, axis], message)
        return sums

    @staticmethod
    def _products(group: FactorGroup, sums: Floats) -> tuple[Sequence[Floats], Floats]:
        """Compute the messages from the variables to the factors of a group.

        Returns:
            The messages for each axis, [F, Ki]; and the log-potentials plus all messages, [F, K1, .., Ka].
        """
        cavities: list[Floats] = []
        total = group.tables.copy()
        for axis, message in enumerate(group.messages):
            cavity = sums[group.scopes[:, axis], : message.shape[1]] - message
            cavity -= cavity.max(axis=1, keepdims=True)
            cavities.append(cavity)
            total += cavity.reshape(
                [len(cavity), *(message.shape[1] if a == axis else 1 for a in range(total.ndim - 1))]
            )
        return cavities, total


def _log_sum(total: Floats, axis: int) -> Floats:
    """Return log sum exp of a table over all axes except the first axis and ``axis``."""
    rows = np.moveaxis(total, axis, 1).reshape(total.shape[0], total.shape[axis], -1)
    top = rows.max(axis=2)
    return top + np.log(np.exp(rows - top[:, :, None]).sum(axis=2))
