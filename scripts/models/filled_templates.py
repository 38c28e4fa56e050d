"""Training documents that show the annotation guide: templates of corpora/herdner_templates.txt, filled with names.

A slot such as ``{p1.last}`` stands for a person (``p``), a place (``l``), an organisation (``o``) or the designator of
a company (``d``). All slots of one document with the same letter and number refer to the same name; ``first``, ``last``
and ``short`` select a part of the name, and ``upper`` and ``lower`` select upper or lower case. A slot in ``plural``,
such as "the Kellers", is not a name by the guide. ``{p1.last} {d1}`` together are the name of one organisation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from herdner.text.document import Document
from herdner.text.tags import Span, tags_from_spans
from herdner.text.tokenize import Tokenizer

LABELS = {"p": "PER", "l": "LOC", "o": "ORG"}
DESIGNATORS = (
    "GmbH", "plc", "AG", "Ltd", "Ltd.", "Inc.", "SA", "LLP", "LLC", "Corp.", "NV", "Oy", "AB", "Pty Ltd", "SE", "Co.",
)  # fmt: skip
_SLOT = re.compile(r"\{([plod])(\d)((?:\.\w+)*)\}")
_COMPANY = re.compile(r"\{p\d\.last\}(?: & \{p\d\.last\})?(?: Shipping)? \{d\d\}")


class NameLists(NamedTuple):
    """Names of persons with at least two words, names of places, and names of organisations."""

    persons: list[str]
    places: list[str]
    organisations: list[str]

    @staticmethod
    def of(documents: Iterable[Document]) -> NameLists:
        """Return the names of documents that consist of capitalised words."""
        found: dict[str, set[str]] = {"PER": set(), "LOC": set(), "ORG": set()}
        for document in documents:
            for start, end, label in document.spans or ():
                words = document.tokens[start:end]
                if label in found and all(word[:1].isupper() and len(word) > 1 for word in words):
                    found[label].add(" ".join(words))
        found["LOC"] = {name for name in found["LOC"] if not name.isupper() or len(name) < 4}
        firsts = Counter(name.split()[0] for name in found["ORG"])
        of_places = {word for name in found["LOC"] for word in name.split()}
        # The first word alone is a short form if no other organisation begins with it and no place contains it.
        organisations = {
            name
            for name in found["ORG"]
            if firsts[name.split()[0]] == 1 and name.split()[0] not in of_places and name[-1] != "."
        }
        persons = {name for name in found["PER"] if re.fullmatch(r"[^\W\d]+ [^\W\d]+", name) and not name.isupper()}
        return NameLists(sorted(persons), sorted(found["LOC"]), sorted(organisations))


def fill_templates(
    path: Path, names: NameLists, n_fills: int, seed: int = 0, tokenizer: Tokenizer | None = None
) -> Iterator[tuple[int, Document]]:
    """Yield ``n_fills`` documents from each template, filled with random names, with the index of the template."""
    rng, tokenizer = np.random.default_rng(seed), tokenizer or Tokenizer()
    for number, template in enumerate(path.read_text(encoding="utf-8").split("\n---\n")):
        for i in range(n_fills):
            yield number, fill(template.strip(), names, rng, tokenizer, f"template.{number}.{i}")


def fill(template: str, names: NameLists, rng: np.random.Generator, tokenizer: Tokenizer, id: str) -> Document:
    """Fill a template with random names, and return the text as a document with tags."""
    chosen: dict[str, str] = {}
    text, entities, position = "", list[tuple[int, int, str]](), 0
    companies = {match.start(): match.end() for match in _COMPANY.finditer(template)}
    company_start, company_end = 0, -1
    for match in _SLOT.finditer(template):
        text += template[position : match.start()]
        if match.start() in companies:
            company_start, company_end = len(text), companies[match.start()]
        value = write_form(name_of(match[1], match[1] + match[2], chosen, names, rng), match[3].split(".")[1:])
        if match.end() > company_end and match[1] in LABELS and ".plural" not in match[3]:
            entities.append((len(text), len(text) + len(value), LABELS[match[1]]))
        text += value
        position = match.end()
        if position == company_end:
            if text.endswith(".") and template[position : position + 1] == ".":
                position += 1  # the full stop of "Ltd." ends the sentence
            entities.append((company_start, len(text), "ORG"))
    text += template[position:]
    document = tokenizer(text)
    return add_tags(document, entities, id)


def name_of(kind: str, slot: str, chosen: dict[str, str], names: NameLists, rng: np.random.Generator) -> str:
    """Return the name of a slot; the name is chosen when its letter and number are first used."""
    if slot not in chosen:
        lists: dict[str, Sequence[str]] = {
            "p": names.persons, "l": names.places, "o": names.organisations, "d": DESIGNATORS,
        }  # fmt: skip
        options = lists[kind]
        if kind == "p":  # first names and surnames are combined freely
            first, last = (options[int(rng.integers(len(options)))].split(maxsplit=1) for _ in range(2))
            chosen[slot] = f"{first[0]} {last[1]}"
        else:
            chosen[slot] = options[int(rng.integers(len(options)))]
    return chosen[slot]


def write_form(name: str, forms: Sequence[str]) -> str:
    """Return a name in the form that a slot requests, such as ``("last", "upper")`` for the last word in upper case."""
    for form in forms:
        if form in ("first", "short"):
            name = name.split()[0]
        elif form == "last":
            name = name.split()[-1]
        elif form == "plural":
            name += "es" if name[-1] in "sxz" or name.endswith("ch") else "s"
        elif form == "upper":
            name = name.upper()
        elif form == "lower":
            name = name.lower()
        else:
            raise ValueError(f"{form!r} is not a form of a name; write first, last, short, plural, upper or lower")
    return name


def add_tags(document: Document, entities: Sequence[tuple[int, int, str]], id: str) -> Document:
    """Return a document with the tags of entities (character offset of start and end, label).

    Entities in which no token begins are ignored. Raise `ValueError` if entities overlap.
    """
    spans: list[Span] = []
    for start, end, label in entities:
        first, last = np.searchsorted(document.token_starts, [start, end]).tolist()
        if first < last:
            spans.append(Span(first, last, label))
    tags = tags_from_spans(spans, document.n_tokens, "iob2")
    cuts = pairwise(document.sentence_offsets.tolist())
    return Document.from_tokens(list(document.sentences()), [tags[first:last] for first, last in cuts], id=id)
