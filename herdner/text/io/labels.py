"""Classes by other names: every corpus has its own, and some are of no use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.tags import Scheme, Span, spans_from_tags, tags_from_spans

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


def relabel(document: Document, labels: Labels | None, scheme: Scheme) -> Document:
    """The tags with renamed classes, in another scheme; a document without tags stays as it is."""
    if document.tags is None:
        return document
    if document.open is not None:
        document = replace(document, open=document.open.renamed(lambda label: rename(label, labels)))
    found = spans_from_tags(document.tags or (), document.sentence_offsets)
    named = ((span, rename(span.label, labels)) for span in found)
    spans = [Span(span.start, span.end, label) for span, label in named if label is not None]
    return document.with_tags(tags_from_spans(spans, document.n_tokens, scheme, document.sentence_offsets))
