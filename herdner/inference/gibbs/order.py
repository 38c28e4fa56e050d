"""The order in which a plan updates the variables of a graph."""

from __future__ import annotations

import numpy as np

from herdner.base.arrays import Int32s, Int64s
from herdner.base.checks import check_variables
from herdner.graph.conditionals import add_edges
from herdner.graph.order import checkerboard_colours, order_by_colour
from herdner.graph.tables import TableGraph
from herdner.inference.gibbs.plan import Plan


def sampling_order(plan: Plan, compiled: TableGraph) -> tuple[Int32s | None, Int64s]:
    """Return the variables that one sweep updates, in the order of the updates.

    Without herding weights, `herdner.graph.order.sweep_order` returns the same order for scans that are not random.
    Herding weights can make more variables dependent than the graph does, which changes the colours of a checkerboard.

    Args:
        plan: The plan.
        compiled: The graph.

    Returns:
        The variables in the order of their updates, int32[n], or None for the order 0, 1, ..; and int64[C + 1], the
        borders of the parts of the sweep. Threads can share the updates of one part.
    """
    n = len(compiled.sizes)
    if plan.scan.kind != "checkerboard":
        return plan.scan.order, np.array([0, n if plan.scan.order is None else len(plan.scan.order)])
    if plan.herds and plan.sharing is not None and plan.sharing.kind == "complete":
        return None, np.arange(n + 1)
    has_own_edges = plan.herds and plan.dummy_edges is not None
    return order_by_colour(checkerboard_colours(compiled, dependencies(plan, compiled) if has_own_edges else None))


def dependencies(plan: Plan, compiled: TableGraph) -> tuple[Int64s, Int32s]:
    """Return the variables on which each herded update depends.

    They are the Markov blanket of the updated variable and the variables joined to it by dummy edges.

    Args:
        plan: The plan.
        compiled: The graph.

    Returns:
        (starts int64[V + 1], members int32): variable i depends on ``members[starts[i]:starts[i + 1]]``.

    Raises:
        ValueError: A dummy edge names a variable that does not exist.
    """
    blankets = compiled.conditionals.blankets
    if plan.dummy_edges is None:
        return blankets
    edges = np.array(plan.dummy_edges, np.int32).reshape(-1, 2)
    check_variables(edges.ravel(), len(compiled.sizes), "dummy_edges name")
    return add_edges(blankets, edges)
