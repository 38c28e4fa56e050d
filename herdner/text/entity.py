"""Entities, the names that they mention, and their export to data frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from herdner._ext.tags import with_name_ids
from herdner.base.extras import import_extra

if TYPE_CHECKING:
    from herdner.text.document import Document


@dataclass(frozen=True, slots=True)
class Entity:
    """Labelled name in the text of a document, with character offsets.

    Attributes:
        start: Offset of the first character.
        end: Offset behind the last character.
        label: Entity type, such as "PER".
        text: ``document.text[start:end]``.
        confidence: Probability in [0, 1] that span and label are right; None if unknown.
        name_id: Identifier of the name in its document, shared by all mentions of the name; None if unknown.
    """

    start: int
    end: int
    label: str
    text: str
    confidence: float | None = None
    name_id: int | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """Person, place, organisation or other entity that a document names, with all its mentions in the document.

    Attributes:
        id: The `name_id` of the mentions.
        label: Label with the largest sum of confidences among the mentions in the fullest form.
        text: Fullest form: the text of the mention with the most words; among equal numbers of words, the longest text,
            then the first.
        mentions: Indices of the mentions among the entities of the document, ascending.
        confidence: Mean confidence of the mentions, which is the expected share of correct mentions; None if a mention
            has no confidence.
    """

    id: int
    label: str
    text: str
    mentions: tuple[int, ...]
    confidence: float | None = None


def names_of(entities: Sequence[Entity]) -> tuple[Name, ...]:
    """Group entities by their `name_id`, and return one `Name` for each group.

    Args:
        entities: Entities of one document, in the order of the text. Entities without `name_id` belong to no name.

    Returns:
        The names, in the order of their first mentions.
    """
    mentions: dict[int, list[int]] = {}
    for index, entity in enumerate(entities):
        if entity.name_id is not None:
            mentions.setdefault(entity.name_id, []).append(index)
    return tuple(_name(id, indices, entities) for id, indices in mentions.items())


def _name(id: int, indices: Sequence[int], entities: Sequence[Entity]) -> Name:
    """Build the name whose mentions are the entities at ``indices``."""
    mentions = [entities[index] for index in indices]
    forms = dict.fromkeys(mention.text for mention in mentions)
    fullest = max(forms, key=lambda text: (len(text.split()), len(text)))
    weights: dict[str, float] = {}
    for mention in mentions:
        if mention.text == fullest:
            weights[mention.label] = weights.get(mention.label, 0.0) + (mention.confidence or 0.0)
    confidences = [mention.confidence for mention in mentions if mention.confidence is not None]
    confidence = sum(confidences) / len(mentions) if len(confidences) == len(mentions) else None
    return Name(id, max(weights, key=weights.__getitem__), " ".join(fullest.split()), tuple(indices), confidence)


def with_numbered_names(entities: Sequence[Entity], names: Sequence[object]) -> list[Entity]:
    """Set the `name_id` of each entity to the number of its name; names are numbered in the order of the text.

    Args:
        entities: M entities.
        names: [M], key of the name of each entity. An entity whose key is None becomes the only mention of
            a name.

    Returns:
        The M entities with their `name_id`; the entities unchanged if no name is known.
    """
    if not any(name is not None for name in names):
        return list(entities)
    keys = [("span", i) if name is None else ("name", name) for i, name in enumerate(names)]
    order = sorted(range(len(entities)), key=lambda i: (entities[i].start, entities[i].end))
    ids = {key: id for id, key in enumerate(dict.fromkeys(keys[i] for i in order))}
    return list(with_name_ids(tuple(entities), [ids[key] for key in keys]))


def join_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Group the keys that ``pairs`` connects directly or indirectly; map each key to one representative of its group.

    Args:
        pairs: Pairs of keys that belong together.

    Returns:
        The representative of each key.
    """
    parents: dict[str, str] = {}

    def root(key: str) -> str:
        while (parent := parents.setdefault(key, key)) != key:
            parents[key] = key = parents[parent]
        return key

    for a, b in pairs:
        parents[root(b)] = root(a)
    return {key: root(key) for key in list(parents)}


def to_frame(documents: Iterable[Document], backend: str = "pandas") -> Any:
    """Return the entities of several documents as one data frame.

    Args:
        documents: Documents with entities.
        backend: "pandas", "polars", "pyarrow" or "modin".

    Returns:
        A data frame with one row for each entity, in the order of the documents. Its columns are "id" (of the
        document), "start", "end", "label", "text", "confidence" and "name_id" (null if unknown).

    Raises:
        ImportError: narwhals (extra ``files``) or the backend is not installed.
        ValueError: The backend is unknown.
    """
    nw = import_extra("narwhals", "data frames need narwhals")
    if backend not in ("pandas", "polars", "pyarrow", "modin"):
        raise ValueError(f"`backend` must be one of pandas, polars, pyarrow and modin, got {backend!r}")
    types: dict[str, Any] = {
        "id": nw.String, "start": nw.Int64, "end": nw.Int64, "label": nw.String, "text": nw.String,
        "confidence": nw.Float64, "name_id": nw.Int64,
    }  # fmt: skip
    is_pandas = backend in ("pandas", "modin")
    types |= {"name_id": nw.Float64} if is_pandas else {}  # NumPy's integers have no missing value
    rows = [
        (document.id, e.start, e.end, e.label, e.text, e.confidence, e.name_id)
        for document in documents
        for e in document.entities
    ]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(types)}
    schema = {name: type() for name, type in types.items()}
    try:
        frame = nw.from_dict(columns, schema, backend=backend).to_native()
        return frame.astype({"name_id": "Int64"}) if is_pandas else frame
    except ModuleNotFoundError as error:
        raise ImportError(f"backend {backend!r} needs the package {error.name}: install it first") from None
