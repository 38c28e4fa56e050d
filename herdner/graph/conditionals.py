"""The full conditionals of a graph laid out for the samplers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from herdner._ext import conditionals as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.memory import check_memory
from herdner.graph.factors import TableFactors
from herdner.graph.graph import ImpossibleGraph

MOST_CELLS = 2**28  # doubles of all rows together
_CACHED = 2**17  # doubles of rows that stay in a cache, where their order does not matter


@dataclass(frozen=True, eq=False)
class Conditionals:
    """log p(x_i | the others) for each variable i: its unary row plus one row for each of its other factors.

    A row holds, for a variable of two labels, one double, the log-odds of label 0 against label 1; for other numbers of
    labels the log-potentials of the labels less the largest of them, padded with -inf to a multiple of 4.

    ``sizes``, ``widths`` int32[V]: labels, and doubles of a row. ``unary`` float64: row i begins at ``unary_at``[i].
    ``starts`` int64[V + 1]: the factors of variable i are the incidences starts[i] .. starts[i + 1] - 1, in the order
    of groups and factors or, where all are pairs, those that a sweep updated last before i first. Incidence e takes
    its row from ``rows`` float64 at row_at[e] + the sum over its other variables j of places[j] * x_j; these are
    entries others_at[e] .. others_at[e + 1] - 1 of ``others`` and ``places`` int32. Where every factor joins two
    variables, ``others_at`` and ``places`` are None: entry e is the one other variable and its place is ``widths`` of
    i. ``spread`` float64[V]: no two allowed labels ever differ by more.
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
    def blankets(self) -> tuple[Int64s, Int32s]:
        """(starts int64[V + 1], members int32): the Markov blanket of variable i in rising order, each variable
        once.
        """
        starts = self.starts.copy() if self.others_at is None else self.others_at[self.starts]
        members = self.others.copy()
        length = loops.sort_distinct(starts, members)
        return starts, members[:length].copy()

    @cached_property
    def padded(self) -> Conditionals:
        """Of pairs of two labels alone: the same, each list filled up to a multiple of 4 with pairs that say nothing.

        Loops take four at a time, with few surprises for the branch predictor. Rows that are many are copied into the
        order in which they are used.
        """
        lengths = (np.diff(self.starts) + 3) // 4 * 4
        starts = np.concatenate([[0], np.cumsum(lengths)])
        n = int(starts[-1])
        rows = np.zeros(len(self.rows) + 2 if len(self.rows) <= _CACHED else max(2 * n, len(self.rows) + 4))
        row_at, others = np.empty(n, np.int32), np.empty(n, np.int32)
        loops.pad_incidences(self.starts, self.row_at, self.others, self.rows, starts, row_at, others, rows)
        return replace(self, starts=starts, row_at=row_at, others=others, rows=rows)


def joined(blankets: tuple[Int64s, Int32s], edges: Int32s) -> tuple[Int64s, Int32s]:
    """The lists of neighbours ``blankets`` with the ``edges`` [D, 2] added, each neighbour once, in rising order."""
    starts, members = blankets
    owners = np.concatenate([np.repeat(np.arange(len(starts) - 1), np.diff(starts)), edges[:, 0], edges[:, 1]])
    everyone = np.concatenate([members, edges[:, 1], edges[:, 0]])
    order = np.argsort(owners, kind="stable")
    new = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(starts) - 1))])
    merged = np.ascontiguousarray(everyone[order], np.int32)
    length = loops.sort_distinct(new, merged)
    return new, merged[:length].copy()


def colours(blankets: tuple[Int64s, Int32s]) -> Int32s:
    """int32[V]: a greedy colouring; neighbours differ, so that one colour can be sampled at once."""
    found = np.empty(len(blankets[0]) - 1, np.int32)
    loops.colour(*blankets, found)
    return found


