"""Entities, and their export to data frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from herdner.base.extras import import_extra


@dataclass(frozen=True, slots=True)
class Entity:
    """Labelled name in the text of a document, with character offsets.

    Attributes:
        start: Offset of the first character.
        end: Offset behind the last character.
        label: Entity type, such as "PER".
        text: ``document.text[start:end]``.
        confidence: Probability in [0, 1] that span and label are right; None if unknown.
    """

    start: int
    end: int
    label: str
    text: str
    confidence: float | None = None


class WithEntities(Protocol):
    """Protocol for a text with entities, such as a `Document`."""

    @property
    def id(self) -> str | None:
        """Identifier of the document."""
        ...

    @property
    def text(self) -> str:
        """Text of the document."""
        ...

    @property
    def entities(self) -> tuple[Entity, ...]:
        """Entities of the document, in the order of the text."""
        ...


def to_frame(documents: Iterable[WithEntities], backend: str = "pandas") -> Any:
    """Return the entities of several documents as one data frame.

    Args:
        documents: Documents with entities.
        backend: "pandas", "polars", "pyarrow" or "modin".

    Returns:
        A data frame with one row for each entity, in the order of the documents. Its columns are "id" (of the
        document), "start", "end", "label", "text" and "confidence" (null if unknown).

    Raises:
        ImportError: narwhals (extra ``files``) or the backend is not installed.
        ValueError: The backend is unknown.
    """
    nw = import_extra("narwhals", "data frames need narwhals")
    if backend not in ("pandas", "polars", "pyarrow", "modin"):
        raise ValueError(f"backend must be one of pandas, polars, pyarrow and modin, got {backend!r}")
    types: dict[str, Any] = {
        "id": nw.String, "start": nw.Int64, "end": nw.Int64, "label": nw.String, "text": nw.String,
        "confidence": nw.Float64,
    }  # fmt: skip
    rows = [
        (document.id, e.start, e.end, e.label, e.text, e.confidence)
        for document in documents
        for e in document.entities
    ]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(types)}
    schema = {name: type() for name, type in types.items()}
    try:
        return nw.from_dict(columns, schema, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise ImportError(f"backend {backend!r} needs the package {error.name}: install it first") from None
