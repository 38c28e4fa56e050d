"""The full conditionals of a graph, laid out for the loops that update single variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from herdner._ext import conditionals as loops
from herdner._ext.memory import sealed
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.memory import check_memory
from herdner.graph.edges import MOST_CELLS, scaled_tables
from herdner.graph.factors import TableFactors
from herdner.graph.graph import ImpossibleGraph, UnsupportedGraph

_CACHED = 2**17  # number of doubles that fit into a cache; their order does not affect the speed


@dataclass(frozen=True, eq=False)
class Conditionals:
    """Full conditionals of all variables, stored as rows; a row has log-potentials of one variable's states.

    Each variable has a unary row, and rows for its factors of two or more variables.

    A row of a two-state variable holds one double, the log-odds of state 0 against state 1. A row of any other variable
    holds the log-potentials of its states minus their maximum, padded with -inf to a multiple of 4 doubles.

    An incidence is a variable together with one of its larger factors. Variable i has the incidences ``starts[i]`` to
    ``starts[i + 1] - 1``. They are in the order of groups and factors. If all factors are pairs, lists of up to 64
    incidences are sorted by the other variable: first the variables before i in descending order, then the variables
    after i in descending order.

    Attributes:
        sizes: int32[V], the number of states of each variable.
        widths: int32[V], the doubles in a row of each variable.
        unary_at: int64[V], the position of each variable's unary row in ``unary``.
        unary: float64, the unary rows, concatenated.
        starts: int64[V + 1], the first incidence of each variable.
        row_at: int32[incidences], the position in ``rows`` of the row for which all other variables are in state 0.
        others_at: int64[incidences + 1], the first entry of each incidence in ``others`` and ``places``. None if all
            factors are pairs; entry e then belongs to incidence e, and its place is ``widths[i]``.
        others: int32, the other variables of each incidence.
        places: int32, the distance in ``rows`` between the rows for consecutive states of each variable in ``others``.
            None if all factors are pairs.
        rows: float64, the rows of all factors of two and more variables.
        spread: float64[V], a bound on the difference between the log-potentials of two allowed states of a variable.
    """

    sizes: Int32s
    widths: Int32s
    unary_at: Int64s
    unary: Floats
    starts: Int64s
    row_at: Int32s
    others_at: Int64s | None
    others: Int32s
    places: Int32s | None
    rows: Floats
    spread: Floats

    @cached_property
    def compiled(self) -> loops.CompiledConditionals:
        """Conditionals in the form that the compiled loops read. Building this form checks all indices."""
        return loops.CompiledConditionals(
            self.sizes, self.widths, self.unary_at, self.unary, self.starts, self.row_at,
            self.others_at, self.others, self.places, self.rows,
        )  # fmt: skip

    @cached_property
    def blankets(self) -> tuple[Int64s, Int32s]:
        """Markov blankets of all variables as (starts int64[V + 1], members int32), each blanket in ascending order."""
        return loops.sort_distinct(self.starts if self.others_at is None else self.others_at[self.starts], self.others)

    @cached_property
    def padded_form(self) -> Conditionals:
        """Copy of the conditionals in which the number of factors of each variable is a multiple of 4.

        The added factors do not change the conditionals. The copy is valid only for graphs whose variables have two
        states and whose factors join two variables.

        Loops read four factors at a time, which saves mispredicted branches. If the rows do not fit into a cache, they
        are copied in the order in which the loops read them.
        """
        lengths = np.diff(self.starts)
        starts = _offsets((lengths + 3) // 4 * 4)
        places = np.arange(len(self.others)) + np.repeat(starts[:-1] - self.starts[:-1], lengths)
        others = np.zeros(starts[-1], np.int32)
        others[places] = self.others
        if len(self.rows) <= _CACHED:
            rows = np.append(self.rows, [0.0, 0.0])  # the last row is that of the added factors
            row_at = np.full(len(others), len(self.rows), np.int32)
            row_at[places] = self.row_at
        else:
            rows = np.zeros(2 * len(others))
            rows[2 * places], rows[2 * places + 1] = self.rows[self.row_at], self.rows[self.row_at + 1]
            row_at = np.arange(0, len(rows), 2, dtype=np.int32)
        return replace(
            self, starts=sealed([starts]), row_at=sealed([row_at]), others=sealed([others]), rows=sealed([rows])
        )

    def independent(self, size: int) -> NDArray[np.uint8]:
        """Return 1 for each batch of ``size`` consecutive variables of which no two are neighbours, else 0.

        Args:
            size: Number of variables in a batch; variables after the last whole batch are left out.

        Returns:
            uint8[V // size]. All factors are pairs.
        """
        batches = np.repeat(np.arange(len(self.sizes), dtype=np.int32) // size, np.diff(self.starts))
        dependent = np.bincount(batches[batches == self.others // size], minlength=len(self.sizes) // size + 1)
        return (dependent[: len(self.sizes) // size] == 0).astype(np.uint8)


def _offsets(lengths: Int64s) -> Int64s:
    """Return the start of each of several concatenated lists, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(lengths)])


