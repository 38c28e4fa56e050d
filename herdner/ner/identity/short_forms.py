"""Labels of short forms: an earlier full name outweighs the context of a single word.

In "a firm called Mayfield Consulting ... why Mayfield had grown", the context of "Mayfield" fits a person, and two such
mentions support each other by their links. The full name decides: the last word of a person's full name is this person,
and the first word of an organisation's full name is this organisation. There are these exceptions, which are rare in
the development corpora: the document has a full name for the label of the short form as well, a title precedes the
short form, the organisation is a body of a person ("Kishida Cabinet"), or the short form is more certain than the full
name. The label LOC changes only if it is uncertain, and never to ORG, because organisations are often named after the
place in which they are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from herdner.ner.identity.forms import TITLES, bare_word
from herdner.text.document import Document
from herdner.text.entity import Entity

PERSON, ORGANISATION, PLACE = "PER", "ORG", "LOC"
MOST_CERTAIN_PLACE = 0.8  # places with a higher confidence keep their label
LEAST_FULL = 0.5  # confidence of a full name that changes a label
# A changed label is about as often right as its full name. All 28 changes in the development corpora are right; the
# factor is lower because most of them are in one document.
SHARE_RIGHT = 0.9
MIN_LETTERS = 3
BODIES = frozenset(
    "administration cabinet commission committee estate family foundation government inquiry ministry regime report"  # noqa: SIM905
    " team trial".split()
)


def relabel_short_forms(document: Document) -> Document:
    """Return the document with the label of the full name for each short form that the full name decides.

    Args:
        document: Tagged document with confidences. A document with malformed tags is returned unchanged.
    """
    spans, entities = document.spans or (), document.entities
    if document.source_tags is not None or len({span.label for span in spans}) < 2:
        return document
    full: defaultdict[str, dict[str, Entity]] = defaultdict(dict)  # by word and label, the first full name
    single: list[int] = []
    for i, span in enumerate(spans):
        if span.end - span.start == 1:
            single.append(i)
        elif span.label in (PERSON, ORGANISATION):
            word = document.tokens[span.end - 1 if span.label == PERSON else span.start].casefold()
            full[word].setdefault(span.label, entities[i])
    new: dict[int, Entity] = {}
    for i in single if full else ():
        names = full.get(document.tokens[spans[i].start].casefold())
        if names is not None and (entity := _relabelled(document, i, names)) is not None:
            new[i] = entity
    if not new:
        return document
    labels = [new[i].label if i in new else span.label for i, span in enumerate(spans)]
    return replace(
        document,
        spans=[span._replace(label=label) for span, label in zip(spans, labels, strict=True)],
        entities=tuple(new.get(i, entity) for i, entity in enumerate(entities)),
    )


def _relabelled(document: Document, i: int, names: dict[str, Entity]) -> Entity | None:
    """Return a short form with the label of its only full name, or None if its label does not change."""
    entity, start = document.entities[i], (document.spans or ())[i].start
    if entity.label in names or len(names) != 1 or len(entity.text) < MIN_LETTERS:
        return None
    ((label, name),) = names.items()
    own, sure = entity.confidence or 0.0, name.confidence or 0.0
    if name.start > entity.start or sure < max(own, LEAST_FULL):
        return None
    if label == PERSON:
        is_changed = entity.label == ORGANISATION or (entity.label == PLACE and own < MOST_CERTAIN_PLACE)
    else:
        before = bare_word(document.tokens[start - 1]).casefold() if start else ""
        is_body = name.text.split()[-1].casefold() in BODIES
        is_changed = entity.label == PERSON and before not in TITLES and not is_body
    return replace(entity, label=label, confidence=SHARE_RIGHT * sure) if is_changed else None
