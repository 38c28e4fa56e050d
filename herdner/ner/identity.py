"""Identity of names: which mentions in a document belong to the same name."""

from __future__ import annotations

from dataclasses import replace

from herdner.text.document import Document


def with_names(document: Document) -> Document:
    """Return the document with a `name_id` for each entity.

    Entities with the same text and label get the same `name_id`. Names are numbered from 0 in the order of their first
    mentions.

    Args:
        document: Document with entities.

    Returns:
        The document, whose `Document.names` lists the names.
    """
    ids: dict[tuple[str, str], int] = {}
    entities = tuple(
        replace(entity, name_id=ids.setdefault((entity.text, entity.label), len(ids))) for entity in document.entities
    )
    return replace(document, entities=entities)
