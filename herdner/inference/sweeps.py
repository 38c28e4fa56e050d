"""What the backends that sweep over the variables share."""

from __future__ import annotations

import math

from herdner.graph.tables import TableGraph
from herdner.inference.backend import ImpossibleGraph


def check_options(*, n_sweeps: int, tolerance: float = 0.0, damping: float = 1.0) -> None:
    """ValueError, in one line, for options that make no sense."""
    if n_sweeps < 1:
        raise ValueError(f"n_sweeps must be at least 1, not {n_sweeps}")
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"tolerance must be a number of at least 0, not {tolerance}")
    if not 0 < damping <= 1:
        raise ValueError(f"damping must be above 0 and at most 1 (undamped), not {damping}")


def constant(compiled: TableGraph) -> float:
    """The factors of no variables added up; ImpossibleGraph where they forbid everything."""
    total = sum(float((g.scale * g.tables[g.table_of_factor]).sum()) for g in compiled.factors if g.arity == 0)
    if total == -math.inf:
        raise ImpossibleGraph("a factor of no variables is -inf, so every state is forbidden; observe other labels")
    return total
