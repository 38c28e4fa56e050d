"""Classes by other names: every corpus has its own, and some are of no use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.tags import Scheme, split_tag

# Old name to new, None to drop the class; "*" speaks for the classes not named, which otherwise stay as they are.
Labels = Mapping[str, str | None]


def is_label(label: str) -> bool:
    """Whether it can name a class: words with single spaces between them, and nothing that opens a tag (`Open`)."""
    return bool(label) and " ".join(label.split()) == label and label.isprintable() and "|" not in label


def checked_label(label: object, what: str) -> str:
    """The label of what a file marks. ValueError where it can be none."""
    if not isinstance(label, str) or not is_label(label):
        raise ValueError(f"the label of {what} is {label!r}; expected words with single spaces between them")
    return label


def rename(label: str, labels: Labels | None) -> str | None:
    """The label's new name, None where it is dropped."""
    return label if labels is None else labels.get(label, labels.get("*", label))


def renamed(entities: Iterable[Entity], labels: Labels | None) -> list[Entity]:
    """The entities with their new labels; those whose class is dropped are left out."""
    pairs = ((entity, rename(entity.label, labels)) for entity in entities)
    return [Entity(e.start, e.end, label, e.text, e.confidence) for e, label in pairs if label is not None]


def relabel(document: Document, labels: Labels | None, scheme: Scheme = "iob2") -> Document:
    """The document with its classes renamed, those of what is open too; one without tags stays as it is.

    Its tags are written in the ``scheme``, but keep their prefixes where some are open: what a B or an I says beside
    an open tag, spans would not.
    """
    if document.tags is None:
        return document
    if document.open is None:
        named = ((span, rename(span.label, labels)) for span in document.spans or ())
        return document.with_spans([span._replace(label=label) for span, label in named if label is not None], scheme)
    pairs = [(prefix, label and rename(label, labels)) for prefix, label in map(split_tag, document.tags)]
    opened = replace(document, open=document.open.renamed(lambda label: rename(label, labels)))
    return opened.with_tags([f"{prefix}-{label}" if label else "O" for prefix, label in pairs])
