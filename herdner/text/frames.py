"""Entities of documents as a data frame, of pandas, Polars or whatever else narwhals knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from herdner.text.entity import WithEntities


def to_frame(documents: Iterable[WithEntities], backend: str = "pandas") -> Any:
    """A data frame with a row for each entity: id of the document, start, end, label, text, confidence (null where it
    is unknown), in the order of the documents.

    Args:
        backend: "pandas", "polars", "pyarrow" or "modin".

    Raises:
        ImportError: narwhals (extra ``frames``) or the backend is not installed.
        ValueError: The backend is unknown.
    """
    try:
        import narwhals as nw
    except ImportError:
        raise ImportError("data frames need narwhals: pip install 'herdner[frames]'") from None
    if backend not in ("pandas", "polars", "pyarrow", "modin"):
        raise ValueError(f"backend {backend!r}: expected one of pandas, polars, pyarrow, modin")
    rows = [(document.id, entity) for document in documents for entity in document.entities]
    columns = {
        "id": [id for id, _ in rows],
        "start": [entity.start for _, entity in rows],
        "end": [entity.end for _, entity in rows],
        "label": [entity.label for _, entity in rows],
        "text": [entity.text for _, entity in rows],
        "confidence": [entity.confidence for _, entity in rows],
    }
    kinds = {"id": nw.String, "label": nw.String, "text": nw.String, "confidence": nw.Float64}
    schema = {name: kinds.get(name, nw.Int64)() for name in columns}
    try:
        return nw.from_dict(columns, schema, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise ImportError(f"backend {backend!r} needs the package {error.name}: install it first") from None
