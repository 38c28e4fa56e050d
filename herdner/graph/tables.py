"""Compiled graphs: the flat arrays that the loops run on, and the forms that specialised loops take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from herdner.base.arrays import Int32s
from herdner.graph.chains import ChainForm, chain_form
from herdner.graph.conditionals import Conditionals, conditionals
from herdner.graph.domain import Discrete
from herdner.graph.factors import LARGEST, TableFactors
from herdner.graph.graph import FactorGraph
from herdner.graph.grids import GridForm, grid_form
from herdner.graph.linked_chains import LinkedChains, linked_chains


@dataclass(frozen=True, eq=False)
class TableGraph:
    """A graph of labels and tables, compiled; each of its forms is laid out when it is first asked for, and kept.

    Where a graph does not have a form, the form is the reason, in words. Results never depend on the forms.

    ``source`` makes the graph. ``links``, where it is given, lays out the chains and links that are to be kept apart,
    without the graph if it can (else None): messages then pass along these links even if all factors together are
    chains, so that a part of the graph gets the same whatever stands beside it.
    """

    source: Callable[[], FactorGraph]
    links: Callable[[], LinkedChains | None] | None = None

    @cached_property
    def graph(self) -> FactorGraph:
        """The graph itself."""
        return self.source()

    @property
    def sizes(self) -> Int32s:
        """int32[V]: the number of labels of each variable."""
        return _labels(self.graph).sizes

    @property
    def n_states(self) -> int:
        """K: the largest of them."""
        return int(self.sizes.max(initial=1))

    @cached_property
    def factors(self) -> tuple[TableFactors, ...]:
        """The groups of factors."""
        return _tables(self.graph)

    @cached_property
    def chain(self) -> ChainForm | str:
        """Paths of variables; or the factor in the way."""
        return chain_form(self.sizes, self.factors)

    @cached_property
    def grid(self) -> GridForm | str:
        """A grid of two labels whose pairs along one axis are all alike."""
        return grid_form(self.sizes, self.factors)

    @cached_property
    def linked_chains(self) -> LinkedChains | str:
        """Runs of consecutive variables, and links between any variables; or the factor in the way."""
        known = None if self.links is None else self.links()
        return known or linked_chains(self.sizes, self.factors)

    @cached_property
    def conditionals(self) -> Conditionals:
        """The full conditionals. ImpossibleGraph where the unary factors of a variable forbid all of its labels."""
        return conditionals(self.sizes, self.factors)


Graph = FactorGraph | TableGraph
"""A graph, or a compiled one."""


def compile_tables(graph: Graph) -> TableGraph:
    """The graph for the loops. ValueError where it has domains or factors other than labels and tables."""
    if isinstance(graph, TableGraph):
        return graph
    if not isinstance(graph, FactorGraph):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public door
        raise TypeError(f"expected a FactorGraph, such as herdner.ising() makes, not {type(graph).__name__}")
    _labels(graph)
    _tables(graph)
    return TableGraph(lambda: graph)


def _labels(graph: FactorGraph) -> Discrete:
    if not isinstance(graph.domains, Discrete):
        raise ValueError(f"table loops need variables with labels, not {type(graph.domains).__name__}")
    return graph.domains


def _tables(graph: FactorGraph) -> tuple[TableFactors, ...]:
    factors = tuple(group for group in graph.factors if isinstance(group, TableFactors))
    if len(factors) < len(graph.factors):
        other = next(group for group in graph.factors if not isinstance(group, TableFactors))
        raise ValueError(f"table loops need table factors, not {type(other).__name__}")
    if not sum(group.reach for group in factors) <= LARGEST:
        g = max(range(len(factors)), key=lambda g: factors[g].reach)
        raise ValueError(
            f"the log-potentials of all factors could add up to more than {LARGEST:g}, those of group {g} most of all;"
            " use smaller ones, or -inf in place of large penalties"
        )
    return factors
