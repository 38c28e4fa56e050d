"""Exact inference by enumeration, for graphs of few joint states."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s
from herdner.base.checks import check_integer
from herdner.base.seeds import Seed
from herdner.graph.factors import TableFactors
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, ImpossibleGraph, UnsupportedGraph
from herdner.inference.record import Record
from herdner.inference.result import Result

_CELLS = 2**20  # factors x joint states evaluated at a time, to fit a cache


@dataclass(frozen=True, slots=True)
class Exact:
    """Exact best state, log Z, marginals and expected counts by enumeration of all joint states.

    Ties go to the smallest state of the last variable, then of the one before it, and so on.

    Attributes:
        max_states: Largest number of joint states; each takes 16 bytes of memory.
    """

    max_states: int = 2**22

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals", "table_counts"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` unless ``max_states`` is an integer of at least 1."""
        check_integer(self.max_states, "max_states")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Enumerate the joint states of one graph; time O(joint states x factors).

        Args:
            graph: A graph of discrete variables with at most ``max_states`` joint states.
            seed: Ignored.
            start: Ignored.
            record: Contents of the result; marginals and table counts are always recorded.

        Returns:
            The best state, log_z, marginals and table_counts.

        Raises:
            UnsupportedGraph: The graph has too many joint states.
            UnsupportedRecord: ``record`` asks for more than marginals and table counts.
            ImpossibleGraph: Entries of -inf forbid every joint state.
        """
        began = perf_counter()
        self.capabilities.require(record, "exact")
        compiled = compile_tables(graph)
        sizes, n_states = compiled.sizes, math.prod(compiled.sizes.tolist())
        if n_states > self.max_states:
            raise UnsupportedGraph(
                f"the graph's {len(sizes)} variables have {_about(n_states)} joint states: exact enumerates at most"
                f" {self.max_states}; raise max_states, condition on some variables, or use viterbi if it is a chain"
            )
        log_potentials = np.empty(n_states)
        for states, part in _chunks(compiled):
            log_potentials[part] = compiled.graph.log_potential(states)
        best = int(log_potentials.argmax())
        top = log_potentials[best]
        if top == -np.inf:
            raise ImpossibleGraph("-inf entries forbid every joint state of the graph; allow at least one")
        probabilities = np.exp(log_potentials - top)
        total = probabilities.sum()
        probabilities /= total
        return Result(
            state=_states(sizes, best, best + 1)[0],
            log_potential=float(top),
            log_z=float(top + np.log(total)),
            marginals=_marginals(sizes, probabilities),
            table_counts=_table_counts(compiled, probabilities),
            seconds=perf_counter() - began,
        )


def _about(n: int) -> str:
    return str(n) if n < 10**9 else f"about 10^{len(str(n)) - 1}" if n < 10**4000 else "more than 10^4000"


def _states(sizes: Int32s, start: int, stop: int) -> Int32s:
    """Return the joint states of index ``start`` to ``stop`` - 1; variable 0 is the fastest digit of the index."""
    rest = np.arange(start, stop)
    states = np.empty((stop - start, len(sizes)), np.int32)
    for i, size in enumerate(sizes.tolist()):
        rest, states[:, i] = np.divmod(rest, size)
    return states


def _chunks(compiled: TableGraph) -> Iterator[tuple[Int32s, slice]]:
    """Yield all joint states in chunks that fit a cache, each with the slice of its indices."""
    width = max(1, len(compiled.sizes), *(group.scopes.size for group in compiled.factors), 0)
    step, n_states = max(1, _CELLS // width), math.prod(compiled.sizes.tolist())
    for start in range(0, n_states, step):
        stop = min(start + step, n_states)
        yield _states(compiled.sizes, start, stop), slice(start, stop)


def _marginals(sizes: Int32s, probabilities: Floats) -> Floats:
    marginals = np.zeros((len(sizes), int(sizes.max(initial=1))))
    inner = 1
    for i, size in enumerate(sizes.tolist()):
        marginals[i, :size] = probabilities.reshape(-1, size, inner).sum(axis=(0, 2))
        inner *= size
    return marginals


def _table_counts(compiled: TableGraph, probabilities: Floats) -> tuple[Floats, ...]:
    counts = tuple(np.zeros(group.tables.shape) for group in compiled.factors)
    for states, part in _chunks(compiled):
        for group, total in zip(compiled.factors, counts, strict=True):
            _add_counts(group, states, probabilities[part], total)
    return counts


def _add_counts(group: TableFactors, states: Int32s, weights: Floats, counts: Floats) -> None:
    """Add the scaled weights of the joint states to the cells of ``counts`` that the factors have in them."""
    cells = np.broadcast_to(group.table_of_factor.astype(np.int64), (len(states), len(group)))
    for a, size in enumerate(counts.shape[1:]):
        cells = cells * size + states[:, group.scopes[:, a]]
    scaled = weights[:, None] * group.scale
    counts += np.bincount(cells.ravel(), scaled.ravel(), counts.size).reshape(counts.shape)
