"""The order in which a plan updates the variables of a graph."""

from __future__ import annotations

import numpy as np

from herdner.base.arrays import Int32s, Int64s
from herdner.base.checks import check_variables
from herdner.graph.conditionals import joined
from herdner.graph.order import by_colour, checkerboard_colours
from herdner.graph.tables import TableGraph
from herdner.inference.gibbs.plan import Plan


def sampling_order(plan: Plan, compiled: TableGraph) -> tuple[Int32s | None, Int64s]:
    """The order int32[n] of a sweep of ``plan``, None for 0, 1, .., and where each part that threads can share begins.

    Where the plan herds, the keys of its weights may join more variables than the graph does: then a checkerboard has
    other colours. Where it draws at random, this is `sweep_order`.
    """
    n = len(compiled.sizes)
    if plan.scan.kind != "checkerboard":
        return plan.scan.order, np.array([0, n if plan.scan.order is None else len(plan.scan.order)])
    if plan.herds and plan.sharing is not None and plan.sharing.kind == "complete":
        return None, np.arange(n + 1)
    has_own_edges = plan.herds and plan.dummy_edges is not None
    return by_colour(checkerboard_colours(compiled, dependencies(plan, compiled) if has_own_edges else None))


def dependencies(plan: Plan, compiled: TableGraph) -> tuple[Int64s, Int32s]:
    """The variables on which a herded update of each variable depends (starts, members): its blanket, dummy edges."""
    blankets = compiled.conditionals.blankets
    if plan.dummy_edges is None:
        return blankets
    edges = np.array(plan.dummy_edges, np.int32).reshape(-1, 2)
    check_variables(edges.ravel(), len(compiled.sizes), "dummy_edges name")
    return joined(blankets, edges)