def add_edges(blankets: tuple[Int64s, Int32s], edges: Int32s) -> tuple[Int64s, Int32s]:
    """Add edges to the Markov blankets of a graph, and return the new blankets of all variables.

    Args:
        blankets: (starts int64[V + 1], members int32), the neighbours of each variable.
        edges: int32[D, 2], pairs of variables to make neighbours.

    Returns:
        (starts, members), each neighbour once, in ascending order.
    """
    starts, members = blankets
    owners = np.concatenate([np.repeat(np.arange(len(starts) - 1), np.diff(starts)), edges[:, 0], edges[:, 1]])
    neighbours = np.concatenate([members, edges[:, 1], edges[:, 0]])
    order = np.argsort(owners, kind="stable")
    new = _offsets(np.bincount(owners, minlength=len(starts) - 1))
    neighbours = np.ascontiguousarray(neighbours[order], np.int32)
    return loops.sort_distinct(new, neighbours)


def greedy_colouring(blankets: tuple[Int64s, Int32s]) -> Int32s:
    """Return a greedy colouring of the variables: no two neighbours have the same colour.

    Args:
        blankets: (starts int64[V + 1], members int32), the neighbours of each variable.

    Returns:
        int32[V], colours 0, 1, ..
    """
    return loops.colour(*blankets)


