"""Compiled graphs: the flat arrays that the loops run on, and the structure they can make use of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from herdner.graph.chains import ChainForm, chain_form
from herdner.graph.conditionals import Conditionals, conditionals
from herdner.graph.domain import Labels
from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph
from herdner.graph.grids import GridForm, grid_form


@dataclass(frozen=True, eq=False)
class TableGraph:
    """A graph of labels and tables: ``sizes`` int32[V], ``factors`` its groups of tables, ``graph`` their source.

    ``structure`` is the form that a specialised loop takes, `ChainForm` for chains; None means that only general loops
    apply. Results never depend on it.
    """

    graph: FactorGraph
    sizes: NDArray[np.int32]
    factors: tuple[TableFactors, ...]
    structure: ChainForm | None

    @cached_property
    def conditionals(self) -> Conditionals:
        """The full conditionals; laid out when they are first asked for, as exact backends do without."""
        return conditionals(self.sizes, self.factors)

    @cached_property
    def grid(self) -> GridForm | None:
        """The form of a grid of two labels whose pairs along one axis are all alike, looked for when first asked."""
        form = grid_form(self.sizes, self.factors)
        return None if isinstance(form, str) else form


# In order of preference: each takes (sizes, factors) and returns a form, or why there is none.
_RECOGNISERS = (chain_form,)


def compile_tables(graph: FactorGraph | TableGraph) -> TableGraph:
    """Lays a graph out for the loops; ValueError where it has domains or factors other than labels and tables."""
    if isinstance(graph, TableGraph):
        return graph
    if not isinstance(graph, FactorGraph):
        raise TypeError(f"expected a FactorGraph, such as herdner.ising() makes, not {type(graph).__name__}")
    if not isinstance(graph.domains, Labels):
        raise ValueError(f"table loops need variables with labels, not {type(graph.domains).__name__}")
    factors = tuple(group for group in graph.factors if isinstance(group, TableFactors))
    if len(factors) < len(graph.factors):
        other = next(group for group in graph.factors if not isinstance(group, TableFactors))
        raise ValueError(f"table loops need table factors, not {type(other).__name__}")
    structure = None
    for recognise in _RECOGNISERS:
        structure = recognise(graph.domains.sizes, factors)
        if not isinstance(structure, str):
            return TableGraph(graph, graph.domains.sizes, factors, structure)
    return TableGraph(graph, graph.domains.sizes, factors, None)
