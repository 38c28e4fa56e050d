"""Annotated files on the command line: reading them, tagging them anew, showing how well that went."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from herdner.cli.common import progress
from herdner.cli.usage import wrong_use

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.corpora.reading import SourceFile
    from herdner.evaluation.compare import Comparison
    from herdner.evaluation.scores import Scores
    from herdner.text.document import Document
    from herdner.text.tokenize import Tokenizer

CORE_CLASSES = {"PER", "LOC", "ORG"}


def timed(
    tagger: Tagger, gold: list[Document], options: dict[str, Any], seed: int, title: str = "tagging"
) -> tuple[list[Document], float]:
    """What the tagger makes of the documents without their tags, and its tokens per second."""
    plain = [bare(document) for document in gold]
    next(tagger.pipe(plain[:1], seed=seed, **options))  # what is loaded or compiled on first use is not the speed
    predicted: list[Document] = []
    with progress("{task.completed:,} of {task.total:,} documents") as display:
        task = display.add_task(title, total=len(plain))
        begin = time.perf_counter()
        for document in tagger.pipe(plain, seed=seed, **options):
            predicted.append(document)
            display.advance(task)
        seconds = time.perf_counter() - begin
    return predicted, sum(len(document.tokens) for document in gold) / max(seconds, 1e-9)


def classes_of(tags: Iterable[str]) -> set[str]:
    """The classes that tags speak of."""
    return {tag.partition("-")[2] for tag in tags if tag != "O"}


def parse_sources(files: Iterable[str]) -> list[SourceFile]:
    """``FILE:FORMAT`` arguments taken apart; a wrong one is wrong use."""
    from herdner.corpora.reading import parse_source

    with wrong_use():
        return [parse_source(file) for file in files]


def encoding_of(source: SourceFile, encoding: str) -> dict[str, str]:
    """The encoding as an option of the readers, where the format has one."""
    from herdner.text.io import FORMATS

    return {"encoding": encoding} if "encoding" in FORMATS[source.format].read_options else {}


def read_gold(
    sources: Sequence[SourceFile], tokenizer: Tokenizer, map_labels: bool, encoding: str | None = None
) -> list[Document]:
    """All documents of the sources with tokens and gold tags; ValueError where there are none."""
    from herdner.corpora.reading import read

    documents: list[Document] = []
    for source in sources:
        options = {} if encoding is None else encoding_of(source, encoding)
        for document in read(source, map_labels=map_labels, tokenizer=tokenizer, **options):
            if not document.n_tokens:
                continue
            if document.tags is None:
                raise ValueError(f"{source.path}: document {document.id!r} has no annotation; give an annotated file")
            documents.append(document)
    if sources and not documents:
        raise ValueError(f"{', '.join(source.path for source in sources)}: no document; the file is empty")
    return documents


def bare(document: Document) -> Document:
    """The document without what is to be predicted."""
    return replace(document, tags=None, entities=())


def show(scores: Scores | Comparison) -> None:
    """A table for a terminal, Markdown for a file or pipe."""
    if not sys.stdout.isatty():
        print(scores.to_markdown())
        return
    from rich.console import Console

    Console().print(scores.to_table())
