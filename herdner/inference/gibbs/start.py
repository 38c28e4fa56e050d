"""First states of samplers: given ones, checked, or random ones, moved to where no -inf entry forbids them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import gibbs as loops
from herdner.graph.tables import TableGraph
from herdner.inference.gibbs.repair import repaired


def given_start(compiled: TableGraph, start: ArrayLike) -> NDArray[np.uint16]:
    """``start`` checked: a label for each variable, of log-potential above -inf."""
    state = compiled.graph.domains.points(start)
    if np.ndim(start) != 1:
        raise ValueError(f"start must be one state of shape [{len(compiled.sizes)}], not {np.shape(start)}")
    x = np.ascontiguousarray(state[0], np.uint16)
    if loops.log_potential(compiled.factors, x) == -np.inf:
        raise ValueError(
            "start is forbidden by -inf entries; give a state of log-potential above -inf, such as viterbi's, or none"
        )
    return x


def random_start(compiled: TableGraph, key: int) -> NDArray[np.uint16]:
    """A state of log-potential above -inf; uniformly random where nothing is forbidden, else repaired from there."""
    rng = np.random.default_rng(key)
    x = (rng.random(len(compiled.sizes)) * compiled.sizes).astype(np.uint16)
    if loops.log_potential(compiled.factors, x) > -np.inf:
        return x
    return repaired(compiled, x.astype(np.int32), key, "the sampler").astype(np.uint16)
