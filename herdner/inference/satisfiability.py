"""Search for a joint state that all -inf entries allow, by the solver of the library python-sat (extra ``sat``)."""

from __future__ import annotations

import itertools
from importlib.util import find_spec

import numpy as np

from herdner.base.arrays import Int32s
from herdner.base.extras import import_extra
from herdner.base.memory import check_memory
from herdner.graph.graph import ImpossibleGraph
from herdner.inference.elimination_order import ReducedGraph

_CONFLICTS = 2_000_000  # largest number of conflicts of a search, which takes about a minute


def has_solver() -> bool:
    """Return True if the library python-sat is installed."""
    return find_spec("pysat") is not None


def find_possible_state(reduced: ReducedGraph) -> Int32s | None:
    """Search for a joint state with a log-potential above -inf by a solver for Boolean satisfiability (SAT).

    Each state of each variable is a Boolean variable. Clauses state that each variable has exactly one state, and that
    no entry of -inf is selected.

    Args:
        reduced: The graph.

    Returns:
        int32[n], a joint state of the reduced graph; None if the search ended without an answer.

    Raises:
        MissingExtra: The library python-sat is not installed.
        NotEnoughMemory: The clauses do not fit into memory.
        ImpossibleGraph: The solver proved that -inf entries forbid every joint state.
    """
    solvers = import_extra("pysat.solvers", "the search for a possible state needs python-sat")
    sizes = reduced.sizes
    n_clauses = sum(int(np.isneginf(table).sum()) for table in reduced.tables) + sum(size * size for size in sizes)
    check_memory(300.0 * n_clauses, f"a search with {n_clauses:,} clauses", "pass a start state")
    first = np.concatenate([[1], 1 + np.cumsum(sizes)]).tolist()  # Boolean variables have numbers from 1 on
    with solvers.Solver(name="glucose4") as solver:
        for v, size in enumerate(sizes):
            numbers = range(first[v], first[v] + size)
            solver.add_clause(list(numbers))
            for pair in itertools.combinations(numbers, 2):
                solver.add_clause([-number for number in pair])
        for scope, table in zip(reduced.scopes, reduced.tables, strict=True):
            for cell in np.argwhere(np.isneginf(table)).tolist():
                solver.add_clause([-(first[v] + x) for v, x in zip(scope, cell, strict=True)])
        solver.conf_budget(_CONFLICTS)
        is_possible = solver.solve_limited()
        if is_possible is None:
            return None
        if not is_possible:
            raise ImpossibleGraph("-inf entries forbid every joint state; allow at least one joint state")
        chosen = {number for number in solver.get_model() if number > 0}
    state = [next(x for x in range(size) if first[v] + x in chosen) for v, size in enumerate(sizes)]
    return np.array(state, np.int32)
