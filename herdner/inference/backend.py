"""The seam between graphs and the algorithms that work on them."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Protocol

import numpy as np

from herdner.graph.graph import FactorGraph
from herdner.graph.graph import ImpossibleGraph as ImpossibleGraph
from herdner.graph.tables import TableGraph
from herdner.inference.result import Result


class Backend(Protocol):
    """An inference algorithm with its options: a frozen dataclass whose fields are the options, all with defaults."""

    def infer(self, graph: FactorGraph | TableGraph, seed: int | np.random.Generator | None = None) -> Result:
        """Works on one graph. The same ``seed`` gives the same result; deterministic backends ignore it.

        Raises UnsupportedGraph where the algorithm does not fit, ImpossibleGraph where -inf entries forbid every state.
        """
        ...


def takes_start(backend: Backend) -> bool:
    """Whether ``infer`` takes ``start``, the state to begin with."""
    return _takes_start(type(backend))


@lru_cache
def _takes_start(kind: type[Backend]) -> bool:
    return "start" in inspect.signature(kind.infer).parameters


class UnsupportedGraph(ValueError):
    """A backend cannot handle a graph: the message names the factor in the way and the way out."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a run; ``result`` holds what was recorded until then."""

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(f"stopped after {result.n_updates} updates; what was recorded is in this exception's result")