def conditionals(sizes: Int32s, factors: Sequence[TableFactors]) -> Conditionals:
    """Build the full conditionals of a graph of table factors.

    Args:
        sizes: int32[V], the number of states of each variable.
        factors: Groups of factors.

    Returns:
        The full conditional of each of the V variables.

    Raises:
        ImpossibleGraph: The unary factors forbid all states of a variable.
        UnsupportedGraph: The rows of the distinct tables need too much memory.
        NotEnoughMemory: The conditionals do not fit into memory.
    """
    widths = sealed([np.where(sizes == 2, 1, (sizes + 3) // 4 * 4).astype(np.int32)])
    n_ends = sum(group.arity * len(group) for group in factors if group.arity > 1)
    check_memory(
        8 * float(widths.sum()) + 28 * len(sizes) + 8 * n_ends,
        f"the conditionals of {len(sizes):,} variables",
        "make the graph smaller",
    )
    unary, unary_at, spread = unary_rows(sizes, widths, factors)
    groups = [_FactorRows.of(group) for group in factors if group.arity > 1 and len(group)]
    n_rows = sum(block.size for group in groups for block in group.blocks)
    if n_rows > MOST_CELLS:
        raise UnsupportedGraph(
            f"the tables of the full conditionals need {n_rows / 2**27:.0f} GB, more than {MOST_CELLS / 2**27:.0f} GB:"
            " let factors share tables (table_of_factor), or split the graph into its components"
        )
    starts, first_others = sealed([_offsets(_count_incidences(len(sizes), groups, False))]), None
    if any(group.factors.arity > 2 for group in groups):
        first_others = _offsets(_count_incidences(len(sizes), groups, True))
    rows, at = [np.empty(0)], 0
    parts: list[tuple[Int32s, Int32s, Int64s, Int32s, Floats]] = []
    for group in groups:
        blocks, at = group.place(rows, at)
        parts.append((group.factors.scopes, group.term_of_factor, blocks, group.strides(), group.spreads()))
    row_at, others_at, others, places = loops.fill_incidences(parts, starts, first_others, spread)
    if others_at is None:
        loops.sort_pairs(starts, row_at, others)
    return Conditionals(
        sizes, widths, unary_at, sealed([unary]), starts, sealed([row_at]),
        None if others_at is None else sealed([others_at]), sealed([others]),
        None if places is None else sealed([places]), sealed([np.concatenate(rows)]), spread,
    )  # fmt: skip


def _count_incidences(n: int, groups: Sequence[_FactorRows], others: bool) -> Int64s:
    """Count the incidences of each of n variables, int64[n]; if ``others``, count their other variables."""
    counts = np.zeros(n, np.int64)
    for group in groups:
        count = np.bincount(group.factors.scopes.ravel(), minlength=n)
        counts += count * (group.factors.arity - 1) if others else count
    return counts


def unary_rows(sizes: Int32s, widths: Int32s, factors: Sequence[TableFactors]) -> tuple[Floats, Int64s, Floats]:
    """Add up the unary factors of each variable to a row of log-potentials, and concatenate the rows of all variables.

    Args:
        sizes: int32[V], the number of states of each variable.
        widths: int32[V], the number of doubles in a row of each variable.
        factors: Groups of factors.

    Returns:
        The rows, the position of each row int64[V], and the spread of each row float64[V].

    Raises:
        ImpossibleGraph: The unary factors forbid all states of a variable.
    """
    unary_at = sealed([np.cumsum(widths, dtype=np.int64) - widths])
    unary, spread = np.zeros(int(widths.sum(dtype=np.int64))), np.empty(len(sizes))
    for group in factors:
        if group.arity == 1:
            loops.add_unary(unary, unary_at, group.scopes, group.table_of_factor, group.scale, group.tables)
    row = loops.normalise(unary, unary_at, sizes, widths, spread)
    if row >= 0:
        raise ImpossibleGraph(f"variable {row}: its unary factors forbid every state by -inf; allow at least one state")
    return unary, unary_at, spread


@dataclass(frozen=True)
class _FactorRows:
    """Rows of a factor group: log-potentials of one variable of a factor, one row for each joint state of the others.

    Attributes:
        factors: The group.
        term_of_factor: int32[F], the distinct scaled table of each factor.
        blocks: For each position of the scope, the rows of the variable at this position, float64[terms, joint states
            of the other variables, width].
    """

    factors: TableFactors
    term_of_factor: Int32s
    blocks: tuple[Floats, ...]

    @classmethod
    def of(cls, group: TableFactors) -> _FactorRows:
        """Arrange the tables of a non-empty group of factors as rows over the states of each of their variables."""
        values, term_of_factor = scaled_tables(group)
        blocks = [_rows(np.moveaxis(values, a + 1, -1)) for a in range(group.arity)]
        if len(blocks) == 2 and np.array_equal(blocks[0], blocks[1], equal_nan=True):
            blocks[1] = blocks[0]
        return cls(group, term_of_factor, tuple(blocks))

    def place(self, rows: list[Floats], at: int) -> tuple[Int64s, int]:
        """Append the flattened blocks of this group to the list ``rows``, and return the start position of each block.

        Positions count the numbers of all arrays in ``rows``; before the call, there are ``at``.

        Returns:
            int64[a, 2], the position of each block and its number of doubles for one term; and the position after the
            last block.
        """
        starts: dict[int, int] = {}
        for block in self.blocks:
            if id(block) not in starts:
                starts[id(block)] = at
                rows.append(block.ravel())
                at += block.size
        return np.array([[starts[id(block)], block[0].size] for block in self.blocks]), at

    def strides(self) -> Int32s:
        """Return distances between a variable's rows for consecutive states of another variable, int32[arity, arity].

        Entry [a, b] is the distance in the rows of the variable at scope position a, if only the state of the variable
        at scope position b increases by 1.
        """
        arity, sizes = self.factors.arity, self.factors.tables.shape[1:]
        strides = np.zeros((arity, arity), np.int32)
        for a in range(arity):
            step = self.blocks[a].shape[-1]
            for b in reversed(range(arity)):
                if b != a:
                    strides[a, b] = step
                    step *= sizes[b]
        return strides

    def spreads(self) -> Floats:
        """Return bounds on the change of a table entry if one variable of the scope changes between allowed states.

        Returns:
            float64[arity, tables], the bound for the variable at each scope position and for each table.
        """
        finite = [np.where(np.isfinite(block), np.abs(block), 0.0) for block in self.blocks]
        return np.array([block.max(axis=(1, 2), initial=0.0) for block in finite])


def _rows(values: Floats) -> Floats:
    """Convert tables to the rows of `Conditionals`: a row has one log-potential for each state of a variable.

    Rows in which every state is forbidden are NaN.

    Args:
        values: float64[tables, states of the other variables .., K].

    Returns:
        float64[tables, joint states of the other variables, width].
    """
    n_states = values.shape[-1]
    values = values.reshape(len(values), -1, n_states)
    with np.errstate(invalid="ignore"):
        if n_states == 2:
            return values[..., :1] - values[..., 1:]
        rows = np.full((*values.shape[:2], (n_states + 3) // 4 * 4), -np.inf)
        rows[..., :n_states] = values - values.max(axis=-1, keepdims=True)
    return rows
