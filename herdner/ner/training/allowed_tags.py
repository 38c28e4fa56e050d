"""Tags that the tokens of fully or partially annotated documents may have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from herdner.text.document import Document
from herdner.text.partial import PartialAnnotation, alternatives
from herdner.text.tags import Scheme, Span, spans_from_tags, split_tag, tags_of_label

_PREFIX_OF = {(True, False): "B", (False, False): "I", (False, True): "E", (True, True): "S"}
_BILOU = {"E": "L", "S": "U"}


def allowed_tags(sequence: Sequence[str], tags: Sequence[str]) -> NDArray[np.uint8]:
    """Return the one-hot encoding of a tag sequence, uint8[tokens, tags].

    Args:
        sequence: Tag of each token.
        tags: The K tags of the model.

    Returns:
        uint8[tokens, K], 1 for a token's own tag.
    """
    index = {tag: k for k, tag in enumerate(tags)}
    allowed = np.zeros((len(sequence), len(tags)), np.uint8)
    allowed[np.arange(len(sequence)), [index[tag] for tag in sequence]] = 1
    return allowed


def allowed_tags_of_partial(
    document: Document, gold: Sequence[str], tags: Sequence[str], scheme: Scheme
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return two masks [tokens, tags] of a partial annotation: allowed tags, and tags that count for features.

    A feature gets a weight for each tag with which it is counted often enough (`ChainData.of`). The two arrays differ
    for tokens outside all entities: only the tag O is counted for them, but tags of labels that were not annotated are
    allowed too.

    Args:
        document: Annotated document.
        gold: Tags of the document in ``scheme``; O for undecided tokens.
        tags: The K tags of the model.
        scheme: Tag scheme of the model.

    Returns:
        Two arrays, uint8[tokens, K], with 1 for allowed tags and for counted tags.
    """
    allowed = allowed_tags(gold, tags)
    if document.partial is None:
        return allowed, allowed
    unannotated, index = document.unannotated_tokens(), {tag: k for k, tag in enumerate(tags)}
    own_tags = document.tags or ()
    marks_ends = any(split_tag(tag)[0] in "ES" for tag in own_tags)
    spans = spans_from_tags(gold, document.sentence_offsets)
    # In IOB1, entities begin with I.
    begins_with_i = any(own_tags[span.start].startswith("I") and span.start - 1 not in unannotated for span in spans)
    for span in spans:
        for token, choices in _boundary_tags(span, document, unannotated, scheme, marks_ends, begins_with_i).items():
            allowed[token] = 0
            allowed[token, [index[tag] for tag in choices]] = 1
    for token, text in unannotated.items():
        parsed = alternatives(text)
        choices = tags if parsed is None else [tag for each in parsed for tag in _tags_of(*each, scheme, marks_ends)]
        allowed[token] = 0
        allowed[token, [index[tag] for tag in choices]] = 1
    if document.partial.annotated_labels is None:
        return allowed, allowed
    annotated = {"", *document.partial.annotated_labels}
    is_other = np.array([split_tag(tag)[1] not in annotated for tag in tags])
    is_outside = np.array([tag == "O" and t not in unannotated for t, tag in enumerate(gold)], np.bool_)
    return allowed | (is_outside[:, None] & is_other).astype(np.uint8), allowed


def mark_unannotated_labels(
    corpora: Sequence[Sequence[Document]], base_labels: Iterable[str] = ()
) -> list[list[Document]]:
    """Store in each document the labels that its corpus annotates, if the corpora annotate different labels.

    A label that occurs in another corpus or in the base model, but never in this corpus, is treated as not
    annotated in this corpus. Documents that already list their annotated labels stay unchanged.

    Args:
        corpora: Annotated documents of each corpus.
        base_labels: Labels of the base model.

    Returns:
        The documents of each corpus, with partial annotation where labels are missing.
    """
    labels_by_corpus = [{span.label for d in corpus for span in d.spans or []} for corpus in corpora]
    all_labels = {label for labels in labels_by_corpus for label in labels} | set(base_labels)
    return [
        [_with_annotated_labels(d, tuple(sorted(labels))) for d in corpus] if labels and labels != all_labels
        else list(corpus)
        for corpus, labels in zip(corpora, labels_by_corpus, strict=True)
    ]  # fmt: skip


def _with_annotated_labels(document: Document, labels: tuple[str, ...]) -> Document:
    partial = document.partial or PartialAnnotation()
    if partial.annotated_labels is not None:
        return document
    return replace(document, partial=replace(partial, annotated_labels=labels))


def _tags_of(prefix: str, label: str, scheme: Scheme, marks_ends: bool) -> list[str]:
    """Return the model's tags for one tag of an annotated file, whose scheme may leave several possible.

    B may mark the only token of an entity, and I the last one, unless the file uses S and E for these (``marks_ends``).
    """
    if prefix == "O":
        return ["O"]
    if not prefix:
        return tags_of_label(label, scheme)
    ends = {"B": (False, True), "I": (False, True), "E": (True,), "S": (True,)}[prefix]
    if marks_ends and prefix in "BI":
        ends = (False,)
    return list(dict.fromkeys(_tag(label, prefix in "BS", end, scheme) for end in ends))


def _tag(label: str, begins: bool, ends: bool, scheme: Scheme) -> str:
    """Return the tag of a token in an entity with the label ``label``.

    ``begins`` and ``ends`` are True if the token is the first or the last of the entity.

    In IOB1 the prefix is always I: only an entity directly after another one begins with B, and whether another one
    precedes is not known here.
    """
    prefix = _PREFIX_OF[begins, ends]
    if scheme in ("iob1", "iob2"):
        prefix = "B" if begins and scheme == "iob2" else "I"
    return f"{_BILOU.get(prefix, prefix) if scheme == 'bilou' else prefix}-{label}"


def _boundary_tags(
    span: Span, document: Document, unannotated: dict[int, str], scheme: Scheme, marks_ends: bool, begins_with_i: bool
) -> dict[int, list[str]]:
    """Return the possible tags of the first and the last token of an entity that is adjacent to unannotated tokens.

    Such an entity may be longer than its span. It may begin earlier if its first tag is I or E; it must begin earlier
    unless entities of the document begin with I. It may end later if its last tag is B or I.
    """
    first, last, label = span.start, span.end - 1, span.label
    tags, borders = document.tags or (), set(document.sentence_offsets.tolist())
    may_begin_earlier = first - 1 in unannotated and first not in borders and split_tag(tags[first])[0] in "IE"
    may_end_later = last + 1 in unannotated and last + 1 not in borders and split_tag(tags[last])[0] in "BI"
    if not (may_begin_earlier or may_end_later):
        return {}
    begins = ([False, True] if begins_with_i else [False]) if may_begin_earlier else [True]
    ends = ([False] if marks_ends else [False, True]) if may_end_later else [True]
    if first == last:
        return {first: [_tag(label, b, e, scheme) for b, e in product(begins, ends)]}
    return {
        first: [_tag(label, b, False, scheme) for b in begins],
        last: [_tag(label, False, e, scheme) for e in ends],
    }
