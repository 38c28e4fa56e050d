"""Influence between blocks: certificates for scans over whole sentences, also with hard constraints."""

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
from herdner.base.checks import are_offsets
from herdner.base.representation import short_repr
from herdner.dobrushin.boxes import Box, LinkedBoxes, bounding_box, chain_sums, log_sums
from herdner.dobrushin.certificate import Certificate
from herdner.dobrushin.influence import check_entries
from herdner.dobrushin.variation import dense_importance
from herdner.graph.linked_chains import LinkedChains
from herdner.graph.order import block_ranges
from herdner.graph.tables import Graph, compile_tables

VariableSpan = tuple[int, int]

_MAX_RANGE = 300.0  # exponentials of this range, and products of two of them, do not underflow in doubles
_NEGLIGIBLE = 60.0  # e^-60 is far below the allowance for rounding


@dataclass(frozen=True, slots=True, eq=False)
class BlockInfluence:
    """Bounds on the influence between blocks of variables.

    The influence is tracked for spans of variables, such as the ends of links.

    Attributes:
        ranges: int32[B, 2], the first and the last variable of each block, overlapping (see
            ``herdner.graph.order.block_ranges``).
        spans: Spans of variables (first, last). The probability that two coupled runs differ at a span is tracked for
            each span. Single variables at the ends of links, which influence other blocks, come first.
        rows: int64[B + 1]. A step of block b updates the rows ``rows[b]:rows[b + 1]``.
        targets: int64[R], the span of each row.
        starts: int64[R + 1], first entry of each row. After a step, span ``targets[r]`` differs with a probability of
            at most the sum of ``values[e] * p[sources[e]]`` over the entries e of row r.
        sources: int64[N], the span of each entry.
        values: float64[N], the influence of each entry.
        theorem: Source of the bound.
    """

    ranges: Int32s
    spans: tuple[VariableSpan, ...]
    rows: Int64s
    targets: Int64s
    starts: Int64s
    sources: Int64s
    values: Floats
    theorem: str = field(default="Dobrushin's condition for blocks")

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Convert each array to its data type, and check its shape and values."""
        what = "a block influence"
        for name in ("ranges", "rows", "targets", "starts", "sources", "values"):
            dtype = {"ranges": np.int32, "values": np.float64}.get(name, np.int64)
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, f"the {name} of {what}"))
        if self.ranges.shape != (len(self.ranges), 2) or self.targets.ndim != 1:
            raise ValueError(
                f"`ranges` of {what} must have shape [blocks, 2], and `targets` must have shape [rows], got"
                f" {self.ranges.shape} and {self.targets.shape}"
            )
        if len(self.rows) != self.n_blocks + 1 or not are_offsets(self.rows, len(self.targets)):
            raise ValueError(
                f"`rows` of {what} must rise from 0 to the number of targets, {len(self.targets)}, and have"
                f" {self.n_blocks + 1} elements, got {self.rows.tolist()!s:.80}"
            )
        if len(self.starts) != len(self.targets) + 1:
            raise ValueError(f"`starts` of {what} must have {len(self.targets) + 1} elements, got {len(self.starts)}")
        check_entries(self.starts, self.sources, self.values, what)
        for name, indices in (("targets", self.targets), ("sources", self.sources)):
            if len(indices) and not 0 <= indices.min() <= indices.max() < len(self.spans):
                raise ValueError(
                    f"`{name}` of {what} must be span indices, 0 to {len(self.spans) - 1}, got {indices.min()} to"
                    f" {indices.max()}"
                )

    @property
    def n_blocks(self) -> int:
        """Number of blocks, B."""
        return len(self.ranges)

    @property
    def total(self) -> float:
        """Largest row sum of the influence matrix.

        If it is below 1, the bounds for longer scans over all blocks tend to 0.
        """
        sums = np.add.reduceat(np.append(self.values, 0.0), self.starts[:-1]) * (np.diff(self.starts) > 0)
        return float(sums.max(initial=0.0))

    def steps(self, order: Iterable[int]) -> Int64s:
        """Check that all blocks of an order exist, and return the order as int64[T].

        Args:
            order: The block of each step.

        Raises:
            ValueError: A block does not exist.
        """
        return np.fromiter(map(self._check_block, order), np.int64)

    def _check_block(self, block: int) -> int:
        """Return the index of a block, or raise ``ValueError`` if the block does not exist."""
        if not 0 <= (at := index(block)) < self.n_blocks:
            raise ValueError(f"there is no block {at}: the blocks are 0 to {self.n_blocks - 1}")
        return at

    def rows_of(self, block: int) -> slice:
        """Return the slice of the rows that a step of a block updates.

        Args:
            block: Index of the block.
        """
        return slice(int(self.rows[block]), int(self.rows[block + 1]))

    def step(self, p: Floats, block: int) -> Floats:
        """Return, for each span of ``block``, a bound on the probability that two runs differ there after its update.

        Args:
            p: float64[spans], bounds on the probability that the runs differ at each span.
            block: Index of the block.

        Returns:
            float64[rows of the block], one bound for each span of the block.
        """
        starts = self.starts[self.rows[block] : self.rows[block + 1] + 1]
        row, entries = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), slice(starts[0], starts[-1])
        return np.minimum(np.bincount(row, self.values[entries] * p[self.sources[entries]], len(starts) - 1), 1.0)

    def coupling_bounds(self, order: Iterable[int]) -> Floats:
        """Return, for each span, a bound on the total variation distance between sampler and target after a scan.

        The distance is between the law of the span's joint state after the scan and its law under the target. The bound
        holds for every possible initial state.

        Args:
            order: The block of each step.

        Returns:
            float64[spans].

        Raises:
            ValueError: A block does not exist.
        """
        p = np.ones(len(self.spans))
        for block in self.steps(order).tolist():
            p[self.targets[self.rows_of(block)]] = self.step(p, block)
        return p


def block_influence(graph: Graph, spans: Sequence[VariableSpan] = ()) -> BlockInfluence:
    """Return bounds on the influence between the blocks of a graph of chains and links.

    Tag schemes forbid pairs of neighbouring tags. Single variables then influence each other without limit, and bounds
    such as `tightest_influence` give no information. A block is a chain that is drawn as a whole, with all its
    constraints. Blocks meet at links, whose tables are finite (block dynamics: Weitz 2005, "Combinatorial criteria for
    uniqueness of Gibbs measures"; Dobrushin's condition for blocks: Wang and Wu).

    Let X and Y be two runs of one scan, where Y has the target distribution, and let p(s) be the probability that they
    differ at span s. A step draws the block A anew in both runs. Change the states outside of A from those of X to
    those of Y, one link at a time. A link joins variable a of A to variable j outside. It multiplies the law of A by
    exp(row of its table), a function of x_a only. Therefore the laws of x_a differ by at most tau(a, j) in total
    variation, and given x_a the rest of A has the same law in both runs.

    Draw x_a equal with probability 1 - tau; then all of A is equal. Otherwise go along the chain in both directions.
    Each next variable i is equal with probability at least 1 - D(i | a), where D is the largest distance between the
    laws of x_i given two states of x_a. Beyond a variable that is equal, everything is equal. The couplings of the
    single changes can be composed. After the step, p(i) is at most the sum over links (a, j) of tau(a, j) D(. | a) ..
    D(i | .) p(j), for all spans of A at once.

    tau and D are taken at the worst states outside, by boxes around the messages. If a link joins two tokens of one
    sentence, the sentence is divided into several blocks, and neighbours outside a block count as links. Links that
    forbid pairs of states influence without limit. Time O(V K^2 + (links + spans) K^4).

    Args:
        graph: Chains and links, with factors of one and two variables.
        spans: Additional spans of variables (first, last), such as entities. In the result they follow the ends of
            links, in the given order.

    Raises:
        ValueError: A factor has more than two variables, or a span is not in the graph.
        ImpossibleGraph: A factor without variables is -inf.
    """
    compiled = compile_tables(graph)
    chains = compiled.require(
        LinkedChains, "block_influence needs factors of at most two variables; use tightest_influence instead"
    )
    n = len(compiled.sizes)
    wrong = next((span for span in spans if not 0 <= span[0] <= span[1] < n), None)
    if wrong is not None:
        raise ValueError(f"there are no variables {wrong[0]} to {wrong[1]}: the graph's variables are 0 to {n - 1}")
    return _assemble(_blocks(LinkedBoxes.of(compiled, chains), block_ranges(compiled, overlapping=True), spans), spans)


class _Block:
    """Block of variables with its links, and bounds on the logarithms of the forward and backward messages in it.

    The messages depend on the states outside the block; the bounds hold for all of these states.

    The block tracks the variables that other blocks or spans depend on.
    """

    def __init__(self, linked: LinkedBoxes, messages: Box, ends: tuple[int, int], extra: Sequence[int]) -> None:
        """Build the block of the variables from ``ends[0]`` to ``ends[1]``, both included.

        The block tracks ``extra`` and all variables with links.

        Args:
            linked: The chains and links.
            messages: The boxes of all links, summed by variable.
            ends: First and last variable.
            extra: Variables to track in addition to the ends of links.
        """
        form, (first, last) = linked.form, ends
        self.linked, self.messages, self.first, self.last = linked, messages, first, last
        self.slots = linked.slots_of(first, last)
        self.left = -1 if first in form.offsets else first - 1  # neighbours outside, -1 for none
        self.right = -1 if last + 1 in form.offsets else last + 1
        tracked: set[int] = {*linked.ends.variable[self.slots].tolist(), *extra}
        tracked |= {v for v, outside in ((first, self.left), (last, self.right)) if outside >= 0}
        self.tracked = sorted(tracked)
        reference = linked.reference[first : last + 1]
        before = None if self.left < 0 else self.table(first)[linked.possible[self.left]]
        behind = None if self.right < 0 else self.table(last + 1).T[linked.possible[self.right]]
        self.rounding = linked.rounding_at(first)
        self.alpha = bounding_box(chain_sums(form, first, last, messages, True, before), reference)
        self.beta = bounding_box(chain_sums(form, first, last, messages, False, behind), reference)
        law = self.before(first) + self.behind(first) + messages.at(first)
        self.unbounded = bool(linked.unbounded[self.slots].any()) or not np.isfinite(law.low).any()

    def table(self, t: int) -> Floats:
        """Return the log-potentials [K, K] of the edge from variable t - 1 to variable t."""
        form = self.linked.form
        return form.tables[0 if form.edge_table is None else form.edge_table[t]]

    def before(self, v: int) -> Box:
        """Return bounds on the logarithm of the forward message at v, with v's unary factor but without v's links."""
        return self.alpha.at(v - self.first)

    def behind(self, v: int) -> Box:
        """Return bounds on the logarithm of the backward message at v, which sums over later variables of the block."""
        return self.beta.at(v - self.first)

    def from_here(self, v: int) -> Box:
        """Return bounds on log(backward message at v times unary factor of v times messages of the links of v)."""
        own = self.linked.form.unary[v]
        return self.behind(v) + self.messages.at(v) + Box(own, own)

    def between(self, v: int, w: int) -> Floats:
        """Return the logarithms, [K, K], of the sums over all states between v and w, for the states of v and of w."""
        sums = self.table(v + 1)
        for t in range(v + 1, w):
            sums = log_sums((sums + self.linked.form.unary[t])[:, :, None] + self.table(t + 1))
        return sums

    def entries(self) -> Iterator[tuple[int, int, InfluenceQuery]]:
        """Yield (v, w, query for the influence of w on v) for each link of the block and each edge out of the block."""
        ends, possible, error = self.linked.ends, self.linked.possible, self.rounding
        for slot in self.slots.tolist():
            v, other = int(ends.variable[slot]), int(ends.other[slot])
            rest = self.before(v) + self.behind(v) + self.messages.at(v).without(self.linked.messages.at(slot))
            table = ends.tables[ends.table[slot]]
            yield v, other, InfluenceQuery(rest.widen(error), table, possible[other], error)
        if self.left >= 0:
            law, table = self.from_here(self.first).widen(error), self.table(self.first)
            yield self.first, self.left, InfluenceQuery(law, table, possible[self.left], error)
        if self.right >= 0:
            rest = self.before(self.last) + self.messages.at(self.last)
            table = self.table(self.right).T
            yield self.last, self.right, InfluenceQuery(rest.widen(error), table, possible[self.right], error)

    def passages(self) -> Iterator[tuple[InfluenceQuery, InfluenceQuery]]:
        """Yield the queries for the influence of v on w and of w on v, for consecutive tracked variables v and w."""
        possible, error = self.linked.possible, self.rounding
        for v, w in pairwise(self.tracked):
            table = self.between(v, w)
            there, back = self.from_here(w), self.before(v) + self.messages.at(v)
            yield (
                InfluenceQuery(there.widen(error), table, possible[v], error),
                InfluenceQuery(back.widen(error), table.T, possible[w], error),
            )


class InfluenceQuery(NamedTuple):
    """Query for the influence (in total variation) of one variable on another; the answer is an upper bound.

    The conditional of the influenced variable is proportional to exp(``box`` + a row of ``table``). The influence is
    the largest distance between the conditionals of two possible rows.

    Attributes:
        box: Bounds on the log-probabilities of the influenced variable without the table, up to a constant, [K].
        table: float64[U, K], log-potentials, one row for each state of the other variable.
        possible: bool[U], the possible states of the other variable.
        rounding: Bound on the rounding errors of the table.
    """

    box: Box
    table: Floats
    possible: NDArray[np.bool_]
    rounding: float = 0.0


def query_answers(questions: Sequence[InfluenceQuery]) -> Floats:
    """Answer N influence queries: return, for each query, an upper bound on the influence of one variable on another.

    Args:
        questions: N queries.

    Returns:
        float64[N].
    """
    if not questions:
        return np.empty(0)
    low, high, tables = (
        np.ascontiguousarray(np.stack(part))
        for part in zip(*((q.box.low, q.box.high, q.table) for q in questions), strict=True)
    )
    possible = np.stack([q.possible for q in questions])
    beyond = _exceeds_doubles(low, high, tables, possible)
    results, which = np.empty(len(questions)), np.arange(len(questions), dtype=np.int32)
    loops.largest_changes(low, high, tables, which, possible.astype(np.uint8), results)
    results[beyond] = 1.0
    return np.minimum(results + [2 * q.rounding for q in questions], 1.0)


def _exceeds_doubles(low: Floats, high: Floats, tables: Floats, possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask bool[N] of the queried pairs of variables whose log-potentials span too wide a range for doubles.

    In pairs with a large range, states with a negligible weight everywhere in the box are first removed in place.
    """
    wide = np.flatnonzero((_span(high[:, None]) > _MAX_RANGE) | (_span(tables) > _MAX_RANGE))
    beyond = np.zeros(len(high), np.bool_)
    if not len(wide):
        return beyond
    rows = np.where(possible[wide][:, :, None], tables[wide], -np.inf)
    best = (low[wide][:, None] + rows).max(axis=2, keepdims=True)
    rows[high[wide][:, None] + rows < best - _NEGLIGIBLE] = -np.inf
    impossible = np.isneginf(rows).all(axis=1)
    low[wide], high[wide] = (np.where(impossible, -np.inf, box[wide]) for box in (low, high))
    tables[wide] = rows
    beyond[wide] = (_span(high[wide][:, None]) > _MAX_RANGE) | (_span(rows) > _MAX_RANGE)
    return beyond


def _span(x: Floats) -> Floats:
    """Return, for each of N matrices [U, K], the largest difference between two finite numbers in the same row."""
    lowest = np.where(np.isneginf(x), np.inf, x).min(axis=2)
    return np.maximum(x.max(axis=2) - lowest, 0.0).max(axis=1)


def _blocks(linked: LinkedBoxes, ranges: Int32s, spans: Sequence[VariableSpan]) -> list[_Block]:
    """Build one block for each range of variables in ``ranges``.

    The variables of ``spans`` are among the variables that the blocks track.
    """
    extra = sorted({v for first, last in spans for v in range(first, last + 1)})
    messages, results = linked.sum_by_variable(linked.messages), list[_Block]()
    for first, last in ranges.tolist():
        mine = extra[bisect_left(extra, first) : bisect_right(extra, last)]
        results.append(_Block(linked, messages, (first, last), mine))
    return results


def _assemble(blocks: Sequence[_Block], spans: Sequence[VariableSpan]) -> BlockInfluence:
    """Answer the queries of all blocks, and build the matrix of block influences from the answers."""
    entries = [list(block.entries()) for block in blocks]
    passages = [list(block.passages()) for block in blocks]
    asked = [q for own in entries for _, _, q in own] + [q for own in passages for both in own for q in both]
    results = iter(query_answers(asked).tolist())
    taus = [[next(results) for _ in own] for own in entries]
    distances = [[(next(results), next(results)) for _ in own] for own in passages]
    singles = sorted({v for block in blocks for v in block.tracked})
    index_of = {v: at for at, v in enumerate(singles)}
    all_spans = [*((v, v) for v in singles), *spans]
    rows, targets, starts, sources, values = [0], list[int](), [0], list[int](), list[float]()
    for block, own, tau, distance_pairs in zip(blocks, entries, taus, distances, strict=True):
        reach = _reach(block, distance_pairs)
        mine = [index_of[v] for v in block.tracked]
        mine += [len(singles) + at for at, (v, w) in enumerate(spans) if v <= block.last and w >= block.first]
        for target in mine:
            row: defaultdict[int, float] = defaultdict(float)
            v, w = all_spans[target]
            for (entry, other, _), by in zip(own, tau, strict=True):
                row[index_of[other]] += (1.0 if block.unbounded else by) * reach(entry, v, w)
            for outside in (t for t in range(v, w + 1) if not block.first <= t <= block.last):
                row[index_of[outside]] += 1.0  # the span extends over several blocks
            targets.append(target)
            sources += row
            values += row.values()
            starts.append(len(sources))
        rows.append(len(targets))
    ranges = np.array([(block.first, block.last) for block in blocks], np.int32).reshape(-1, 2)
    r, t, b, o = (np.array(part, np.int64) for part in (rows, targets, starts, sources))
    return BlockInfluence(ranges, tuple(all_spans), r, t, b, o, np.array(values, np.float64))


def _reach(block: _Block, distance_pairs: Sequence[tuple[float, float]]) -> Callable[[int, int, int], float]:
    """Return a bound, as a function, for the probability that two coupled runs differ in a range of the block.

    The function has the arguments ``entry``, ``v`` and ``w``. The variable ``entry`` is the first variable of the block
    at which the runs differ. The bound is on the probability that they then differ in the range from ``v`` to ``w``,
    both included.
    """
    at = {v: k for k, v in enumerate(block.tracked)}

    def reach(entry: int, v: int, w: int) -> float:
        v, w = max(v, block.first), min(w, block.last)
        if block.unbounded or v <= entry <= w:
            return 1.0
        if entry < v:
            return prod(there for there, _ in distance_pairs[at[entry] : at[v]])
        return prod(back for _, back in distance_pairs[at[w] : at[entry]])

    return reach


WORKING_TOTAL = 0.9  # influences are scaled to this total to optimise a scan, if their total is not below 1


def optimise_blocks(influence: BlockInfluence, order: Iterable[int], importance: Floats) -> Int64s:
    """Improve the order of block updates by one pass of coordinate descent (DoGS17, Algorithm 2).

    A step of a block replaces the probabilities p of its spans by its rows, which are linear in p. The bound after all
    steps is importance . R_T .. R_1 p. From the last step to the first, each step takes the block that minimises the
    bound, with all other steps fixed. Among equally good blocks, the first is taken. The weighted bound never
    increases. Time O(T x entries).

    Args:
        influence: The influence between blocks.
        order: The block of each step.
        importance: float64[spans], the weight of the bound of each span.

    Returns:
        The improved order, int64[T].

    Raises:
        ValueError: A block does not exist, or ``importance`` has the wrong shape.
    """
    order, n_spans, replaced = influence.steps(order), len(influence.spans), list[Floats]()
    if np.shape(importance) != (n_spans,):
        raise ValueError(f"`importance` must have shape [{n_spans}], one number per span, got {np.shape(importance)}")
    weight = dense_importance(n_spans, importance)
    p = np.ones(n_spans)
    for block in order.tolist():
        targets = influence.targets[influence.rows_of(block)]
        replaced.append(p[targets])
        p[targets] = influence.step(p, block)
    first, new = float(importance @ p), order.copy()
    owners = np.repeat(np.arange(len(influence.targets)), np.diff(influence.starts))
    for t in reversed(range(len(order))):
        p[influence.targets[influence.rows_of(order[t])]] = replaced[t]
        best = new[t] = _best(influence, owners, p, weight)
        rows = influence.rows_of(best)
        moved = weight[influence.targets[rows]]
        weight[influence.targets[rows]] = 0.0
        entries = slice(int(influence.starts[rows.start]), int(influence.starts[rows.stop]))
        np.add.at(weight, influence.sources[entries], influence.values[entries] * moved[owners[entries] - rows.start])
    return new if float(importance @ influence.coupling_bounds(new.tolist())) < first else order


def certify_block_order(
    influence: BlockInfluence, importance: Floats, n_steps: int, broken: tuple[str, ...] = ()
) -> tuple[Int64s, Certificate]:
    """Optimise the order of block updates; return the order and a certificate, an upper bound on the sampler's error.

    If a row sum is 1 or more, Algorithm 2 works with all influences scaled down by one factor, which is a heuristic.
    The certificate uses the original influences. The systematic scan is returned if it is at least as good.

    Args:
        influence: The influence between blocks.
        importance: float64[spans], the weight of the bound of each span.
        n_steps: Number of block steps.
        broken: Assumptions that the run violates.

    Returns:
        The order, int64[n_steps], and its certificate.
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


def _best(influence: BlockInfluence, owners: Int64s, p: Floats, weight: Floats) -> int:
    """Return the block whose update most reduces the weighted sum of ``p``, the coupling bounds of all spans."""
    after = np.bincount(owners, influence.values * p[influence.sources], len(influence.targets))
    gain = weight[influence.targets] * (np.minimum(after, 1.0) - p[influence.targets])
    totals = np.concatenate([[0.0], np.cumsum(gain)])[influence.rows]
    return int(np.diff(totals).argmin())