def conditionals(sizes: Int32s, factors: Sequence[TableFactors]) -> Conditionals:
    """ValueError where a variable's unary factors allow no label, or where untied tables need too much memory."""
    widths = np.where(sizes == 2, 1, (sizes + 3) // 4 * 4).astype(np.int32)
    n_ends = sum(group.arity * len(group) for group in factors if group.arity > 1)
    check_memory(
        8 * float(widths.sum()) + 28 * len(sizes) + 8 * n_ends,
        f"the conditionals of {len(sizes):,} variables",
        "make the graph smaller",
    )
    unary, unary_at, spread = unary_rows(sizes, widths, factors)
    groups = [_Group.of(group) for group in factors if group.arity > 1 and len(group)]
    n_rows = sum(block.size for group in groups for block in group.blocks)
    if n_rows > MOST_CELLS:
        raise ValueError(
            f"the conditionals need {n_rows / 2**27:.0f} GB of tables, more than {MOST_CELLS / 2**27:.0f} GB: tie the"
            " tables of some factors (table_of_factor), or split the graph into its components"
        )
    starts = np.zeros(len(sizes) + 1, np.int64)
    for group in groups:
        loops.count_incidences(group.factors.scopes, starts)
    np.cumsum(starts, out=starts)
    n = int(starts[-1])
    others_at = places = None
    if any(group.factors.arity > 2 for group in groups):
        others_at, cursor = np.zeros(n + 1, np.int64), starts[:-1].copy()
        for group in groups:
            loops.count_others(group.factors.scopes, cursor, others_at)
        np.cumsum(others_at, out=others_at)
        places = np.empty(int(others_at[-1]), np.int32)
    others = np.empty(n if others_at is None else int(others_at[-1]), np.int32)
    row_at, rows, cursor = np.empty(n, np.int32), [np.empty(0)], starts[:-1].copy()
    at = 0
    for group in groups:
        blocks, at = group.place(rows, at)
        loops.fill_incidences(
            group.factors.scopes, group.term_of_factor, blocks, group.places(), group.spreads(), cursor,
            row_at, others_at, others, places, spread,
        )  # fmt: skip
    if others_at is None:
        loops.sort_pairs(starts, row_at, others)
    return Conditionals(
        sizes, widths, unary_at, unary, starts, row_at, others_at, others, places, np.concatenate(rows), spread
    )


def unary_rows(sizes: Int32s, widths: Int32s, factors: Sequence[TableFactors]) -> tuple[Floats, Int64s, Floats]:
    """The unary rows, where each begins, and the spread of each."""
    unary_at = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(widths, out=unary_at[1:])
    unary, spread = np.zeros(int(unary_at[-1])), np.empty(len(sizes))
    for group in factors:
        if group.arity == 1:
            loops.add_unary(unary, unary_at, group.scopes, group.table_of_factor, group.scale, group.tables)
    row = loops.normalise(unary, unary_at[:-1], sizes, widths, spread)
    if row >= 0:
        raise ImpossibleGraph(f"variable {row}: its unary factors forbid every label by -inf; allow at least one")
    return unary, unary_at[:-1], spread


@dataclass(frozen=True)
class _Group:
    """The rows of one group of factors: a block [terms, configurations of the others, width] for each position."""

    factors: TableFactors
    term_of_factor: Int32s
    blocks: tuple[Floats, ...]

    @classmethod
    def of(cls, group: TableFactors) -> _Group:
        values, term_of_factor = _terms(group)
        blocks = [_rows(np.moveaxis(values, a + 1, -1)) for a in range(group.arity)]
        if len(blocks) == 2 and np.array_equal(blocks[0], blocks[1], equal_nan=True):
            blocks[1] = blocks[0]
        return cls(group, term_of_factor, tuple(blocks))

    def place(self, rows: list[Floats], at: int) -> tuple[Int64s, int]:
        """Appends the blocks to ``rows``, which end ``at``: (where each begins, the doubles of one term), the new
        end.
        """
        begins: dict[int, int] = {}
        for block in self.blocks:
            if id(block) not in begins:
                begins[id(block)] = at
                rows.append(block.ravel())
                at += block.size
        return np.array([[begins[id(block)], block[0].size] for block in self.blocks]), at

    def places(self) -> Int32s:
        """[a, b]: how far one label of position b moves in the rows of position a."""
        arity, sizes = self.factors.arity, self.factors.tables.shape[1:]
        places = np.zeros((arity, arity), np.int32)
        for a in range(arity):
            step = self.blocks[a].shape[-1]
            for b in reversed(range(arity)):
                if b != a:
                    places[a, b] = step
                    step *= sizes[b]
        return places

    def spreads(self) -> Floats:
        """[a, terms]: the largest finite distance between two labels."""
        finite = [np.where(np.isfinite(block), np.abs(block), 0.0) for block in self.blocks]
        return np.array([block.max(axis=(1, 2), initial=0.0) for block in finite])


def _terms(group: TableFactors) -> tuple[Floats, Int32s]:
    """The distinct scaled tables of a group, [terms, K1, ..], and which of them each factor is."""
    if (group.scale == group.scale[0]).all():
        return group.scale[0] * group.tables, group.table_of_factor
    scales, code = np.unique(group.scale, return_inverse=True)
    if len(scales) * len(group.tables) <= len(group):
        values = scales[:, None, None] * group.rows
        term = code.reshape(-1) * len(group.tables) + group.table_of_factor
    else:
        values, term = group.scale[:, None] * group.rows[group.table_of_factor], np.arange(len(group))
    return values.reshape(-1, *group.tables.shape[1:]), term.astype(np.int32)


def _rows(values: Floats) -> Floats:
    """[terms, others.., K] log-potentials as rows [terms, configurations, width]; NaN where no label is allowed."""
    n_states = values.shape[-1]
    values = values.reshape(len(values), -1, n_states)
    with np.errstate(invalid="ignore"):
        if n_states == 2:
            return values[..., :1] - values[..., 1:]
        rows = np.full((*values.shape[:2], (n_states + 3) // 4 * 4), -np.inf)
        rows[..., :n_states] = values - values.max(axis=-1, keepdims=True)
    return rows
