"""Annotated files on the command line: reading them, tagging them anew, showing how well that went."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from herdner.cli.common import complain, progress
from herdner.cli.usage import UsageError, wrong_use

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.corpora.reading import SourceFile
    from herdner.evaluation.tabular import Tabulated
    from herdner.ner.inference import Inference
    from herdner.text.case import Case
    from herdner.text.document import Document
    from herdner.text.io.parse_warnings import ParseWarnings
    from herdner.text.labels import LabelNames
    from herdner.text.tokenize import Tokenizer

CORE_CLASSES = {"PER", "LOC", "ORG"}


@dataclass(frozen=True)
class Gold:
    """Annotated files as the options ask for them: with classes mapped as the corpus's registry says (None: where
    nothing but `CORE_CLASSES` is known), then renamed by ``labels``, in another case; ``strict``: without any doubt.
    """

    sources: Sequence[SourceFile]
    map_labels: bool | None = None
    labels: LabelNames | None = None
    case: Case | None = None
    strict: bool = False

    def read(self, tokenizer: Tokenizer, known: Collection[str], who: str) -> list[Document]:
        """The documents. ``who`` knows these classes; wrong use where the files have none of them."""
        from herdner.text.case import change_case

        mapped = self.map_labels if self.map_labels is not None else set(known) <= CORE_CLASSES
        documents = read_gold(self.sources, tokenizer, mapped, labels=self.labels, strict=self.strict)
        check_known(documents, known, who, self.sources)
        return documents if self.case is None else [change_case(document, self.case) for document in documents]


def timed(
    tagger: Tagger, gold: list[Document], options: Inference | None, seed: int, title: str = "tagging"
) -> tuple[list[Document], float]:
    """What the tagger makes of the documents without their tags, and its tokens per second."""
    plain = [bare(document) for document in gold]
    next(tagger.pipe(plain[:1], options, seed=seed))  # what is loaded or compiled on first use is not the speed
    predicted: list[Document] = []
    with progress("{task.completed:,} of {task.total:,} documents") as display:
        task = display.add_task(title, total=len(plain))
        begin = time.perf_counter()
        for document in tagger.pipe(plain, options, seed=seed):
            predicted.append(document)
            display.advance(task)
        seconds = time.perf_counter() - begin
    return predicted, sum(len(document.tokens) for document in gold) / max(seconds, 1e-9)


def check_known(gold: Sequence[Document], known: Collection[str], who: str, sources: Sequence[SourceFile]) -> None:
    """Wrong use where names are annotated, and none of a class that is known: the format is another, or the classes
    have other names.
    """
    found = sorted({span.label for document in gold for span in document.spans or ()})
    if not found or not set(found).isdisjoint(known):
        return
    said = f"{', '.join(source.path for source in sources)}: none of its classes ({', '.join(found[:8])}) is one that"
    said += f" {who} knows ({', '.join(sorted(known))})"
    raise UsageError(f"{said}; {_mended(found, known, sources)}")


def _mended(found: Sequence[str], known: Collection[str], sources: Sequence[SourceFile]) -> str:
    """What to do where classes do not meet: name the corpus's own format, map classes, or train."""
    from herdner.corpora.registry import load_registry

    read_as = {source.format for source in sources}
    corpora = [each for each in load_registry().values() if each.labels and each.format not in read_as]
    fitting = [each.format for each in corpora if set(found) <= set(each.classes)]
    if fitting:
        return f"read it as {sources[0].path}:{fitting[0]}"
    pairs = {label: target for label in found for target in known if label.lower()[:3] == target.lower()[:3]}
    example = pairs or {found[0]: min(known)}
    return "map them, as in " + " ".join(f"--map {old}={new}" for old, new in example.items())


def parse_sources(files: Iterable[str]) -> list[SourceFile]:
    """``FILE:FORMAT`` arguments taken apart; a wrong one is wrong use."""
    from herdner.corpora.reading import parse_source

    with wrong_use():
        return [parse_source(file) for file in files]


def parse_map(pairs: Sequence[str]) -> LabelNames | None:
    """``OLD=NEW`` as the readers take it; wrong use where there is no such pair."""
    labels: dict[str, str | None] = {}
    for pair in pairs:
        old, equals, new = pair.partition("=")
        if not equals or not old:
            raise UsageError(f"--map {pair!r}: expected OLD=NEW, as in PERSON=PER, or OLD= to drop a class")
        labels[old] = " ".join(new.split()) or None
    return labels or None


def encoding_of(source: SourceFile, encoding: str) -> dict[str, str]:
    """The encoding as an option of the readers, where the format has one."""
    from herdner.corpora.formats import FORMATS

    return {"encoding": encoding} if "encoding" in FORMATS[source.format].read_options else {}


def read_gold(
    sources: Sequence[SourceFile],
    tokenizer: Tokenizer,
    map_labels: bool,
    encoding: str | None = None,
    labels: LabelNames | None = None,
    strict: bool = False,
) -> list[Document]:
    """All documents of the sources with tokens and gold tags, their classes renamed by ``labels``; ValueError where
    there are none. Names that end within a token are widened to it, which is told, or refused where that is ``strict``.
    """
    from herdner.corpora.reading import read
    from herdner.text.io.parse_warnings import ParseWarnings
    from herdner.text.labels import rename_labels

    documents: list[Document] = []
    for source in sources:
        options = {} if encoding is None else encoding_of(source, encoding)
        before = len(documents)
        left: list[Document] = []
        with ParseWarnings(source.path, strict) as doubts:
            for document in read(source, map_labels=map_labels, tokenizer=tokenizer, strict=strict, **options):
                if not document.n_tokens:
                    continue
                if document.tags is None:
                    left.append(document)
                    continue
                check_borders(document, doubts)
                documents.append(document if labels is None else rename_labels(document, labels))
        if left and (strict or len(documents) == before):
            raise ValueError(f"{source.path}: document {left[0].id!r} has no annotation; give an annotated file")
        if left:
            n, every = len(left), len(left) + len(documents) - before
            complain(f"{source.path}: {n} of {every} documents are not annotated and left out (first: {left[0].id})")
    if sources and not documents:
        raise ValueError(f"{', '.join(source.path for source in sources)}: no document; the file is empty")
    return documents


def check_borders(document: Document, doubts: ParseWarnings) -> None:
    """What is in doubt where names do not meet the borders of tokens."""
    from herdner.text.document import project

    found = project(document.entities, document)
    if found.n_widened:
        doubts.add("a name that ends within a token is widened to it", times=found.n_widened)
    if found.n_dropped:
        doubts.add("a name without a token of its own is left out", times=found.n_dropped)


def bare(document: Document) -> Document:
    """The document without what is to be predicted."""
    return document.without_annotation()


def show(scores: Tabulated) -> None:
    """A table for a terminal, Markdown for a file or pipe."""
    if not sys.stdout.isatty():
        print(scores.to_markdown())
        return
    from rich.console import Console

    Console().print(scores.to_table())
