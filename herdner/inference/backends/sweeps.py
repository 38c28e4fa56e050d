"""What the backends that sweep over the variables share."""

from __future__ import annotations

import math

from herdner.base.checks import check_integer
from herdner.base.memory import check_memory
from herdner.graph import chains
from herdner.graph.tables import TableGraph
from herdner.inference.backend import ImpossibleGraph


def check_options(*, tolerance: float = 0.0, damping: float = 1.0, **counts: int) -> None:
    """ValueError, in one line, for options that make no sense."""
    for name, value in counts.items():
        check_integer(value, name)
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"tolerance must be a number of at least 0, not {tolerance}")
    if not 0 < damping <= 1:
        raise ValueError(f"damping must be above 0 and at most 1 (undamped), not {damping}")


def constant(compiled: TableGraph) -> float:
    """The factors of no variables added up; ImpossibleGraph where they forbid everything."""
    total = chains.constant(compiled.factors)
    check_possible(total)
    return total


def check_possible(constant: float) -> None:
    """ImpossibleGraph where the factors of no variables forbid everything."""
    if constant == -math.inf:
        raise ImpossibleGraph("a factor of no variables is -inf, so every state is forbidden; observe other labels")


def check_room(compiled: TableGraph, backend: str, per_label: int, per_message: int) -> None:
    """NotEnoughMemory where there is none for so many doubles for each label of a variable, and of each message."""
    n_ends = sum(group.arity * len(group) for group in compiled.factors if group.arity > 1)
    n, n_states = len(compiled.sizes), compiled.n_states
    check_memory(
        8.0 * n_states * (per_label * n + per_message * n_ends),
        f"{backend} on {n:,} variables of {n_states} labels",
        "use gibbs, which takes least, or a smaller graph",
    )
