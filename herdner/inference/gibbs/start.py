"""First states of samplers: given ones, checked, or random ones, moved to where no -inf entry forbids them."""

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

_SWEEPS = 500  # of repairs


def given_start(compiled: TableGraph, start: ArrayLike) -> NDArray[np.uint16]:
    """``start`` checked: a label for each variable, of log-potential above -inf."""
    state = compiled.graph.domains.points(start)
    if np.ndim(start) != 1:
        raise ValueError(f"start must be one state of shape [{len(compiled.sizes)}], not {np.shape(start)}")
    x = np.ascontiguousarray(state[0], np.uint16)
    if Engine(compiled.factors).log_potential_of(x) == -np.inf:
        raise ValueError(
            "start is forbidden by -inf entries; give a state of log-potential above -inf, such as viterbi's, or none"
        )
    return x


def random_start(compiled: TableGraph, key: int) -> NDArray[np.uint16]:
    """A state of log-potential above -inf; uniformly random where nothing is forbidden, else repaired from there."""
    rng = np.random.default_rng(key)
    x = (rng.random(len(compiled.sizes)) * compiled.sizes).astype(np.uint16)
    if Engine(compiled.factors).log_potential_of(x) > -np.inf:
        return x
    return repaired(compiled, x.astype(np.int32), key, "the sampler").astype(np.uint16)


def repaired(compiled: TableGraph, state: Int32s, key: int, who: str) -> Int32s:
    """``state`` itself where nothing forbids it, else a state near it that is allowed; the same for the same ``key``.

    Variables that meet forbidden entries go in turn to labels which meet fewest of them, ties broken at random after
    ten sweeps (min-conflicts, Minton et al. 1992). A chain falls back on its best state. UnsupportedGraph where
    no such state is found (``who`` was asked for it); ImpossibleGraph where a chain has none.
    """
    x = np.ascontiguousarray(state, np.int32).copy()
    loop = Ascent(compiled.conditionals, x)
    for sweep in range(_SWEEPS):
        at = 0
        while at < len(x):
            at = loop.repair(at, key, sweep)
        if not loop.moved:
            return x
    if isinstance(compiled.chain, ChainForm):
        return Viterbi().infer(compiled).state
    raise UnsupportedGraph(
        f"{who} found no state that the graph's -inf entries allow, in {_SWEEPS} sweeps of repairs: use exact (for"
        " graphs of few states), or large finite penalties in place of some -inf entries"
    )
