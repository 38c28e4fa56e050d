"""Blocked Gibbs sampling: whole chains at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import layout
from herdner.graph.chains import check_cells, edge_recipes, factor_in_words, recipe_table
from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph
from herdner.graph.tables import TableGraph, compile_tables
from herdner.inference.backend import UnsupportedGraph
from herdner.inference.gibbs import Gibbs
from herdner.inference.runs import run_chains
from herdner.sampling.annealing import Annealing, as_annealing
from herdner.sampling.record import Record
from herdner.sampling.result import Result


@dataclass(frozen=True, slots=True)
class BlockedGibbs:
    """Gibbs sampling by blocks: runs of variables are drawn together, for chains with skip edges.

    A block is a run of consecutive variables, each joined to the one before it and to no other variable of the block;
    where an edge skips within a run, the run is cut before its later end. A sweep draws the blocks from left to right,
    each from its joint distribution given all variables outside, by forward filtering and backward sampling (Scott
    2002, JASA 97, Sec. 2). A graph that is one chain in the order of its variables thus gives independent
    samples; a graph without edges between consecutive variables plain Gibbs sampling. Factors of one and two variables,
    any numbers of labels.

    Options as those of `Gibbs`: ``n_sweeps``, of which ``burn_in`` are not recorded, ``annealing`` (None is beta = 1),
    ``n_chains`` on ``n_threads``, ``record``. Conditionals of rao_blackwell: given the blocks outside and the
    variable to the right.
    """

    n_sweeps: int = 1000
    burn_in: int = 0
    annealing: Annealing | None = None
    n_chains: int = 1
    n_threads: int | None = None
    record: Record = field(default_factory=Record)

    def __post_init__(self) -> None:
        if self.annealing is not None:
            object.__setattr__(self, "annealing", as_annealing(self.annealing))
        if self.n_chains == 1 and (self.n_threads or 1) > 1:
            raise ValueError("threads take a chain each: set n_chains too, or n_threads=1")
        self._plan()

    def _plan(self) -> Gibbs:
        return Gibbs(
            self.n_sweeps,
            self.burn_in,
            annealing=self.annealing,
            n_chains=self.n_chains,
            n_threads=self.n_threads,
            record=self.record,
        )

    def infer(
        self,
        graph: FactorGraph | TableGraph,
        seed: int | np.random.Generator | None = None,
        *,
        start: ArrayLike | None = None,
    ) -> Result:
        """Runs the sweeps on one graph; time of a sweep O(V K^2 + the other edges x K).

        ``start`` int[V]: the first state, of log-potential above -inf; None draws one. Ctrl-C raises `Interrupted`,
        whose ``result`` is what was recorded until then. UnsupportedGraph where a factor joins more than two variables.
        """
        began = perf_counter()
        compiled = compile_tables(graph)
        if not len(compiled.sizes):
            raise ValueError("the graph has no variables; a sampler needs at least one")
        return run_chains(self._plan(), compiled, np.random.default_rng(seed), start, began, Blocks.of(compiled))


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The blocks of a graph and the tables of the edges in them, as in ``cython_ext/gibbs_blocks.h``.

    ``first`` int32[V]: the first variable of each variable's block; ``edge_table`` int32[V]: the table of the edge to
    the variable before, in a block; ``tables`` float64[T, K, width]: log-potentials less the largest, the label of the
    variable before first, padded with -inf; ``range``: the largest distance of two finite entries of a table;
    ``longest``: variables of a block.
    """

    first: NDArray[np.int32]
    edge_table: NDArray[np.int32]
    tables: NDArray[np.float64]
    range: float
    longest: int

    @classmethod
    def of(cls, compiled: TableGraph) -> Blocks:
        sizes, n_labels = compiled.sizes, int(compiled.sizes.max(initial=1))
        nearest, joined = np.full(len(sizes), -1, np.int32), np.zeros(len(sizes), np.uint8)
        for g, group in enumerate(compiled.factors):
            if group.arity > 2 and len(group):
                raise UnsupportedGraph(
                    f"{factor_in_words(g, group)}: blocked-gibbs needs factors of one or two variables; use gibbs"
                )
            if group.arity == 2:
                layout.mark_neighbours(group.scopes, nearest, joined)
        first = np.empty(len(sizes), np.int32)
        longest = layout.cut_runs(nearest, joined, first)
        inside = [_inside(group, first) for group in compiled.factors if group.arity == 2]
        edge_table, values = _edge_tables([group for group in inside if len(group)], len(sizes), n_labels)
        width = max(2, int(compiled.conditionals.widths.max()))
        tables = np.full((max(1, len(values)), n_labels, width), -np.inf)
        for target, value in zip(tables, values, strict=False):
            target[: value.shape[0], : value.shape[1]] = value - max(value.max(), np.finfo(np.float64).min)
        finite = np.where(np.isfinite(tables), tables, 0.0)
        return cls(first, edge_table, tables, -float(finite.min()), longest)


def _inside(group: TableFactors, first: NDArray[np.int32]) -> TableFactors:
    """The factors of pairs that lie in one block."""
    at = np.flatnonzero(first[group.scopes[:, 0]] == first[group.scopes[:, 1]])
    return TableFactors(group.scopes[at], group.tables, group.table_of_factor[at], group.scale[at])


def _edge_tables(
    groups: Sequence[TableFactors], n_variables: int, n_labels: int
) -> tuple[NDArray[np.int32], list[NDArray[np.float64]]]:
    """Which table the edge to the variable before uses, and the tables [K, L], that variable's label first."""
    if not groups:
        return np.zeros(n_variables, np.int32), []
    edge_table, recipes = edge_recipes(
        groups,
        [group.scopes.max(axis=1) for group in groups],
        [group.scopes[:, 0] > group.scopes[:, 1] for group in groups],
        n_variables,
    )
    check_cells(len(recipes), n_labels)
    return edge_table, [recipe_table(groups, recipe) for recipe in recipes]
