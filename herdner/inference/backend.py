"""The protocol of inference algorithms, their capabilities and their errors."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from herdner.base.seeds import Seed
from herdner.graph.graph import ImpossibleGraph as ImpossibleGraph
from herdner.graph.graph import UnsupportedGraph as UnsupportedGraph
from herdner.graph.tables import Graph
from herdner.inference.record import Record
from herdner.inference.result import Result


class UnsupportedRecord(ValueError):
    """Error: a backend cannot record a requested result.

    The message names the result and an alternative.
    """


class Interrupted(KeyboardInterrupt):
    """Error: Ctrl-C stopped a run. ``result`` is the result of the updates before the interruption.

    Attributes:
        result: The result of the updates before the interruption.
    """

    def __init__(self, result: Result) -> None:
        """Store ``result``, the result of the updates before the interruption.

        Args:
            result: The result of the updates before the interruption.
        """
        self.result = result
        super().__init__(
            f"stopped after {result.n_updates} updates by Ctrl-C; the attribute `result` of this error holds"
            " the results so far"
        )


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Features that a backend supports: start states, results to record, and documents with links.

    Attributes:
        start: "state" if the backend begins at a joint state and draws one if none is passed; "option" if one of its
            options chooses the start instead; "nothing" if it ignores ``start``.
        record: Fields of `herdner.Record` that it can record besides ``best``.
        linked: True if it supports documents with links, false if only chains or small graphs.
    """

    start: Literal["state", "option", "nothing"] = "nothing"
    record: frozenset[str] = frozenset()
    linked: bool = True

    def require(self, record: Record | None, backend: str) -> None:
        """Raise `UnsupportedRecord` if ``record`` asks for results that the backend cannot record.

        Args:
            record: The requested record, or None.
            backend: Name of the backend in the error message.

        Raises:
            UnsupportedRecord: The backend cannot record a requested result.
        """
        if record is None:
            return
        requested = {each.name for each in fields(record) if getattr(record, each.name)} - {"best"}
        missing = [name.replace("_", "-") for name in sorted(requested - self.record)]
        if missing:
            raise UnsupportedRecord(
                f"the backend {backend} cannot record {', '.join(missing)}; change `record`, or use the backend 'gibbs'"
            )


SAMPLER_CAPABILITIES = Capabilities("state", frozenset(each.name for each in fields(Record)))
"""Capabilities of samplers: a start state and all records."""


@runtime_checkable
class Backend(Protocol):
    """Inference algorithm with its options.

    Each backend is a frozen dataclass in which every option has a default.
    """

    capabilities: ClassVar[Capabilities]

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Run the algorithm on one graph and return its result.

        Args:
            graph: The graph.
            seed: Source of randomness; the same seed gives the same result. Deterministic backends ignore it.
            start: int[V], the joint state to begin with; ignored if ``capabilities.start`` is "nothing".
            record: Results to record, in place of the backend's option ``record``; None uses this option.

        Returns:
            The result.

        Raises:
            UnsupportedGraph: The algorithm cannot handle the graph.
            UnsupportedRecord: The algorithm cannot record a field of ``record``.
            ImpossibleGraph: Entries of -inf forbid every joint state.
            Interrupted: Ctrl-C stopped the sweeps; the error holds the result so far.
        """
        ...
