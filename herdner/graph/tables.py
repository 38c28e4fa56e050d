"""Compiled graphs of discrete variables: the arrays of a graph in the form that each compiled loop needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from herdner.base.arrays import Int32s
from herdner.graph.chains import ChainForm, chain_form
from herdner.graph.conditionals import Conditionals, conditionals
from herdner.graph.domain import Discrete
from herdner.graph.factors import LARGEST, TableFactors
from herdner.graph.graph import FactorGraph, UnsupportedGraph
from herdner.graph.grids import GridForm, grid_form
from herdner.graph.linked_chains import LinkedChains, linked_chains

Form = TypeVar("Form", ChainForm, GridForm, LinkedChains)

_LAYOUTS: dict[type, Callable[..., Any]] = {ChainForm: chain_form, GridForm: grid_form, LinkedChains: linked_chains}


@dataclass(frozen=True, eq=False)
class TableGraph:
    """Compiled graph of `Discrete` variables and `TableFactors`, with several array layouts (forms) for compiled loops.

    Results never depend on the form that a loop uses.

    The graph and each of its forms are lazily initialised.

    Attributes:
        source: Function that builds the graph.
        links: Function that lays out chains and links without building the graph, or returns None if it cannot. With
            this function, sum-product always passes messages along the links, even if chains and links together form
            paths. Therefore the result for one connected component does not depend on the other components.
    """

    source: Callable[[], FactorGraph]
    links: Callable[[], LinkedChains | None] | None = None
    _layouts: dict[type, Any] = field(default_factory=dict[type, Any], init=False, repr=False)  # a form or an error

    @cached_property
    def graph(self) -> FactorGraph:
        """The factor graph from which this compiled graph was built."""
        return self.source()

    @property
    def sizes(self) -> Int32s:
        """Number of states of each variable, int32[V]."""
        return _domains(self.graph).sizes

    @property
    def n_states(self) -> int:
        """Largest number of states of a variable, K."""
        return int(self.sizes.max(initial=1))

    @cached_property
    def factors(self) -> tuple[TableFactors, ...]:
        """Groups of factors of the graph."""
        return _tables(self.graph)

    @cached_property
    def conditionals(self) -> Conditionals:
        """Full conditionals of all variables of the graph.

        Raises:
            ImpossibleGraph: The unary factors of a variable forbid all its states.
        """
        return conditionals(self.sizes, self.factors)

    def find(self, form: type[Form]) -> Form | None:
        """Convert the graph to the layout ``form``, such as a grid; return None if the graph has no such layout.

        Args:
            form: ``ChainForm``, ``GridForm`` or ``LinkedChains``.

        Returns:
            The layout, or None.
        """
        try:
            return self.require(form, "")
        except UnsupportedGraph:
            return None

    def require(self, form: type[Form], advice: str) -> Form:
        """Convert the graph to the layout ``form``; raise `UnsupportedGraph` if the graph has no such layout.

        Args:
            form: ``ChainForm``, ``GridForm`` or ``LinkedChains``.
            advice: Text that follows the obstacle in the error message.

        Returns:
            The layout; the graph keeps it for later calls.

        Raises:
            UnsupportedGraph: The message names the obstacle, such as the first factor that does not fit.
        """
        if form not in self._layouts:
            layout = self.links() if form is LinkedChains and self.links is not None else None
            try:
                self._layouts[form] = layout or _LAYOUTS[form](self.sizes, self.factors)
            except UnsupportedGraph as error:
                self._layouts[form] = str(error)
        layout = self._layouts[form]
        if isinstance(layout, str):
            raise UnsupportedGraph(f"{layout}: {advice}")
        return layout


Graph = FactorGraph | TableGraph
"""A factor graph, compiled or not."""


def compile_tables(graph: Graph) -> TableGraph:
    """Compile a graph of discrete variables and tables to a `TableGraph`.

    Args:
        graph: A graph of `Discrete` variables and `TableFactors`; a compiled graph is returned as it is.

    Returns:
        The compiled graph.

    Raises:
        TypeError: ``graph`` is not a graph.
        ValueError: The graph has other domains or factors, or its log-potentials could add up to more than 1e300.
    """
    if isinstance(graph, TableGraph):
        return graph
    if not isinstance(graph, FactorGraph):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public function
        raise TypeError(f"expected a FactorGraph, such as the result of herdner.ising(), not {type(graph).__name__}")
    _domains(graph)
    _tables(graph)
    return TableGraph(lambda: graph)


def _domains(graph: FactorGraph) -> Discrete:
    if not isinstance(graph.domains, Discrete):
        raise ValueError(f"discrete backends need variables with Discrete domains, not {type(graph.domains).__name__}")
    return graph.domains


def _tables(graph: FactorGraph) -> tuple[TableFactors, ...]:
    factors = tuple(group for group in graph.factors if isinstance(group, TableFactors))
    if len(factors) < len(graph.factors):
        other = next(group for group in graph.factors if not isinstance(group, TableFactors))
        raise ValueError(f"discrete backends need table factors, not {type(other).__name__}")
    for group in factors:
        group.check(graph.domains)  # checked again, because callers can alter a graph after its construction
    if not sum(group.reach for group in factors) <= LARGEST:
        g = max(range(len(factors)), key=lambda g: factors[g].reach)
        raise ValueError(
            f"the log-potentials of all factors could add up to more than {LARGEST:g} (group {g} has the largest); use"
            " smaller log-potentials, or -inf in place of large penalties"
        )
    return factors
