"""Search for a joint state that all -inf entries allow, by the solver of the library python-sat (extra ``sat``)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from herdner.base.arrays import Floats, Int32s
from herdner.base.extras import import_extra
from herdner.base.memory import check_memory
from herdner.graph.graph import ImpossibleGraph
from herdner.graph.tables import TableGraph
from herdner.inference.elimination_order import ReducedGraph, single_factors

_CONFLICTS = 2_000_000  # largest number of conflicts of a search, which takes about a minute
_FEW_CONFLICTS = 20_000  # largest number of conflicts of one step of the search for a contradiction
_MOST_STEPS = 500  # largest number of factors and observations of a contradiction that are left out one by one


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
    first = _first_numbers(reduced.sizes)
    with _solver(reduced.sizes, reduced.scopes, reduced.tables) as solver:
        solver.conf_budget(_CONFLICTS)
        is_possible = solver.solve_limited()
        if is_possible is None:
            return None
        if not is_possible:
            raise ImpossibleGraph("-inf entries forbid every joint state; allow at least one joint state")
        chosen = {number for number in solver.get_model() if number > 0}
    state = [next(x for x in range(size) if first[v] + x in chosen) for v, size in enumerate(reduced.sizes)]
    return np.array(state, np.int32)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Observations and factors that together exclude every joint state: the smallest such set that was found.

    Attributes:
        variables: The observed variables.
        scopes: The variables of each factor.
    """

    variables: list[int]
    scopes: list[tuple[int, ...]]


def find_contradiction(compiled: TableGraph, evidence: Mapping[int, int]) -> Contradiction | None:
    """Search for a small set of observations and factors that exclude every joint state.

    Args:
        compiled: The graph without evidence.
        evidence: The state of each observed variable.

    Returns:
        The contradiction; None if a joint state is possible or the search ended without an answer.

    Raises:
        MissingExtra: The library python-sat is not installed.
        NotEnoughMemory: The clauses do not fit into memory.
    """
    sizes: list[int] = compiled.sizes.tolist()
    first = _first_numbers(sizes)
    scopes, tables = single_factors(compiled.factors)
    restricting = [f for f, table in enumerate(tables) if np.isneginf(table).any()]
    empty = next((f for f in restricting if np.isneginf(tables[f]).all()), None)
    if empty is not None:
        return Contradiction([], [scopes[empty]])
    switches = {first[-1] + place: f for place, f in enumerate(restricting)}  # Boolean variables that enable a factor
    observed = {first[v] + x: v for v, x in evidence.items()}
    chosen = [scopes[f] for f in restricting], [tables[f] for f in restricting]
    with _solver(sizes, *chosen, first_switch=first[-1]) as solver:

        def core(assumed: list[int]) -> list[int] | None:
            solver.conf_budget(_FEW_CONFLICTS)
            return solver.get_core() or [] if solver.solve_limited(assumptions=assumed) is False else None

        needed = core([*switches, *observed])
        if needed is None:
            return None
        for number in needed[:_MOST_STEPS]:
            smaller = core([other for other in needed if other != number]) if number in needed else None
            needed = needed if smaller is None else smaller
    return Contradiction(
        sorted(observed[number] for number in needed if number in observed),
        sorted(scopes[switches[number]] for number in needed if number in switches),
    )


def _first_numbers(sizes: Sequence[int]) -> list[int]:
    """Return, for each variable, the number of the Boolean variable of its state 0; append the first unused number."""
    return np.concatenate([[1], 1 + np.cumsum(sizes, dtype=np.int64)]).tolist()  # numbers begin with 1


def _solver(
    sizes: Sequence[int], scopes: Sequence[tuple[int, ...]], tables: Sequence[Floats], first_switch: int | None = None
) -> Any:
    """Return a SAT solver with the clauses that describe the states and the -inf entries of a graph.

    Args:
        sizes: Number of states of each variable.
        scopes: Variables of each factor.
        tables: Log-potentials of each factor.
        first_switch: Number of the Boolean variable that enables the first factor; further factors have the numbers
            that follow. None enables all factors.

    Raises:
        MissingExtra: The library python-sat is not installed.
        NotEnoughMemory: The clauses do not fit into memory.
    """
    solvers = import_extra("pysat.solvers", "the search for a possible state needs python-sat")
    n_clauses = sum(int(np.isneginf(table).sum()) for table in tables) + sum(size * size for size in sizes)
    check_memory(300.0 * n_clauses, f"a search with {n_clauses:,} clauses", "pass a start state")
    first = _first_numbers(sizes)
    solver = solvers.Solver(name="glucose4")
    for v, size in enumerate(sizes):
        numbers = range(first[v], first[v] + size)
        solver.add_clause(list(numbers))
        for pair in itertools.combinations(numbers, 2):
            solver.add_clause([-number for number in pair])
    for f, (scope, table) in enumerate(zip(scopes, tables, strict=True)):
        switch = [] if first_switch is None else [-(first_switch + f)]
        for cell in np.argwhere(np.isneginf(table)).tolist():
            solver.add_clause(switch + [-(first[v] + x) for v, x in zip(scope, cell, strict=True)])
    return solver
