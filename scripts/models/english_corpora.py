"""Readers of English corpora in special formats or guidelines, which return documents with labels PER, LOC and ORG.

The guideline is that of corpora/README.md: titles, articles and possessives are outside names, the longest name is
annotated, a place and its country are two names, and people of a country or a family ("the Kellers") are no names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation_repairs import TITLES, CorpusLabels, split_places, trim

from herdner.corpora.formats import read_documents
from herdner.text.document import Document
from herdner.text.tags import Span, tags_from_spans

CORE = CorpusLabels("PER", "LOC", {"ORG"})
_GUM_LABELS = {"person": "PER", "place": "LOC", "organization": "ORG"}
_LITBANK_LABELS = {"PER": "PER", "LOC": "LOC", "GPE": "LOC", "FAC": "LOC", "ORG": "ORG"}
_GUM_MARK = re.compile(r"\(([^()]*)(\))?|([^()]+)\)")
# Titles, ranks and forms of address of novels, letters, courts and councils, in addition to those of news.
ROLES = TITLES | frozenset(
    """Miss Mme. Madame Monsieur M. Lady Sir Lord Count Countess Duke Duchess Baron Baroness Earl Squire Master
    Mistress Father Mother Sister Brother Uncle Aunt Aunty Auntie Cousin Doctor Reverend Rev Rev. Parson Bishop
    Cardinal Saint Admiral Commander Lieutenant Lt. Col. Capt. Maj. Sgt. Sergeant Corporal Private Inspector Constable
    Detective Superintendent Officer Agent Deacon Dame Don Donna Doña Señor Señora Herr Frau Fräulein Signor Signora
    Signorina Mademoiselle Mlle Mlle. Chevalier Emperor Empress Tsar Czar Kaiser Sultan Imam Rabbi Ambassador
    Secretary Chancellor Governor Mayor Councillor Councillors Cllr Cllr. Alderman Congressman Congresswoman
    Representative Attorney Counsel Chairman Chairwoman Chair Director Minister Messrs Messrs. Mr Mrs Ms Dr Prof
    Professors Judges Justices Presidents Senators Vice Deputy Former Sire Dear Old Young Little Poor""".split()  # noqa: SIM905
)


class GumSpan(NamedTuple):
    """Entity of GUM: its token range in a sentence, type, and the tokens of its minimal span."""

    start: int
    end: int
    type: str
    minimal: tuple[int, ...]


def gum_entities(rows: Sequence[Sequence[str]], is_whole: bool = False) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the first row, the last row plus 1, and the values of each entity: chain, type, .., minimal span, ..

    A closing bracket without an opening bracket is ignored, or raises `ValueError` if the rows are a whole document.
    """
    opened: list[tuple[int, list[str]]] = []
    for i, row in enumerate(rows):
        marks = dict(value.split("=", 1) for value in row[9].split("|") if "=" in value).get("Entity", "")
        for mark in _GUM_MARK.finditer(marks):
            if mark[3] is None:
                opened.append((i, mark[1].split("-")))
            if mark[3] is not None or mark[2]:
                chain = mark[3] or mark[1].split("-")[0]
                last = max((k for k, (_, values) in enumerate(opened) if values[0] == chain), default=None)
                if last is None:
                    if is_whole:
                        raise ValueError(f"row {i}: the entity {chain} is closed, but was not opened; correct the file")
                    continue
                start, values = opened.pop(last)
                yield start, i + 1, values


def gum_sentences(path: Path) -> Iterator[tuple[list[str], list[str], list[GumSpan]]]:
    """Yield the words, the part-of-speech tags and the entities of each sentence of a file of GUM."""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        rows = [row for line in block.splitlines() if (row := line.split("\t"))[0].isdigit()]
        spans: list[GumSpan] = []
        for start, end, values in gum_entities(rows):
            minimal = tuple(start + int(t) - 1 for t in values[5].split(","))
            spans.append(GumSpan(start, end, values[1], minimal))
        if rows:
            yield [row[1] for row in rows], [row[4] for row in rows], spans


