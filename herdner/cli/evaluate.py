"""``herdner evaluate``: precision, recall and F1 on annotated files, and the speed."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from herdner.cli.common import (
    BackendOption,
    ModelOption,
    SeedOption,
    SetOption,
    UsageError,
    command,
    inference,
    progress,
)

if TYPE_CHECKING:
    from herdner.ner.document import Document

CORE_CLASSES = {"PER", "LOC", "ORG"}


@command
def evaluate(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE:FORMAT...", help="Annotated files, as in dev.conll:conll.")
    ],
    model: ModelOption = "en",
    backend: BackendOption = None,
    set_: SetOption = None,
    seed: SeedOption = 0,
    map_labels: Annotated[
        bool | None,
        typer.Option(
            "--map-labels/--keep-labels",
            help="Map the corpus's classes to PER, LOC and ORG [default: if the model knows no other].",
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option("--resamples", min=0, help="Bootstrap samples for the interval; 0: none.")
    ] = 1000,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Score a model on annotated files: per class and micro precision, recall and F1 (seqeval, strict), and the speed.

    The speed counts tagging alone, from tokens to names, in one process. The model's tokenizer splits running text.
    """
    import numpy as np

    import herdner
    from herdner.ner.evaluate import evaluate as score
    from herdner.ner.tokenize import Tokenizer

    sources = parse_sources(files)
    tagger = herdner.load(model)
    options = inference(backend, set_, tagger)
    classes = {tag.partition("-")[2] for tag in tagger.labels if tag != "O"}
    mapped = map_labels if map_labels is not None else classes <= CORE_CLASSES
    gold = read_gold(sources, Tokenizer(tagger.model_.tokenizer), mapped)
    plain = [bare(document) for document in gold]
    next(tagger.pipe(plain[:1], seed=seed, **options))  # what is loaded or compiled on first use is not the speed
    predicted, seconds = [], 0.0
    with progress("{task.completed:,} of {task.total:,} documents") as display:
        task = display.add_task("tagging", total=len(plain))
        begin = time.perf_counter()
        for document in tagger.pipe(plain, seed=seed, **options):
            predicted.append(document)
            display.advance(task)
        seconds = time.perf_counter() - begin
    rng = np.random.default_rng(seed) if resamples else None
    n_tokens = sum(len(document.tokens) for document in gold)
    scores = score(
        gold, predicted, rng=rng, n_resamples=resamples or 1, tokens_per_second=n_tokens / max(seconds, 1e-9)
    )
    if json_:
        print(scores.to_json())
    else:
        show(scores)


def parse_sources(files: list[str]) -> list:
    """``FILE:FORMAT`` arguments taken apart; a wrong one is wrong use."""
    from herdner.ner.corpora import parse_source

    try:
        return [parse_source(file) for file in files]
    except ValueError as error:
        raise UsageError(str(error)) from None


def read_gold(sources: list, tokenizer: Any, map_labels: bool) -> list[Document]:
    """All documents of the sources with tokens and gold tags; ValueError where there are none."""
    from herdner.ner.corpora import read

    documents = [d for source in sources for d in read(source, map_labels=map_labels, tokenizer=tokenizer)]
    for document in documents:
        if document.tags is None:
            raise ValueError(f"{document.id}: has no annotation; give an annotated file")
    documents = [document for document in documents if len(document.tokens)]
    if sources and not documents:
        raise ValueError(f"{', '.join(source.path for source in sources)}: no document; the files are empty")
    return documents


def bare(document: Document) -> Document:
    """The document without what is to be predicted."""
    from dataclasses import replace

    return replace(document, tags=None, entities=())


def show(scores) -> None:
    """A table for a terminal, Markdown for a file or pipe."""
    if not sys.stdout.isatty():
        print(scores.to_markdown())
        return
    from rich.console import Console

    Console().print(scores.to_table())
