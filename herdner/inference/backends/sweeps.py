"""Checks of options and memory that the iterative backends share."""

from __future__ import annotations

import math

from herdner.base.checks import check_integer
from herdner.base.memory import check_memory
from herdner.graph.tables import TableGraph


def check_options(*, tolerance: float = 0.0, damping: float = 1.0, **counts: int) -> None:
    """Raise ``ValueError`` if the tolerance, the damping or one of the counts is out of range.

    Args:
        tolerance: Must be a finite number of at least 0.
        damping: Must be above 0 and at most 1.
        **counts: Other options by name, each of which must be an integer of at least 1.

    Raises:
        ValueError: The tolerance, the damping or a count is out of range.
    """
    for name, value in counts.items():
        check_integer(value, name)
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"tolerance must be a number of at least 0, not {tolerance}")
    if not 0 < damping <= 1:
        raise ValueError(f"damping must be above 0 and at most 1 (undamped), not {damping}")


def check_seconds(seconds: float | None) -> None:
    """Raise ``ValueError`` unless a time limit is a finite positive number or None.

    Args:
        seconds: The limit in seconds.

    Raises:
        ValueError: The limit is 0, negative, infinite or NaN.
    """
    if seconds is not None and not 0 < seconds < math.inf:
        raise ValueError(f"seconds must be a finite positive number or None, got {seconds!r}")


def check_message_memory(compiled: TableGraph, backend: str, per_state: int, per_message: int) -> None:
    """Raise `NotEnoughMemory` unless the memory for all messages of a backend can be allocated.

    Args:
        compiled: The graph.
        backend: Name of the backend in the error message.
        per_state: Number of doubles for each state of each variable.
        per_message: Number of doubles for each entry of a message between a factor and one of its variables.
    """
    n_ends = sum(group.arity * len(group) for group in compiled.factors if group.arity > 1)
    n, n_states = len(compiled.sizes), compiled.n_states
    check_memory(
        8.0 * n_states * (per_state * n + per_message * n_ends),
        f"{backend} on {n:,} variables of {n_states} states",
        "use gibbs, which needs the least memory, or a smaller graph",
    )