def gum_names(words: Sequence[str], tags: Sequence[str], spans: Sequence[GumSpan]) -> Iterator[Span]:
    """Yield the outermost names of persons, places and organisations in a sentence of GUM."""
    names: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        label = _GUM_LABELS.get(span.type)
        if label is None or tags[span.minimal[0]] not in ("NNP", "NNPS"):
            continue
        if label == "PER":
            names += gum_person(words, tags, span, spans)
        else:
            names += gum_place(words, tags, span, spans, label)
    taken: set[int] = set()
    for name in names:  # longest entities first
        if name.end > name.start and taken.isdisjoint(range(*name[:2])):
            taken.update(range(*name[:2]))
            yield name


def gum_person(words: Sequence[str], tags: Sequence[str], span: GumSpan, spans: Sequence[GumSpan]) -> Iterator[Span]:
    """Yield the name inside a GUM entity of the type person, without titles and other names before it."""
    inner = [s for s in spans if s != span and span.start <= s.start and s.end <= span.end and s.type in _GUM_LABELS]
    if any(s.type == "person" and tags[s.minimal[0]].startswith("NNP") for s in inner):
        return  # several persons, or a person named after another
    if tags[span.minimal[0]] == "NNPS":
        return  # people of a country or a family
    others = {t for s in inner for t in range(s.start, s.end)}
    tokens = [t for t in span.minimal if t not in others and t < len(tags) and tags[t] == "NNP"]
    if not tokens:
        return
    end = tokens[-1] + 1
    start = tokens[-1]
    for t in reversed(tokens[:-1]):
        between = words[t + 1 : start]
        if all(re.fullmatch(r"[-'’\".“”()]|de|la|van|von|der|of|the|bin|al|el|ben|ibn", w) for w in between):
            start = t
        else:
            break
    while start < end and (words[start] in ROLES or not words[start][:1].isalnum()):
        start += 1
    if start < end and any(word[:1].isupper() for word in words[start:end]):
        yield Span(start, end, "PER")


def gum_place(
    words: Sequence[str], tags: Sequence[str], span: GumSpan, spans: Sequence[GumSpan], label: str
) -> Iterator[Span]:
    """Yield the name inside a GUM entity of the type place or organisation, without a place that follows the name."""
    start, end = min(span.minimal), max(span.minimal) + 1
    for s in spans:
        if s.start == span.start and s.type == "place" and words[s.end - 1] in {"'s", "’s"} and s.end < end:
            start = max(start, s.end)  # "Rangoon's Insein Prison"
    for s in spans:  # "the hall in Washington", "Durban, South Africa"
        if s != span and start < s.start < end and words[s.start - 1].lower() in {"in", ",", "at", "near", "on", "("}:
            end = min(end, s.start - 1)
    start, end = capitalised_range(words, start, end)
    head = span.minimal[0]
    if label == "LOC" and tags[head] == "NNPS" and words[head].endswith("ans"):
        return  # people of a country
    for part in split_places(words, Span(start, end, label), CORE):
        trimmed = trim(words, part, CORE)
        if trimmed is not None:
            yield trimmed


