"""Measure the gain in F1 if documents are tagged as one collection.

    python scripts/models/measure_collection.py --test ../shared/data/ner/btc/btc.dev:btc \
        --test ../shared/data/ner/conll2003/eng.testa:conll2003 --block 27

Each row compares ``Tagger.pipe(documents, collection=True)`` with ``Tagger.pipe(documents)``. Confidence intervals are
computed by resampling documents (`herdner.evaluation.compare`). ``--block N`` makes a collection of each N consecutive
documents of a file, such as the news of one day. ``--sentences`` makes a document of each sentence, for files of posts
that do not mark documents.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
import typer

import herdner
from herdner import Tagger
from herdner.corpora.reading import parse_source, read
from herdner.evaluation.compare import compare
from herdner.evaluation.tabular import markdown_table, percent, points
from herdner.ner.language import LanguageWarning
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer


def split_sentences(document: Document) -> Iterator[Document]:
    """Yield a document for each sentence."""
    for tokens, tags in zip(document.sentences(), document.sentence_tags(), strict=True):
        yield Document.from_tokens([list(tokens)], [list(tags)])


def tag_collections(tagger: Tagger, documents: Sequence[Document], block: int) -> Iterator[Document]:
    """Yield the tagged documents, of which each ``block`` of consecutive documents is one collection."""
    for start in range(0, len(documents), block):
        yield from tagger.pipe(documents[start : start + block], collection=True)


def main(
    test: Annotated[list[str], typer.Option(help="Annotated corpus, as FILE:FORMAT; may be repeated.")],
    model: Annotated[str, typer.Option(help="Name or file of a model.")] = "en",
    block: Annotated[
        int | None, typer.Option(min=1, help="Number of documents in a collection [default: all].")
    ] = None,
    sentences: Annotated[bool, typer.Option("--sentences", help="Make a document of each sentence.")] = False,
) -> None:
    """Print the F1 on each corpus, with and without the evidence of the collection."""
    warnings.simplefilter("ignore", LanguageWarning)
    tagger = herdner.load(model)
    rows: list[list[str]] = []
    for source in test:
        found = read(parse_source(source), core_labels=True, tokenizer=Tokenizer(tagger.model_.tokenizer))
        gold = [document for document in found if document.n_tokens]
        if sentences:
            gold = [part for document in gold for part in split_sentences(document)]
        gold = [document.with_spans([s for s in document.spans or () if s.label in tagger.labels]) for document in gold]
        plain = [document.without_annotation() for document in gold]
        pooled = list(tag_collections(tagger, plain, block or max(len(plain), 1)))
        result = compare(gold, list(tagger.pipe(plain)), pooled, rng=np.random.default_rng(0))
        low, high = points(result.interval.low), points(result.interval.high)
        rows.append(
            [
                source.rpartition("/")[2], str(len(gold)), percent(result.micro.f1_a), percent(result.micro.f1_b),
                f"{points(result.difference)} ({low} to {high})", f"{result.randomisation_p:.2g}",
            ]
        )  # fmt: skip
    print(markdown_table(["corpus", "documents", "F1", "as a collection", "gain (95 % interval)", "p"], rows))


if __name__ == "__main__":
    typer.run(main)
