"""What tagged documents teach: the tags that each token may have, where they are annotated in whole or in part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from herdner.crf.likelihood import Borders
from herdner.crf.weights import MOST_TAGS
from herdner.inference.linear_chain import viterbi
from herdner.ner.training.chains import allowed_tags
from herdner.text.document import Document
from herdner.text.partial import PartialAnnotation, alternatives
from herdner.text.tags import (
    Scheme,
    Span,
    allowed_transitions,
    convert_tags,
    spans_from_tags,
    split_tag,
    tags_of_label,
)

_PREFIX_OF = {(True, False): "B", (False, False): "I", (False, True): "E", (True, True): "S"}
_BILOU = {"E": "L", "S": "U"}


@dataclass(frozen=True, eq=False)
class Supervision:
    """Of each document: ``gold``, its tags in the scheme, with O where they are open; ``allowed`` uint8[tokens, K],
    which of the ``labels`` its tokens may have; ``counted``, likewise, those for which their features have weights.

    Attributes:
        borders: What the scheme forbids; None where nothing is open: then no tags of ``gold`` are forbidden.
    """

    labels: tuple[str, ...]
    gold: list[list[str]]
    allowed: list[NDArray[np.uint8]]
    counted: list[NDArray[np.uint8]]
    borders: Borders | None

    def states(self, i: int, unary: NDArray[np.float64], transition: NDArray[np.float64],
               sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:  # fmt: skip
        """int32[tokens]: the tags of document i; where they are open, the best of what is allowed under a chain with
        these log-potentials, ``unary`` [tokens, K] and ``transition`` [K, K].
        """
        if self.borders is None or (self.allowed[i].sum(axis=1) == 1).all():
            return self.allowed[i].argmax(axis=1).astype(np.int32)
        unary = np.where(self.allowed[i] != 0, unary, -np.inf)
        unary[sentence_offsets[:-1]] += self.borders.start
        unary[sentence_offsets[1:] - 1] += self.borders.end
        return viterbi(unary, transition + self.borders.transition, sentence_offsets)[0].astype(np.int32)


def supervise(
    documents: Sequence[Document], tags: Iterable[Sequence[str]] | None, scheme: Scheme, known: Sequence[str] = ()
) -> tuple[list[Document], Supervision]:
    """The documents with ``tags`` (None: their own), and what they teach; the labels begin with the ``known`` ones.

    ValueError where documents and tags do not match, tags collide with what is open, or nothing is annotated.
    """
    documents = _with_tags(documents, tags)
    gold = [convert_tags(d.tags or (), None, scheme, d.sentence_offsets) for d in documents]
    seen = tuple(dict.fromkeys([*known, *(tag for sequence in gold for tag in sequence)]))
    if all(document.partial is None for document in documents):
        _check_names(gold)
        _check_number(seen)
        allowed = [allowed_tags(sequence, seen) for sequence in gold]
        return documents, Supervision(seen, gold, allowed, allowed, None)
    _check_open(documents, gold)
    classes = dict.fromkeys(split_tag(tag)[1] for tag in seen)
    places = [place for d in documents if d.partial for place in d.partial.unannotated]
    classes |= dict.fromkeys(label for place in places for _, label in alternatives(place.tags) or ())
    classes |= dict.fromkeys(label for d in documents if d.partial for label in d.partial.annotated_labels or ())
    every = (tag for label in classes if label for tag in tags_of_label(label, scheme))
    labels = tuple(dict.fromkeys([*seen, "O", *every]))
    _check_number(labels)
    pairs = [_allowed(d, sequence, labels, scheme) for d, sequence in zip(documents, gold, strict=True)]
    ok = allowed_transitions(labels, scheme)
    borders = Borders(*(np.where(table, 0.0, -np.inf) for table in (ok.follow, ok.start, ok.end)))
    return documents, Supervision(labels, gold, [a for a, _ in pairs], [c for _, c in pairs], borders)


def annotated_apart(corpora: Sequence[Sequence[Document]], known: Iterable[str] = ()) -> list[list[Document]]:
    """Corpora that annotate different classes: a class that a corpus never marks, and another one (or ``known``, the
    classes of a base) has, is open there. Documents that say themselves what they annotate stay as they are.
    """
    marked = [{span.label for d in corpus for span in d.spans or []} for corpus in corpora]
    classes = {label for labels in marked for label in labels} | set(known)
    found: list[list[Document]] = []
    for corpus, own in zip(corpora, marked, strict=True):
        apart = own != classes and bool(own)
        found.append([_annotating(d, tuple(sorted(own))) if apart else d for d in corpus])
    return found


def _annotating(document: Document, classes: tuple[str, ...]) -> Document:
    partial = document.partial or PartialAnnotation()
    return (
        document
        if partial.annotated_labels is not None
        else replace(document, partial=replace(partial, annotated_labels=classes))
    )


def _with_tags(documents: Sequence[Document], tags: Iterable[Sequence[str]] | None) -> list[Document]:
    given = [document.tags for document in documents] if tags is None else list(tags)
    if len(given) != len(documents):
        raise ValueError(f"{len(documents)} documents but {len(given)} tag sequences")
    found: list[Document] = []
    for i, (document, sequence) in enumerate(zip(documents, given, strict=True)):
        if sequence is None or len(sequence) != len(document.tokens):
            n = "no" if sequence is None else len(sequence)
            raise ValueError(f"document {document.id or i}: {len(document.tokens)} tokens but {n} tags to train on")
        found.append(document if tags is None else document.with_tags(sequence))
    return found


def _check_names(gold: Sequence[Sequence[str]]) -> None:
    if not any(tag != "O" for sequence in gold for tag in sequence):
        raise ValueError("nothing to train on: the documents hold no entity")


def _check_number(tags: Sequence[str]) -> None:
    if len(tags) > MOST_TAGS:
        n = len({split_tag(tag)[1] for tag in tags} - {None})
        raise ValueError(
            f"{n:,} classes make {len(tags):,} tags, more than the {MOST_TAGS} of a model; join some classes"
        )


def _check_open(documents: Sequence[Document], gold: Sequence[Sequence[str]]) -> None:
    """ValueError where spans lie on open tokens or are of classes that are not annotated, and where nothing is."""
    known = named = False
    for i, (document, sequence) in enumerate(zip(documents, gold, strict=True)):
        spans = spans_from_tags(sequence, document.sentence_offsets)
        starts, ends = document.token_starts, document.token_ends
        places = [(int(starts[span.start]), int(ends[span.end - 1]), span.label) for span in spans]
        if document.partial is not None and (fault := document.partial.conflict(places)):
            raise ValueError(f"document {document.id or i}: {fault}")
        open_ = document.unannotated_tokens()
        nothing = document.partial is not None and document.partial.annotated_labels == ()
        known |= (len(sequence) > len(open_) and not nothing) or any(tags != "?" for tags in open_.values())
        named |= bool(spans) or any(label for tags in open_.values() for _, label in alternatives(tags) or ())
    if not known:
        raise ValueError("nothing to train on: not a single token is annotated")
    if not named:
        _check_names(gold)


def _allowed(
    document: Document, gold: Sequence[str], labels: tuple[str, ...], scheme: Scheme
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """What the tokens may be, and with which tags they count: a token that no annotator has marked counts as O, though
    it may belong to a class that was not looked for.
    """
    allowed = allowed_tags(gold, labels)
    if document.partial is None:
        return allowed, allowed
    open_, number = document.unannotated_tokens(), {label: k for k, label in enumerate(labels)}
    own = document.tags or ()
    exact = any(split_tag(tag)[0] in "ES" for tag in own)
    spans = spans_from_tags(gold, document.sentence_offsets)
    loose = any(own[span.start].startswith("I") and span.start - 1 not in open_ for span in spans)  # as IOB1 writes
    for span in spans:
        for token, tags in _variants(span, document, open_, scheme, exact, loose).items():
            allowed[token] = 0
            allowed[token, [number[tag] for tag in tags]] = 1
    for token, tags in open_.items():
        found = alternatives(tags)
        may = labels if found is None else [tag for each in found for tag in _tags(*each, scheme, exact)]
        allowed[token] = 0
        allowed[token, [number[tag] for tag in may]] = 1
    counted = allowed
    if document.partial.annotated_labels is not None:
        annotated = {"", *document.partial.annotated_labels}
        others = np.array([split_tag(label)[1] not in annotated for label in labels])
        outside = np.array([tag == "O" and t not in open_ for t, tag in enumerate(gold)], np.bool_)
        counted, allowed = allowed, allowed | (outside[:, None] & others).astype(np.uint8)
    return allowed, counted


def _tags(prefix: str, label: str, scheme: Scheme, exact: bool) -> list[str]:
    """The tags of the scheme that a tag of a file may stand for: B may be a name's only token, I its last one, unless
    the file marks these (``exact``).
    """
    if prefix == "O":
        return ["O"]
    if not prefix:
        return tags_of_label(label, scheme)
    ends = {"B": (False, True), "I": (False, True), "E": (True,), "S": (True,)}[prefix]
    ends = (False,) if exact and prefix in "BI" else ends
    return list(dict.fromkeys(_tag(label, prefix in "BS", end, scheme) for end in ends))


def _tag(label: str, begins: bool, ends: bool, scheme: Scheme) -> str:
    """The tag of a token that begins a name, ends it, both or neither. IOB1: a B marks that a name touches the one
    before, which is not known here.
    """
    prefix = _PREFIX_OF[begins, ends]
    if scheme in ("iob1", "iob2"):
        prefix = "B" if begins and scheme == "iob2" else "I"
    return f"{_BILOU.get(prefix, prefix) if scheme == 'bilou' else prefix}-{label}"


def _variants(
    span: Span, document: Document, open_: dict[int, str], scheme: Scheme, exact: bool, loose: bool
) -> dict[int, list[str]]:
    """The tags of the first and the last token of a name that open tokens touch: it may begin earlier where its first
    tag is an I (and must, unless names begin so in the document: ``loose``), and end later where its last is a B or I.
    """
    first, last, label = span.start, span.end - 1, span.label
    tags, borders = document.tags or (), set(document.sentence_offsets.tolist())
    earlier = first - 1 in open_ and first not in borders and split_tag(tags[first])[0] in "IE"
    later = last + 1 in open_ and last + 1 not in borders and split_tag(tags[last])[0] in "BI"
    if not (earlier or later):
        return {}
    begins = ([False, True] if loose else [False]) if earlier else [True]
    ends = ([False] if exact else [False, True]) if later else [True]
    if first == last:
        return {first: [_tag(label, b, e, scheme) for b, e in product(begins, ends)]}
    return {
        first: [_tag(label, b, False, scheme) for b in begins],
        last: [_tag(label, False, e, scheme) for e in ends],
    }
