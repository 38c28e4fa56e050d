"""Convert openly licensed corpora to one annotation guideline, that of herdner (corpora/README.md).

The Worldwide corpus splits abbreviations ("U . S ."), splits organisations at the name inside them ("[Liberal]
[Party]", "[University of] [Ghana]") and joins towns with their country ("[Durban, South Africa]"). Tweets and some
articles include titles in names of persons. The guideline of herdner has the opposite conventions, so the tags are
rewritten before training.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from herdner.text.document import Document
from herdner.text.tags import Span, spans_from_tags, tags_from_spans

# An organisation that consists of one of these words belongs to the name before it.
HEAD_NOUNS = frozenset(
    """University College School Institute Academy Foundation Party Union Association Federation Bank Airways Airlines
    Airline Times Post Herald Tribune Daily News Club Corporation Corp Inc Ltd Company Group Holdings Museum
    Hospital Council Commission Committee Agency Authority Congress League Movement Front Network Society Centre
    Center Court Chamber Alliance Organization Organisation Board Fund Trust Church United FC City Press Telegraph
    Guardian Star Journal Radio Television TV Media Motors Energy Oil Mining Steel Insurance Investment Investments
    Development Research Studies""".split()  # noqa: SIM905
)
ABBREVIATIONS = frozenset(
    """Mr Mrs Ms Dr Prof Sen Rep Gov Gen Col Lt Sgt Capt Rev St Inc Corp Co Ltd Jr Sr Hon Adv""".split()  # noqa: SIM905
)
TITLES = frozenset(
    """Mr Mr. Mrs Mrs. Ms Ms. Dr Dr. President Prime Minister Prof Prof. Professor Sen. Rep. Gov. Gen. General Sheikh
    King Queen Prince Princess Pope Lord Sir Judge Justice Senator Chief Captain Colonel Major Honourable Hon
    Hon.""".split()  # noqa: SIM905
)
TRAILING = frozenset([",", ".", "'s", "’s", "'", "’"])
LEADING = TRAILING | {"the", "The"}


@dataclass(frozen=True)
class CorpusLabels:
    """Labels of persons, places and organisations in a corpus. Other spans may be parts of organisations."""

    person: str
    location: str
    organisation: Collection[str]


def repair(
    documents: Iterable[Document], classes: CorpusLabels, labels: Mapping[str, str | None]
) -> Iterator[Document]:
    """Yield documents with joined abbreviations and repaired spans, and with renamed or removed labels."""
    for document in documents:
        sentences = [
            join_abbreviations(list(tokens), list(tags))
            for tokens, tags in zip(document.sentences(), document.sentence_tags(), strict=True)
        ]
        tags = [repair_tags(tokens, tags, classes, labels) for tokens, tags in sentences]
        yield Document.from_tokens([tokens for tokens, _ in sentences], tags, id=document.id)


def repair_tags(
    tokens: list[str], tags: list[str], classes: CorpusLabels, labels: Mapping[str, str | None]
) -> list[str]:
    """Return the tags of a sentence with repaired names of persons, places and organisations."""
    spans = merge_organisations(tokens, spans_from_tags(tags), classes)
    spans = [part for span in spans for part in split_places(tokens, span, classes)]
    trimmed = (trim(tokens, span, classes) for span in spans)
    kept = [span._replace(label=new) for span in trimmed if span and (new := labels.get(span.label)) is not None]
    return tags_from_spans(kept, len(tokens), "iob2")


def join_abbreviations(tokens: list[str], tags: list[str]) -> tuple[list[str], list[str]]:
    """Join tokens such as "U . S ." to "U.S." and "Mr ." to "Mr."; a joined token has the tag of its first part."""
    joined: list[str] = []
    kept: list[str] = []
    i = 0
    while i < len(tokens):
        j = i
        while is_initial(tokens, j) and (j == i or tags[j][2:] == tags[i][2:]):
            j += 2
        if j == i and tokens[i] in ABBREVIATIONS and tokens[i + 1 : i + 2] == ["."] and i + 2 < len(tokens):
            j = i + 2
        j = max(j, i + 1)
        joined.append("".join(tokens[i:j]))
        kept.append(tags[i])
        i = j
    return joined, kept


def is_initial(tokens: Sequence[str], i: int) -> bool:
    return i + 1 < len(tokens) and len(tokens[i]) == 1 and tokens[i].isupper() and tokens[i + 1] == "."


def merge_organisations(tokens: Sequence[str], spans: list[Span], classes: CorpusLabels) -> list[Span]:
    """Join the parts of an organisation, such as "[Liberal] [Party]" and "[University of] [Ghana]"."""
    merged: list[Span] = []
    for span in spans:
        before = merged[-1] if merged else None
        if before is not None and before.end == span.start:
            is_head = (
                span.label in classes.organisation and span.end - span.start <= 2 and tokens[span.start] in HEAD_NOUNS
            )
            is_open = before.label in classes.organisation and tokens[before.end - 1].lower() in {"of", "for", "&"}
            if is_head or is_open:
                merged[-1] = Span(before.start, span.end, span.label if is_head else before.label)
                continue
        merged.append(span)
    return merged


def split_places(tokens: Sequence[str], span: Span, classes: CorpusLabels) -> Iterator[Span]:
    """Yield the parts of a place, which is split at commas, such as "[Durban, South Africa]"."""
    if span.label != classes.location:
        yield span
        return
    start = span.start
    for i in range(span.start, span.end + 1):
        if i == span.end or tokens[i] == ",":
            if i > start:
                yield Span(start, i, span.label)
            start = i + 1


def trim(tokens: Sequence[str], span: Span, classes: CorpusLabels) -> Span | None:
    """Remove titles, articles, possessives and punctuation at both ends of a span; return None if nothing remains."""
    start, end, label = span
    if label not in (classes.person, classes.location, *classes.organisation):
        return span
    leading = LEADING | TITLES if label == classes.person else LEADING
    while start < end and tokens[start] in leading:
        start += 1
    while start < end and tokens[end - 1] in TRAILING:
        end -= 1
    return Span(start, end, label) if start < end else None
