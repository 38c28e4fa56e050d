"""The seam between graphs and the algorithms that work on them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from herdner.base.seeds import Seed
from herdner.graph.graph import ImpossibleGraph as ImpossibleGraph
from herdner.graph.tables import Graph
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend makes of the arguments of ``infer``.

    Attributes:
        start: "state": it begins at a state, and draws one where none is given; "option": likewise, but one of its own
            options says where it begins if no state is given; "nothing": it begins at no state, and ignores one.
        record: The fields of `herdner.Record` that it can be asked for, beside ``best``.
        linked: Whether it takes the graphs of whole documents whose mentions are linked, or only chains and small
            graphs.
    """

    start: Literal["state", "option", "nothing"] = "nothing"
    record: frozenset[str] = frozenset()
    linked: bool = True

    def check(self, who: str, record: Record | None) -> None:
        """UnsupportedRecord where ``record`` asks for more than the backend ``who`` can give."""
        if record is None:
            return
        wanted = {each.name for each in fields(record) if getattr(record, each.name)} - {"best"}
        missing = [name.replace("_", "-") for name in sorted(wanted - self.record)]
        if missing:
            raise UnsupportedRecord(f"{who} gives no {', '.join(missing)}; leave that out of record, or use gibbs")


SAMPLER_CAPABILITIES = Capabilities("state", frozenset(each.name for each in fields(Record)))
"""What samplers take: a first state, and anything to be recorded."""


@runtime_checkable
class Backend(Protocol):
    """An inference algorithm with its options: a frozen dataclass whose fields are the options, all with defaults."""

    capabilities: ClassVar[Capabilities]

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Works on one graph. The same ``seed`` gives the same result; deterministic backends ignore it.

        Ctrl-C in what sweeps raises `Interrupted`, a KeyboardInterrupt whose ``result`` is what was reached until then.

        Args:
            start: int[V], the state to begin with, ignored where ``capabilities.start`` is "nothing".
            record: What the result is to hold at least, in place of what the options say.

        Raises:
            UnsupportedGraph: The algorithm does not fit the graph.
            UnsupportedRecord: It cannot give what ``record`` asks for.
            ImpossibleGraph: -inf entries forbid every state.
        """
        ...


class UnsupportedGraph(ValueError):
    """A backend cannot handle a graph: the message names the factor in the way and the way out."""


class UnsupportedRecord(ValueError):
    """A backend cannot give what it was asked to record: the message names it and the way out."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a run; ``result`` holds what was recorded until then."""

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(f"stopped after {result.n_updates} updates; what was recorded is in this exception's result")
