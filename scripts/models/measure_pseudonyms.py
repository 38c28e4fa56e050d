"""Leaks in pseudonymised documents of LitBank and GUM: repeats of replaced names, and names that are never found.

    python scripts/models/measure_pseudonyms.py --litbank ../shared/data/ner/litbank --gum ../shared/data/ner/gum

A repeat leaks if a word of a replaced name remains in the text outside of the pseudonyms. Words of one letter and
common words do not count. A gold name is never found if no replaced range overlaps any of its mentions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from train_identity import read_gum, read_litbank

import herdner
from herdner import Document, Tagger
from herdner.evaluation.tabular import markdown_table
from herdner.ner.pseudonyms.common_words import CommonWords
from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
from herdner.ner.pseudonyms.pseudonymise import RECALL_BIAS, make_pseudonymiser
from herdner.ner.pseudonyms.replacing import PseudonymisedDocument

WORD = re.compile(r"[^\W_]{2,}")
LABELS = {
    "PER": "person", "GPE": "place", "LOC": "place", "FAC": "place", "ORG": "organisation", "VEH": "other",
    "person": "person", "place": "place", "organization": "organisation",
}  # fmt: skip


def leaked_words(source: Document, result: PseudonymisedDocument, common_words: CommonWords) -> set[str]:
    """Return the words of replaced names that remain in the pseudonymised text, except common words."""
    names = (
        source.text[e.source_start : e.source_end] for e in result.replacements if e.label in ("PER", "LOC", "ORG")
    )
    words = {word.lower() for name in names for word in WORD.findall(name)}
    borders = [0, *(border for each in result.replacements for border in (each.start, each.end)), len(result.text)]
    rest = " ".join(result.text[start:end] for start, end in zip(borders[::2], borders[1::2], strict=True))
    remaining = {word.lower() for word in WORD.findall(rest)}
    return {word for word in words & remaining if word not in common_words and not word.isdigit()}


def missed_names(gold: Document, result: PseudonymisedDocument) -> Iterator[tuple[str, bool]]:
    """Yield the label of each gold name, and True if no replaced range overlaps any of the name's mentions."""
    is_replaced = bytearray(len(gold.text))
    for each in result.replacements:
        is_replaced[each.source_start : each.source_end] = b"\1" * (each.source_end - each.source_start)
    for name in gold.names:
        mentions = [gold.entities[i] for i in name.mentions]
        yield LABELS.get(name.label, "other"), not any(any(is_replaced[e.start : e.end]) for e in mentions)


def measure(corpus: Sequence[Document], tagger: Tagger, recall: bool) -> dict[str, object]:
    """Return the numbers of documents and of documents with leaks in a corpus, and the shares of missed names."""
    common_words = CommonWords.of(tagger.model_.lexicon)
    work = make_pseudonymiser(PseudonymMap(), tagger)
    n, missed = Counter[str](), Counter[str]()
    n_leaks = n_common = 0
    for gold in corpus:
        result = work(tagger.tag(gold.text, name_bias=RECALL_BIAS * recall))
        assert work.names.restore(result.text) == gold.text
        n_leaks += bool(leaked_words(gold, result, common_words))
        n_common += bool(result.remaining)
        for label, is_missed in missed_names(gold, result):
            n[label] += 1
            missed[label] += is_missed
    shares = {
        label: f"{100 * missed[label] / n[label]:.1f} % of {n[label]}" for label in ("person", "place", "organisation")
    }
    return {"documents": len(corpus), "leaked repeat": n_leaks, "common word remains": n_common, **shares}


def main(
    litbank: Annotated[Path, typer.Option(help="Folder of LitBank.")],
    gum: Annotated[Path, typer.Option(help="Folder of GUM.")],
) -> None:
    """Print a table of leaks with a row for each corpus and threshold for names."""
    tagger = herdner.load("en")
    readers: dict[str, tuple[Callable[[Path], Iterator[Document]], Path]] = {
        "LitBank": (read_litbank, litbank), "GUM": (read_gum, gum),
    }  # fmt: skip
    rows = [
        {"corpus": name, "threshold": "--recall" if recall else "F1", **measure(list(read(folder)), tagger, recall)}
        for name, (read, folder) in readers.items()
        for recall in (False, True)
    ]
    print(markdown_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows]))


if __name__ == "__main__":
    typer.run(main)
