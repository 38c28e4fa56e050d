"""Measure the F1 gained by a list of known names, for several strengths of its evidence.

    python scripts/models/measure_names.py --test ../shared/data/ner/worldwide/dev:worldwide \
        --test ../shared/data/ner/uner_ewt/en_ewt-ud-dev.iob2:uner --strength 0 --strength 3

The list is a random half of the gold names with their labels: one list for each document (``--of document``), or one
for all documents (``--of corpus``), in which a name may have another meaning. ``--wrong`` is the share of names with a
wrong label. The output is the micro F1, averaged over seeds. The default strength `herdner.ner.known_names.STRENGTH`
was selected on openly licensed documents, with one list for all documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Annotated

import numpy as np
import typer

import herdner
from herdner import Names, Tagger
from herdner.corpora.reading import parse_source, read
from herdner.evaluation.scores import evaluate
from herdner.evaluation.tabular import markdown_table, percent
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

Listed = list[tuple[str, str]]


def names_of(documents: Sequence[Document], rng: np.random.Generator, share: float, wrong: float) -> Listed:
    """Return a random share of the names in documents with their labels, of which a share ``wrong`` is false."""
    spans = ((document, span) for document in documents for span in document.spans or ())
    every = sorted({(" ".join(document.tokens[s.start : s.end]), s.label) for document, s in spans})
    labels = sorted({label for _, label in every})
    kept = [pair for pair in every if rng.random() < share]
    return [
        (name, str(rng.choice([other for other in labels if other != label])) if rng.random() < wrong else label)
        for name, label in kept
    ]


def tagged(
    tagger: Tagger, documents: Sequence[Document], lists: Sequence[Listed], strength: float
) -> Iterator[Document]:
    """Tag each document with its own list of known names, or all documents with the same list."""
    plain = [document.without_annotation() for document in documents]
    if len(lists) == 1:
        yield from tagger.pipe(plain, names=Names.of(lists[0], strength=strength) if lists[0] else None)
        return
    for document, known in zip(plain, lists, strict=True):
        yield tagger.tag(document, names=Names.of(known, strength=strength) if known else None)


def main(
    test: Annotated[list[str], typer.Option(help="Annotated corpus, as FILE:FORMAT; may be repeated.")],
    model: Annotated[str, typer.Option(help="Name or file of a model.")] = "en",
    of: Annotated[str, typer.Option(help="Scope of a list of names: document or corpus.")] = "corpus",
    share: Annotated[float, typer.Option(min=0, max=1, help="Share of the gold names that are on a list.")] = 0.5,
    wrong: Annotated[float, typer.Option(min=0, max=1, help="Share of listed names with a wrong label.")] = 0.0,
    strength: Annotated[list[float] | None, typer.Option(help="Strength in log-odds; inf makes constraints.")] = None,
    n_seeds: Annotated[int, typer.Option(min=1)] = 3,
) -> None:
    tagger = herdner.load(model)
    strengths = strength or [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, float("inf")]
    rows: list[list[str]] = []
    for source in test:
        found = read(parse_source(source), core_labels=True, tokenizer=Tokenizer(tagger.model_.tokenizer))
        gold = [document for document in found if document.n_tokens]
        parts = [gold] if of == "corpus" else [[document] for document in gold]
        f1: list[list[float]] = []
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            lists = [names_of(part, rng, share, wrong) for part in parts]
            f1.append([evaluate(gold, list(tagged(tagger, gold, lists, s))).micro.f1 for s in strengths])
        rows.append([source.rpartition("/")[2], *(percent(mean(column)) for column in zip(*f1, strict=True))])
    means = [mean(float(row[i]) for row in rows) for i in range(1, len(strengths) + 1)]
    rows.append(["mean", *(f"{value:.2f}" for value in means)])
    print(markdown_table(["F1 by strength", *(f"{s:g}" for s in strengths)], rows))


if __name__ == "__main__":
    typer.run(main)
