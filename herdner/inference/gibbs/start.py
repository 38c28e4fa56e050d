"""Start states of samplers, and the repair of states that -inf entries forbid."""

from __future__ import annotations

import math
from contextlib import suppress
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext.ascent import Ascent
from herdner._ext.gibbs import Engine
from herdner.base.arrays import Floats, Int32s
from herdner.base.extras import install_advice
from herdner.graph.chains import ChainForm
from herdner.graph.tables import TableGraph
from herdner.inference.backend import ImpossibleGraph, UnsupportedGraph
from herdner.inference.backends.viterbi import Viterbi
from herdner.inference.elimination_order import reduce_tables
from herdner.inference.satisfiability import find_possible_state, has_solver

_SWEEPS = 500  # largest number of sweeps of a repair
_LEAST_SWEEPS = 10  # sweeps of a repair before a time limit can end it


def check_start(compiled: TableGraph, start: ArrayLike) -> NDArray[np.uint16]:
    """Check a start state, and convert it to the type of the compiled loops.

    Args:
        compiled: The graph.
        start: int[V], a joint state.

    Returns:
        uint16[V].

    Raises:
        ValueError: ``start`` is not a joint state of the graph, or -inf entries forbid it.
    """
    state = compiled.graph.domains.points(start)
    if np.ndim(start) != 1:
        raise ValueError(f"start must be one state of shape [{len(compiled.sizes)}], not {np.shape(start)}")
    x = np.ascontiguousarray(state[0], np.uint16)
    if Engine(compiled.factors).log_potential_of(x) == -np.inf:
        raise ValueError(
            "start has log-potential -inf; pass an allowed state, such as the best state of the backend 'viterbi', or"
            " None"
        )
    return x


def random_start(compiled: TableGraph, key: int) -> NDArray[np.uint16]:
    """Draw a joint state uniformly; change it to an allowed one if -inf entries forbid it.

    Args:
        compiled: The graph.
        key: Seed of the state and of its repair.

    Returns:
        uint16[V].

    Raises:
        UnsupportedGraph: The repair reached no allowed state.
        ImpossibleGraph: The graph is a set of chains, and -inf entries forbid every joint state.
    """
    rng = np.random.default_rng(key)
    x = (rng.random(len(compiled.sizes)) * compiled.sizes).astype(np.uint16)
    if Engine(compiled.factors).log_potential_of(x) > -np.inf:  # on large graphs faster than the same test in `repair`
        return x
    return repair(compiled, x.astype(np.int32), key, "the sampler").astype(np.uint16)


def probable_state(compiled: TableGraph, marginals: Floats, backend: str) -> Int32s:
    """Return the most probable state of each variable; repair this joint state if -inf entries forbid it.

    Args:
        compiled: The graph.
        marginals: float64[V, K].
        backend: Name of the backend in the error message.

    Returns:
        int32[V].

    Raises:
        UnsupportedGraph: The repair reached no allowed state.
        ImpossibleGraph: Entries of -inf forbid every joint state.
    """
    return repair(compiled, marginals.argmax(axis=1).astype(np.int32), 0, backend)


def repair(compiled: TableGraph, state: Int32s, key: int, backend: str) -> Int32s:
    """Return an allowed joint state near ``state``; a state that -inf entries allow is returned unchanged.

    If `resolve_conflicts` finds no allowed state on a set of chains, the result is the best state of the chains. On
    other graphs a solver for satisfiability searches for an allowed state, if the extra ``sat`` is installed.

    Args:
        compiled: The graph.
        state: int32[V], a joint state.
        key: Seed of the random ties; the same key gives the same result.
        backend: Name of the backend in the error message.

    Returns:
        int32[V].

    Raises:
        UnsupportedGraph: No allowed state was reached on a graph that is not a set of chains.
        ImpossibleGraph: The graph is a set of chains, and -inf entries forbid every joint state.
    """
    if compiled.graph.log_potential(state) != -np.inf:
        return state
    repaired = resolve_conflicts(compiled, state, key)
    if repaired is not None:
        return repaired
    if compiled.find(ChainForm) is not None:
        return Viterbi().infer(compiled).state
    with suppress(ImpossibleGraph):  # the solver's proof raises the same error as a search without a solver
        reduced = reduce_tables(compiled)
        possible = find_possible_state(reduced) if has_solver() else None
        if possible is not None:
            return reduced.original_states(possible[None])[0]
    solver = "" if has_solver() else f", or install a satisfiability solver: {install_advice('pysat')}"
    raise UnsupportedGraph(
        f"{backend} found no joint state that the -inf entries allow, in {_SWEEPS} sweeps over all variables. Replace"
        " some -inf entries by large finite penalties, or use the backend 'exact' (if the treewidth is small) or"
        f" 'tempered'{solver}"
    )


def resolve_conflicts(compiled: TableGraph, state: Int32s, key: int, until: float = math.inf) -> Int32s | None:
    """Search for an allowed joint state near ``state`` by at most 500 sweeps over all variables.

    Each variable with a factor at -inf is set to the state with the fewest such factors; after ten sweeps ties are
    broken at random (min-conflicts, Minton et al. 1992).

    Args:
        compiled: The graph.
        state: int32[V], a joint state.
        key: Seed of the random ties; the same key gives the same result.
        until: Reading of `time.perf_counter` at which the search ends without a result, after at least ten sweeps.

    Returns:
        int32[V]; None if no allowed state was reached.
    """
    loop = Ascent(compiled.conditionals.compiled, np.ascontiguousarray(state, np.int32))
    for sweep in range(_SWEEPS):
        if sweep >= _LEAST_SWEEPS and perf_counter() > until:
            return None
        at = 0
        while at < len(state):
            at = loop.repair(at, key, sweep)
        if not loop.moved:
            return loop.state
    return None