def capitalised_range(words: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Return the first range of capitalised words and numbers, which may have words such as "of" between them."""
    while start < end and not (words[start][:1].isupper() or words[start][:1].isdigit()):
        start += 1
    last = start
    for t in range(start, end):
        if words[t][:1].isupper() or words[t][:1].isdigit():
            last = t + 1
        elif words[t] not in CONNECTORS:
            break
    return start, last


def read_gum(folder: Path) -> Iterator[Document]:
    """Yield the documents of GUM with the outermost names of persons, places and organisations."""
    for path in sorted(folder.glob("*.conllu")):
        sentences, tagged = [], []
        for words, tags, spans in gum_sentences(path):
            sentences.append(words)
            tagged.append(tags_from_spans(sorted(gum_names(words, tags, spans)), len(words), "iob2"))
        yield trim_common_nouns(Document.from_tokens(sentences, tagged, id=path.stem))


def read_litbank(folder: Path) -> Iterator[Document]:
    """Yield the documents of LitBank with the outermost proper names of persons, places and organisations."""
    for path in sorted(folder.glob("*.ann")):
        sentences = [line.split() for line in path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()]
        names: list[list[Span]] = [[] for _ in sentences]
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, *values = line.split("\t")
            if kind != "MENTION" or values[7] != "PROP" or values[6] not in _LITBANK_LABELS or values[1] != values[3]:
                continue
            s, start, end, label = int(values[1]), int(values[2]), int(values[4]) + 1, _LITBANK_LABELS[values[6]]
            names[s].append(Span(start, end, label))
        tagged = [litbank_tags(words, spans) for words, spans in zip(sentences, names, strict=True)]
        kept = [(w, t) for w, t in zip(sentences, tagged, strict=True) if w]
        yield trim_common_nouns(Document.from_tokens([w for w, _ in kept], [t for _, t in kept], id=path.stem))


def litbank_tags(words: list[str], spans: Sequence[Span]) -> list[str]:
    """Return the tags of a LitBank sentence in which the longest names are annotated, without titles."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        name = trim(words, span, CORE)
        if name is not None and name.label == "PER":
            name = trim_titles(words, name)
        if name is None or not any(word[:1].isupper() for word in words[name.start : name.end]):
            continue
        if all(name.end <= other.start or other.end <= name.start for other in kept):
            kept.append(name)
    return tags_from_spans(sorted(kept), len(words), "iob2")


def trim_titles(words: Sequence[str], name: Span) -> Span | None:
    """Remove titles and lower-case words before a person's name; return None for a mere title or a family."""
    start = name.start
    while start < name.end and (words[start] in ROLES or words[start].islower()):
        start += 1
    is_family = name.end - start == 1 and words[start].endswith("s") and words[start - 1 : start] in (["the"], ["The"])
    is_title = words[name.end - 1] in ROLES - {"Old", "Young"}
    if start == name.end or is_family or is_title:
        return None
    return name._replace(start=start)


CONNECTORS = frozenset("of the for and & - / . ' ’ 's ’s de la del du des do da y à le van".split())  # noqa: SIM905
PARTICLES = frozenset("de van von der den al el bin ibn la le du di da dos del della ten ter".split())  # noqa: SIM905


def trim_name(words: Sequence[str], name: Span) -> Span | None:
    """Remove lower-case words before a capitalised name, and also after the name of a place or a person."""
    if not any(word[:1].isupper() for word in words[name.start : name.end]):
        return name
    start, end = name.start, name.end
    while is_common(words[start]) and words[start] not in PARTICLES:
        start += 1
    while is_common(words[end - 1]) and name.label != "ORG" and words[end - 2] != "-":
        end -= 1
    return name._replace(start=start, end=end) if start < end else None


def is_common(word: str) -> bool:
    """Return True for words of lower-case letters."""
    return word.islower() and word.isalpha()


def trim_common_nouns(document: Document) -> Document:
    """Return a document whose names begin and end with capitalised words, unless the whole name is in lower case."""
    spans = (trim_name(document.tokens, span) for span in document.spans or ())
    return document.with_spans([span for span in spans if span is not None])


NAMES_ONLY = {"PER": "PER", "LOC": "LOC", "ORG": "ORG", "*": None}


def read_core(format: str, path: Path) -> Iterator[Document]:
    """Yield the documents of a corpus whose annotation of persons, places and organisations follows the guideline."""
    yield from map(trim_common_nouns, read_documents(path, format, labels=NAMES_ONLY))


def read_tweebank(path: Path) -> Iterator[Document]:
    """Yield the tweets of Tweebank, each as a document."""
    for document in read_documents(path, "conll", labels=NAMES_ONLY):
        for i, (words, tags) in enumerate(zip(document.sentences(), document.sentence_tags(), strict=True)):
            yield Document.from_tokens([words], [tags], id=f"{path.stem}.{i}")
