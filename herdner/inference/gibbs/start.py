"""Start states of samplers, and the repair of states that -inf entries forbid."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext.ascent import Ascent
from herdner._ext.gibbs import Engine
from herdner.base.arrays import Int32s
from herdner.graph.chains import ChainForm
from herdner.graph.tables import TableGraph
from herdner.inference.backend import UnsupportedGraph
from herdner.inference.backends.viterbi import Viterbi

_SWEEPS = 500  # of a repair


def check_start(compiled: TableGraph, start: ArrayLike) -> NDArray[np.uint16]:
    """Return a start state, uint16[V]; ``ValueError`` unless it is one joint state of log-potential above -inf."""
    state = compiled.graph.domains.points(start)
    if np.ndim(start) != 1:
        raise ValueError(f"start must be one state of shape [{len(compiled.sizes)}], not {np.shape(start)}")
    x = np.ascontiguousarray(state[0], np.uint16)
    if Engine(compiled.factors).log_potential_of(x) == -np.inf:
        raise ValueError("start has log-potential -inf; pass an allowed state, such as the one of viterbi, or None")
    return x


def random_start(compiled: TableGraph, key: int) -> NDArray[np.uint16]:
    """Return a uniformly random joint state, repaired if -inf entries forbid it, uint16[V]."""
    rng = np.random.default_rng(key)
    x = (rng.random(len(compiled.sizes)) * compiled.sizes).astype(np.uint16)
    if Engine(compiled.factors).log_potential_of(x) > -np.inf:
        return x
    return repair(compiled, x.astype(np.int32), key, "the sampler").astype(np.uint16)


def repair(compiled: TableGraph, state: Int32s, key: int, backend: str) -> Int32s:
    """Return an allowed joint state near ``state``, or ``state`` itself if it is allowed.

    Variables with forbidden entries are set in turn to the state with the fewest of them; after ten sweeps ties are
    broken at random (min-conflicts, Minton et al. 1992). On chains the best state is the last resort. The same ``key``
    gives the same result. `UnsupportedGraph`, in the name of ``backend``: no allowed state was reached.
    `ImpossibleGraph`: a chain has none.
    """
    x = np.ascontiguousarray(state, np.int32).copy()
    loop = Ascent(compiled.conditionals, x)
    for sweep in range(_SWEEPS):
        at = 0
        while at < len(x):
            at = loop.repair(at, key, sweep)
        if not loop.moved:
            return x
    if compiled.find(ChainForm) is not None:
        return Viterbi().infer(compiled).state
    raise UnsupportedGraph(
        f"{backend} reached no joint state that the -inf entries allow, in {_SWEEPS} sweeps of repairs: use exact (for"
        " graphs of few joint states), or large finite penalties in place of some -inf entries"
    )
