"""Predictions laid on the gold documents, whoever made them and however they cut the text into tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.text.document import Document, project
from herdner.text.entity import Entity
from herdner.text.labels import LabelNames, rename_labels
from herdner.text.tags import Scheme, detect_scheme, spans_from_tags

_SHOWN = 24  # characters of a difference


class Aligned(NamedTuple):
    """Predicted documents with the text, tokens and sentences of the gold ones, in their order."""

    documents: list[Document]
    n_retokenised: int  # documents whose own tokens were other ones
    n_widened: int  # entities that did not meet the gold tokens' borders and were widened to them
    n_dropped: int  # entities that touch no gold token, or only those of an earlier one


def align(
    gold: Sequence[Document],
    predicted: Iterable[Document],
    *,
    labels: LabelNames | None = None,
    name: str = "predicted",
) -> Aligned:
    """The predicted entities on the gold tokens, as entities (with their confidences) and without tags.

    The texts must be the same but for white space; the tokens need not be. Documents are matched by their ids where
    both sides have the same ones, each once, and else one after the other. Tags are read strictly in the scheme that
    they are found to have, as by `evaluate`. ``labels`` renames classes or drops them.

    Raises ValueError, with ``name`` and the document, where documents are missing, differ or are not annotated.
    """
    ordered = _matched(gold, [document for document in predicted if document.text.strip()], name)
    scheme = detect_scheme(tags for document in ordered if document.tags for tags in document.sentence_tags())
    laid: list[Document] = []
    n_retokenised = n_widened = n_dropped = 0
    for right, guess in zip(gold, ordered, strict=True):
        if guess.spans is None:
            raise ValueError(f"{name}: document {guess.id!r} has no annotation; give an annotated file")
        entities = rename_labels(guess.with_proposals(own_entities(guess, scheme)), labels).entities
        entities, lost = _moved(entities, guess, right, name)
        # Their numbers stand in for the labels, to find again the entity of each span.
        found = project([replace(entity, label=str(i)) for i, entity in enumerate(entities)], right)
        placed = (
            replace(place, label=entities[int(place.label)].label, confidence=entities[int(place.label)].confidence)
            for place in right.entities_from_spans(found.spans)
        )
        laid.append(right.without_annotation().with_proposals(placed))
        n_retokenised += bool(guess.n_tokens) and list(guess.tokens) != list(right.tokens)
        n_widened += found.n_widened
        n_dropped += found.n_dropped + lost
    return Aligned(laid, n_retokenised, n_widened, n_dropped)


def own_entities(document: Document, scheme: Scheme) -> Sequence[Entity]:
    """The entities that a document claims: those of its tags, read strictly, where its entities came from tags."""
    if document.tags is None or not document.n_tokens:
        return document.entities
    mended = document.entities_from_spans(spans_from_tags(document.tags, document.sentence_offsets))
    places = [_place(entity) for entity in mended]
    if [_place(entity) for entity in document.entities] != places or scheme == "iob1":
        return document.entities
    confidence = {_place(entity): entity.confidence for entity in document.entities}
    strict = document.entities_from_spans(spans_from_tags(document.tags, document.sentence_offsets, strict=scheme))
    return [replace(entity, confidence=confidence.get(_place(entity))) for entity in strict]


def _place(entity: Entity) -> tuple[int, int, str]:
    return entity.start, entity.end, entity.label


def _matched(gold: Sequence[Document], predicted: list[Document], name: str) -> list[Document]:
    ids = [document.id for document in gold]
    theirs = [document.id for document in predicted]
    if len(gold) == len(predicted):
        if ids != theirs and len(set(ids)) == len(ids) and set(ids) == set(theirs):
            place = dict(zip(theirs, predicted, strict=True))
            return [place[id] for id in ids]
        return predicted
    sizes = f"{name}: {len(predicted)} documents for {len(gold)} gold ones"
    if not set(ids) & set(theirs):
        raise ValueError(f"{sizes}; expected one for one")
    twice = [id for id, count in (Counter(theirs) - Counter(ids)).items() if id in ids and count]
    missing, more = Counter(ids) - Counter(theirs), set(theirs) - set(ids)
    reasons = [f"{twice[0]!r} is there more than once"] if twice else []
    reasons += [f"{next(iter(missing))!r} is missing"] if missing else []
    reasons += [f"{min(map(str, more))!r} is not among the gold ones"] if more else []
    raise ValueError(f"{sizes}; {' and '.join(reasons)}")


def _moved(entities: Sequence[Entity], guess: Document, right: Document, name: str) -> tuple[list[Entity], int]:
    """The entities at their places in the gold text, and how many hold nothing but white space."""
    if guess.text == right.text:
        return list(entities), 0
    theirs, ours = _visible(guess.text), _visible(right.text)
    _check_text(guess, right, theirs, ours, name)
    moved: list[Entity] = []
    lost = 0
    for entity in entities:
        first, stop = np.searchsorted(theirs, [entity.start, entity.end]).tolist()
        if first == stop:
            lost += 1
            continue
        start, end = int(ours[first]), int(ours[stop - 1]) + 1
        moved.append(replace(entity, start=start, end=end, text=right.text[start:end]))
    return moved, lost


def _visible(text: str) -> NDArray[np.int64]:
    """Where the characters stand that are no white space."""
    return np.flatnonzero([not character.isspace() for character in text])


def _check_text(
    guess: Document, right: Document, theirs: NDArray[np.int64], ours: NDArray[np.int64], name: str
) -> None:
    """ValueError that shows the first difference of the texts, white space apart."""
    a, b = ("".join(document.text.split()) for document in (guess, right))
    if a == b:
        return
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    shown: list[tuple[int, str]] = []
    for document, visible in ((guess, theirs), (right, ours)):
        start = int(visible[at]) if at < len(visible) else len(document.text)
        shown.append((start, document.text[start : start + _SHOWN]))
    (start, found), (place, expected) = shown
    token = int(np.searchsorted(right.token_ends, place, side="right")) + 1
    raise ValueError(
        f"{name}: document {guess.id!r} has another text than gold document {right.id!r}, "
        f"first at character {start}: {found!r} for {expected!r} (gold token {token}, character {place})"
    )
