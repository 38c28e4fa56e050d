"""Labels of short forms: an earlier full name outweighs the context of a single word.

In "a firm called Mayfield Consulting ... why Mayfield had grown", the context of "Mayfield" fits a person, and two such
mentions support each other by their links. The full name decides: the last word of a person's full name is this person,
and the first word of an organisation's full name is this organisation. A short form keeps its label in these cases,
which are rare in the development corpora: another full name of the document supports its label, a title precedes it,
the organisation is a body named after a person ("Kishida Cabinet"), or the short form has a higher confidence than the
full name. The label LOC changes to PER only if its confidence is low. It changes to ORG in two cases, because
organisations are often named after the place in which they are: its confidence is very low, or the full name is that of
a team ("Houston Astros"). An untagged surname becomes a mention of the person. An uncertain organisation loses a word
in lower case that follows the short form ("Biscayne clients" after "Biscayne Capital"). The plural of a person's
surname ("the Kellers") is a family, so it is neither an organisation nor a place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from herdner._ext.identity import short_form_candidates
from herdner.crf.link_rules import BUSINESS_WORDS, DESIGNATORS
from herdner.ner.identity.clusters import with_names
from herdner.ner.identity.forms import TITLES, bare_word
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.tags import Span

PERSON, ORGANISATION, PLACE = "PER", "ORG", "LOC"
MOST_CERTAIN_PLACE = 0.8  # places with a higher confidence keep their label
UNCERTAIN = 0.55  # places with a lower confidence become organisations, if the full name has at least `CERTAIN`
CERTAIN = 0.7
FIXED = 0.999  # least confidence of labels that known names fix
LEAST_FULL = 0.5  # least confidence of a full name that changes a label
# Confidence of a changed label, relative to that of its full name. All 38 changes in the development corpora are right;
# the factor is below 1 because most of these changes are in few documents.
SHARE_RIGHT = 0.9
MIN_LETTERS = 3
BODIES = frozenset(
    "administration cabinet commission committee estate family foundation government inquiry ministry regime report"  # noqa: SIM905
    " team trial".split()
)


class FullName(NamedTuple):
    """Full name: a mention of several words that passes its label to the short forms of the name.

    Attributes:
        entity: The mention.
        words: Words of its text.
    """

    entity: Entity
    words: list[str]

    @property
    def last_word(self) -> str:
        """Last word of the name."""
        return self.words[-1]

    @property
    def is_team(self) -> bool:
        """True if the name has two words, and the last one is a capitalised plural that does not denote a business."""
        last = self.last_word
        is_plural = last[:1].isupper() and last.endswith("s") and not last.endswith("ss")
        return len(self.words) == 2 and is_plural and last not in BUSINESS_WORDS and last not in DESIGNATORS


def assign_name_ids(documents: Iterable[Document], has_links: bool) -> list[Document]:
    """Return tagged documents with a `name_id` for each entity.

    Args:
        documents: Documents with entities.
        has_links: Apply `relabel_short_forms` first.
    """
    if has_links:
        documents = map(relabel_short_forms, documents)
    return list(map(with_names, documents))


def relabel_short_forms(document: Document) -> Document:
    """Change the labels of short forms to those of their full names, add missed surnames, and remove families.

    Args:
        document: Tagged document with confidences. A document with malformed tags is returned unchanged.

    Returns:
        The document with the changed and added entities, without organisations and places that are families.
    """
    spans, entities = document.spans or (), document.entities
    if document.source_tags is not None or not entities:
        return document
    families = _families(document)
    full, short, pairs, surnames, places = short_form_candidates(document.tokens, spans, entities, PERSON, ORGANISATION)
    if not (short or pairs or places or families):
        return document
    names = {
        word: {label: FullName(entities[i], entities[i].text.split()) for label, i in of_word.items()}
        for word, of_word in full.items()
    }
    new = {i: entity for i in short if (entity := _relabel(document, i, names)) is not None}
    new |= {i: entity for i in pairs if (entity := _shorten(document, i, names)) is not None}
    missed = _missed_surnames(document, names, {word: entities[i] for word, i in surnames.items()}, places)
    if not (new or missed or families):
        return document
    rows = [
        (Span(span.start, span.start + 1, new[i].label), new[i]) if i in new else (span, entities[i])
        for i, span in enumerate(spans)
        if i not in families
    ]
    rows = sorted([*rows, *missed], key=lambda row: row[0].start)
    return replace(document, spans=[span for span, _ in rows], entities=tuple(entity for _, entity in rows))


def _families(document: Document) -> set[int]:
    """Return the indices of spans such as "the Kellers", which are tagged as organisations or places but name a family.

    Such a span is one word after "the", the plural of the last word of a person's name in the document. A longer name
    that ends in the plural ("Cleveland Browns") shows that the plural is an organisation. Known names are left out.
    """
    spans, tokens = document.spans or (), document.tokens
    plurals = [
        i
        for i, (start, end, label) in enumerate(spans)
        if end == start + 1 and label in (ORGANISATION, PLACE) and tokens[start][-1] == "s"
        if start and tokens[start - 1] in ("the", "The") and (document.entities[i].confidence or 0.0) < FIXED
    ]
    if not plurals:
        return set()
    surnames = {tokens[span.end - 1] for span in spans if span.label == PERSON}
    last_words = {tokens[span.end - 1] for span in spans if span.label != PERSON and span.end > span.start + 1}
    words = {i: tokens[spans[i].start] for i in plurals}
    return {
        i
        for i, word in words.items()
        if word not in last_words and (word[:-1] in surnames or (word.endswith("es") and word[:-2] in surnames))
    }


def _missed_surnames(
    document: Document, full: Mapping[str, Mapping[str, FullName]], surnames: Mapping[str, Entity], places: list[int]
) -> list[tuple[Span, Entity]]:
    """Return the untagged words that repeat the last word of a person's earlier full name.

    Such a word must be capitalised, but not the words beside it. It must not begin a sentence, and the document must
    not contain it in lower case.

    Args:
        document: Tagged document.
        full: Full names by word and label.
        surnames: The full name of a person for each last word.
        places: Untagged tokens that equal a surname, ascending.
    """
    if not places:
        return []
    tokens = document.tokens
    starts, words = set(document.sentence_offsets.tolist()), set(tokens)
    missed: list[tuple[Span, Entity]] = []
    for i in places:
        token, name = tokens[i], surnames[tokens[i]]
        start, end = int(document.token_starts[i]), int(document.token_ends[i])
        has_neighbour = tokens[i - 1][0].isupper() or (i + 1 < len(tokens) and tokens[i + 1][0].isupper())
        is_ambiguous = token.lower() in words or len(full.get(token.casefold(), ())) > 1
        is_full_earlier = name.start < start and (name.confidence or 0.0) >= LEAST_FULL
        if i in starts or has_neighbour or is_ambiguous or not is_full_earlier:
            continue
        if len(token) < MIN_LETTERS or not token[0].isupper():
            continue
        confidence = SHARE_RIGHT * (name.confidence or 0.0)
        missed.append((Span(i, i + 1, PERSON), Entity(start, end, PERSON, document.text[start:end], confidence)))
    return missed


def _shorten(document: Document, i: int, full: Mapping[str, Mapping[str, FullName]]) -> Entity | None:
    """Return an organisation of two words without its second word, or None if the second word is kept.

    ``i`` is the index of an organisation of two words, the second one in lower case. The second word is removed if the
    confidence is low, and the first word also begins an earlier full name of an organisation that has a high
    confidence, ends in a capitalised word and does not contain the second word.
    """
    entity, span = document.entities[i], (document.spans or ())[i]
    first, last = document.tokens[span.start : span.end]
    name = full[first.casefold()][ORGANISATION]
    if (entity.confidence or 0.0) >= LEAST_FULL:
        return None
    if name.entity.start >= entity.start or not name.last_word[0].isupper() or last in map(str.casefold, name.words):
        return None
    sure = name.entity.confidence or 0.0
    if sure < LEAST_FULL:
        return None
    end = int(document.token_ends[span.start])
    text = document.text[entity.start : end]
    return replace(entity, end=end, text=text, confidence=SHARE_RIGHT * sure)


def _relabel(document: Document, i: int, full: Mapping[str, Mapping[str, FullName]]) -> Entity | None:
    """Return a copy of a short form with the label of its full name; return None if the label does not change.

    ``i`` is the index of a mention of one word, which begins or ends full names of exactly one other label.
    """
    entity, start = document.entities[i], (document.spans or ())[i].start
    if len(entity.text) < MIN_LETTERS:
        return None
    ((label, full_name),) = full[document.tokens[start].casefold()].items()
    name = full_name.entity
    own, sure = entity.confidence or 0.0, name.confidence or 0.0
    if name.start > entity.start or sure < max(own, LEAST_FULL):
        return None
    if label == PERSON:
        is_changed = entity.label == ORGANISATION or (entity.label == PLACE and own < MOST_CERTAIN_PLACE)
    else:
        before = bare_word(document.tokens[start - 1]).casefold() if start else ""
        if entity.label == PLACE:
            is_changed = (own < UNCERTAIN and sure >= CERTAIN) or (full_name.is_team and before != "in")
        else:
            is_body = full_name.last_word.casefold() in BODIES
            is_changed = entity.label == PERSON and before not in TITLES and not is_body
    return replace(entity, label=label, confidence=SHARE_RIGHT * sure) if is_changed else None
