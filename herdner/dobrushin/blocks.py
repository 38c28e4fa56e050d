"""Influence between blocks: what a scan over whole sentences certifies, hard constraints and all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from operator import index
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner._ext import influence as loops
from herdner.base.arrays import Floats, Int32s, Int64s, frozen
from herdner.base.checks import rises
from herdner.dobrushin.boxes import Box, LinkedBoxes, hull, log_sums, walk
from herdner.dobrushin.certificate import Certificate
from herdner.dobrushin.influence import check_entries
from herdner.graph.order import block_ranges
from herdner.graph.tables import Graph, compile_tables

VariableSpan = tuple[int, int]

_RANGE = 300.0  # of log-potentials whose exponentials, and the products of two of them, doubles can tell apart from 0
_NOTHING = 60.0  # e^-60 is far below what is added for rounding


@dataclass(frozen=True, slots=True, eq=False)
class BlockInfluence:
    """How far blocks can influence each other, place by place.

    Attributes:
        ranges: int32[B, 2], the first and the last variable of each block, overlapping
            (see `herdner.graph.order.block_ranges`).
        places: Runs of variables (first, last) whose labels may differ; the ends of links, which influence others, come
            first.
        rows: int64[B + 1]. The steps of block b are about the rows ``rows[b]:rows[b + 1]``.
        targets: int64[R], the place of each row.
        starts: int64[R + 1]. A step leaves place ``targets[r]`` different with a probability of at most the sum of
            ``values`` times those of the places ``sources``, over entries ``starts[r]:starts[r + 1]``.
        sources: int64[N].
        values: float64[N].
        theorem: Where the bounds come from.
    """

    ranges: Int32s
    places: tuple[VariableSpan, ...]
    rows: Int64s
    targets: Int64s
    starts: Int64s
    sources: Int64s
    values: Floats
    theorem: str = field(default="Dobrushin's condition for blocks")

    def __post_init__(self) -> None:
        what = "an influence of blocks"
        for name in ("ranges", "rows", "targets", "starts", "sources", "values"):
            dtype = {"ranges": np.int32, "values": np.float64}.get(name, np.int64)
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, f"the {name} of {what}"))
        if self.ranges.shape != (len(self.ranges), 2) or self.targets.ndim != 1:
            raise ValueError(f"ranges of {what} have shape [blocks, 2], and targets [rows]")
        if len(self.rows) != self.n_blocks + 1 or not rises(self.rows, len(self.targets)):
            raise ValueError(f"rows of {what} must rise from 0 to {len(self.targets)}, its targets, block by block")
        if len(self.starts) != len(self.targets) + 1:
            raise ValueError(f"starts of {what} must say where each of {len(self.targets)} rows begins, and the end")
        check_entries(self.starts, self.sources, self.values, what)
        for name, named in (("targets", self.targets), ("sources", self.sources)):
            if len(named) and not 0 <= named.min() <= named.max() < len(self.places):
                raise ValueError(f"{name} of {what} must be places, 0 to {len(self.places) - 1}")

    @property
    def n_blocks(self) -> int:
        """B."""
        return len(self.ranges)

    @property
    def total(self) -> float:
        """The largest sum of a row; where it is below 1, the bounds of longer scans of all blocks go to 0."""
        sums = np.add.reduceat(np.append(self.values, 0.0), self.starts[:-1]) * (np.diff(self.starts) > 0)
        return float(sums.max(initial=0.0))

    def steps(self, order: Iterable[int]) -> Int64s:
        """int64[T]: the blocks of an order. ValueError for a block that is not there."""
        blocks = np.array([index(block) for block in order], np.int64)
        wrong = blocks[(blocks < 0) | (blocks >= self.n_blocks)]
        if len(wrong):
            raise ValueError(f"there is no block {wrong[0]}: this influence has {self.n_blocks} blocks, counted from 0")
        return blocks

    def step(self, p: Floats, block: int) -> Floats:
        """What a step of the block makes of its own places, those of its rows, from ``p`` [places]."""
        first, last = int(self.rows[block]), int(self.rows[block + 1])
        at, end = self.starts[first], self.starts[last]
        row = np.repeat(np.arange(last - first), np.diff(self.starts[first : last + 1]))
        return np.minimum(np.bincount(row, self.values[at:end] * p[self.sources[at:end]], last - first), 1.0)

    def coupling_bounds(self, order: Iterable[int]) -> Floats:
        """float64[places]: a bound of the total variation distance between the law of each place's labels together,
        after steps of the blocks in this ``order`` from any first state that is possible, and the target. ValueError
        for a block that is not there.
        """
        p = np.ones(len(self.places))
        for block in self.steps(order).tolist():
            p[self.targets[self.rows[block] : self.rows[block + 1]]] = self.step(p, block)
        return p


def block_influence(graph: Graph, places: Sequence[VariableSpan] = ()) -> BlockInfluence:
    """The influences of the blocks of a graph of chains and links on each other.

    Tag schemes forbid pairs of neighbouring tags, so that single variables influence each other without limit, and
    bounds such as `tightest_influence` say nothing. A block is a chain that is drawn whole, whatever it forbids within;
    blocks meet at links, whose tables are finite (block dynamics: Weitz 2005, "Combinatorial criteria for uniqueness
    of Gibbs measures"; Dobrushin's condition for blocks: Wang and Wu).

    Let X and Y be two runs of one scan, Y at the target, and p their probability of differing at a place. A step draws
    the block A anew in both. Go from the labels outside of X to those of Y one link at a time. One link, which joins
    the variable a of A to j outside, multiplies the law of A by exp(row of its table), a function of x_a alone. So the
    laws of x_a differ by tau(a, j) at most in total variation, and given x_a the rest of A has the same law under both.
    Draw x_a equal with probability 1 - tau, then all of A is equal; else go along the chain to both sides, each next
    place i equal with probability 1 - D(i | a) at least, where D is the largest distance of the laws of x_i given two
    labels of x_a: where it is equal, all behind it is. Couplings of one link after the other can be glued, and so p(i)
    is at most the sum over links (a, j) of tau(a, j) D(. | a) .. D(i | .) p(j) after the step, for all places of A at
    once.

    tau and D are taken at the worst of all labels outside, by boxes around what these can say. Where one sentence is
    cut into several blocks because a link joins two of its own tokens, the neighbours outside count as links too. Links
    that forbid pairs of labels influence without limit. Time O(V K^2 + (links + places) K^4).

    Args:
        graph: Chains and links, of one and two variables a factor.
        places: Runs of variables (first, last), such as names, beside the ends of links that are there anyway; they
            come last, in this order.

    Raises:
        ValueError: A factor joins more than two variables, or a place is not in the graph.
    """
    compiled = compile_tables(graph)
    chains = compiled.linked_chains
    if isinstance(chains, str):
        raise ValueError(f"{chains}: blocks are about factors of one or two variables; use tightest_influence")
    n = len(compiled.sizes)
    wrong = next((place for place in places if not 0 <= place[0] <= place[1] < n), None)
    if wrong is not None:
        raise ValueError(f"there are no variables {wrong[0]} to {wrong[1]}: the graph's variables are 0 to {n - 1}")
    return _assembled(_blocks(LinkedBoxes.of(chains), block_ranges(compiled, overlapping=True), places), places)


class _Block:
    """One block: its links, its tracked variables and the boxes of what its parts say."""

    def __init__(self, linked: LinkedBoxes, told: Box, ends: tuple[int, int], wanted: Sequence[int]) -> None:
        """The block between two ends.

        Args:
            told: The boxes of all links, added up at their variables.
            wanted: Variables that are tracked too.
        """
        form, (first, last) = linked.form, ends
        self.linked, self.told, self.first, self.last = linked, told, first, last
        self.slots = linked.slots_of(first, last)
        self.left = -1 if first in form.offsets else first - 1  # neighbours outside
        self.right = -1 if last + 1 in form.offsets else last + 1
        tracked: set[int] = {*linked.ends.variable[self.slots].tolist(), *wanted}
        tracked |= {v for v, outside in ((first, self.left), (last, self.right)) if outside >= 0}
        self.tracked = sorted(tracked)
        reference = linked.reference[first : last + 1]
        before = None if self.left < 0 else self.table(first)[linked.possible[self.left]]
        behind = None if self.right < 0 else self.table(last + 1).T[linked.possible[self.right]]
        self.alpha = hull(walk(form, first, last, told, True, before), reference)
        self.beta = hull(walk(form, first, last, told, False, behind), reference)
        law = self.before(first) + self.behind(first) + told.at(first)
        self.open = bool(linked.open[self.slots].any()) or not np.isfinite(law.low).any()

    def table(self, t: int) -> Floats:
        """[K, K]: of the edge from variable t - 1 to t."""
        form = self.linked.form
        return form.tables[0 if form.edge_table is None else form.edge_table[t]]

    def before(self, v: int) -> Box:
        """What the variables up to v say of it, its links left out."""
        return self.alpha.at(v - self.first)

    def behind(self, v: int) -> Box:
        """What the variables behind v say of it."""
        return self.beta.at(v - self.first)

    def from_here(self, v: int) -> Box:
        """What variable v and the variables behind it say of it."""
        own = self.linked.form.unary[v]
        return self.behind(v) + self.told.at(v) + Box(own, own)

    def between(self, v: int, w: int) -> Floats:
        """[K, K]: the logarithms of the sums over all labellings between two variables of the chain, given theirs."""
        sums = self.table(v + 1)
        for t in range(v + 1, w):
            sums = log_sums((sums + self.linked.form.unary[t])[:, :, None] + self.table(t + 1))
        return sums

    def entries(self) -> Iterator[tuple[int, int, InfluenceQuery]]:
        """Where links enter: (variable here, variable outside, what is asked for)."""
        ends, possible = self.linked.ends, self.linked.possible
        for slot in self.slots.tolist():
            v, other = int(ends.variable[slot]), int(ends.other[slot])
            rest = self.before(v) + self.behind(v) + self.told.at(v).without(self.linked.told.at(slot))
            yield v, other, InfluenceQuery(rest, ends.tables[ends.table[slot]], possible[other])
        if self.left >= 0:
            yield (
                self.first,
                self.left,
                InfluenceQuery(self.from_here(self.first), self.table(self.first), possible[self.left]),
            )
        if self.right >= 0:
            rest = self.before(self.last) + self.told.at(self.last)
            yield self.last, self.right, InfluenceQuery(rest, self.table(self.right).T, possible[self.right])

    def passages(self) -> Iterator[tuple[InfluenceQuery, InfluenceQuery]]:
        """From each tracked variable to the next one and back."""
        possible = self.linked.possible
        for v, w in pairwise(self.tracked):
            table = self.between(v, w)
            back = InfluenceQuery(self.before(v) + self.told.at(v), table.T, possible[w])
            yield InfluenceQuery(self.from_here(w), table, possible[v]), back


class InfluenceQuery(NamedTuple):
    """How far can a row of the table, of those that are possible, move a law in the box?"""

    box: Box
    table: Floats
    possible: NDArray[np.bool_]


def query_answers(questions: Sequence[InfluenceQuery]) -> Floats:
    """[N]: in total variation, at most."""
    if not questions:
        return np.empty(0)
    low, high, tables = (
        np.ascontiguousarray(np.stack(part))
        for part in zip(*((q.box.low, q.box.high, q.table) for q in questions), strict=True)
    )
    possible = np.stack([q.possible for q in questions])
    beyond = _within_doubles(low, high, tables, possible)
    found, which = np.empty(len(questions)), np.arange(len(questions), dtype=np.int32)
    loops.largest_changes(low, high, tables, which, possible.astype(np.uint8), found)
    found[beyond] = 1.0
    return found


def _within_doubles(low: Floats, high: Floats, tables: Floats, possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool[N], which questions cannot be answered in doubles: a label that seems to weigh nothing could weigh most.

    Where log-potentials are that far apart, labels that weigh next to nothing beside another one, whatever in the box,
    are left out of the row first, in place.
    """
    wide = np.flatnonzero((_span(high[:, None]) > _RANGE) | (_span(tables) > _RANGE))
    beyond = np.zeros(len(high), np.bool_)
    if not len(wide):
        return beyond
    rows = np.where(possible[wide][:, :, None], tables[wide], -np.inf)
    sure = (low[wide][:, None] + rows).max(axis=2, keepdims=True)
    rows[high[wide][:, None] + rows < sure - _NOTHING] = -np.inf
    nowhere = np.isneginf(rows).all(axis=1)
    low[wide], high[wide] = (np.where(nowhere, -np.inf, box[wide]) for box in (low, high))
    tables[wide] = rows
    beyond[wide] = (_span(high[wide][:, None]) > _RANGE) | (_span(rows) > _RANGE)
    return beyond


def _span(x: Floats) -> Floats:
    """[N]: how far the finite numbers of a row of x [N, U, K] are apart, at most."""
    lowest = np.where(np.isneginf(x), np.inf, x).min(axis=2)
    return np.maximum(x.max(axis=2) - lowest, 0.0).max(axis=1)


def _blocks(linked: LinkedBoxes, ranges: Int32s, places: Sequence[VariableSpan]) -> list[_Block]:
    wanted = sorted({v for first, last in places for v in range(first, last + 1)})
    told, found = linked.added_up(linked.told), list[_Block]()
    for first, last in ranges.tolist():
        mine = wanted[bisect_left(wanted, first) : bisect_right(wanted, last)]
        found.append(_Block(linked, told, (first, last), mine))
    return found


def _assembled(blocks: Sequence[_Block], places: Sequence[VariableSpan]) -> BlockInfluence:
    """The rows of all blocks, after all that they ask for has been answered at once."""
    entries = [list(block.entries()) for block in blocks]
    passages = [list(block.passages()) for block in blocks]
    asked = [q for own in entries for _, _, q in own] + [q for own in passages for both in own for q in both]
    found = iter(query_answers(asked).tolist())
    taus = [[next(found) for _ in own] for own in entries]
    distances = [[(next(found), next(found)) for _ in own] for own in passages]
    singles = sorted({v for block in blocks for v in block.tracked})
    place_of = {v: at for at, v in enumerate(singles)}
    all_places = [*((v, v) for v in singles), *places]
    rows, targets, starts, sources, values = [0], list[int](), [0], list[int](), list[float]()
    for block, own, tau, apart in zip(blocks, entries, taus, distances, strict=True):
        reach = _reach(block, apart)
        mine = [place_of[v] for v in block.tracked]
        mine += [len(singles) + at for at, (v, w) in enumerate(places) if v <= block.last and w >= block.first]
        for target in mine:
            row: defaultdict[int, float] = defaultdict(float)
            v, w = all_places[target]
            for (entry, other, _), by in zip(own, tau, strict=True):
                row[place_of[other]] += (1.0 if block.open else by) * reach(entry, v, w)
            for outside in (t for t in range(v, w + 1) if not block.first <= t <= block.last):
                row[place_of[outside]] += 1.0  # a place that is drawn in parts
            targets.append(target)
            sources += row
            values += row.values()
            starts.append(len(sources))
        rows.append(len(targets))
    ranges = np.array([(block.first, block.last) for block in blocks], np.int32).reshape(-1, 2)
    r, t, b, o = (np.array(part, np.int64) for part in (rows, targets, starts, sources))
    return BlockInfluence(ranges, tuple(all_places), r, t, b, o, np.array(values, np.float64))


def _reach(block: _Block, apart: Sequence[tuple[float, float]]) -> Callable[[int, int, int], float]:
    """How likely it is that a difference at a tracked variable comes to the place v .. w, by ``apart``: there and back
    between each tracked variable and the next one.
    """
    at = {v: k for k, v in enumerate(block.tracked)}

    def reach(entry: int, v: int, w: int) -> float:
        v, w = max(v, block.first), min(w, block.last)
        if block.open or v <= entry <= w:
            return 1.0
        if entry < v:
            return prod(there for there, _ in apart[at[entry] : at[v]])
        return prod(back for _, back in apart[at[w] : at[entry]])

    return reach


WORKING_TOTAL = 0.9  # total influence that scans are optimised by where the bounds' own is not below 1


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


def certify_block_order(
    influence: BlockInfluence, importance: Floats, n_steps: int, broken: tuple[str, ...] = ()
) -> tuple[Int64s, Certificate]:
    """An order of ``n_steps`` blocks for the places that matter, and the certificate of that very order.

    Where rows add up to 1 or more, Algorithm 2 works as if all influences were smaller by one factor, a rule of thumb;
    the bound is by the influences as they are. The systematic scan stays unless the outcome is better.
    """
    systematic = np.arange(n_steps) % max(1, influence.n_blocks)
    total = influence.total
    working = influence if total < 1 else replace(influence, values=influence.values * (WORKING_TOTAL / total))
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
