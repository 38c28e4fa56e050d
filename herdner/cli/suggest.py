"""``herdner suggest``: which documents to annotate next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from herdner.cli.common import command, complain, destination, progress
from herdner.cli.explain import printable
from herdner.cli.inputs import ColumnOption, FilesArgument, InputOption, PatternOption, Report, expand, read
from herdner.cli.options import EncodingOption, ModelOption
from herdner.cli.tag import OutputOption, output_format
from herdner.cli.usage import check_encoding

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.ner.suggesting import Suggestion
    from herdner.text.document import Document, Failure

WORDS = 8  # in doubt, shown for each document


@command
def suggest(
    files: FilesArgument = None,
    most: Annotated[
        int | None, typer.Option("--most", "-n", min=1, help="Only the first documents of the order [default: all].")
    ] = None,
    model: ModelOption = "en",
    input_: InputOption = None,
    pattern: PatternOption = None,
    column: ColumnOption = "text",
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="label-studio, doccano, prodigy, brat, jsonl, ...: the documents themselves, with the model's names"
            " [default: by the ending of --output; else a line for each document].",
        ),
    ] = None,
    output: OutputOption = None,
    encoding: EncodingOption = "utf-8",
) -> None:
    """Order documents by what labels there would teach the model most, to annotate these first.

    A word teaches the more, the less sure the model is of it, the more links to other mentions disagree, the more of
    the documents hold it, and the less the documents before it in the order have taught of it. Documents that are
    annotated already are left out: give the whole of what your tool exports.

    Without --format each line has a document's gain, its id and words in doubt.
    """
    check_encoding(encoding)
    chosen = output_format(format_, output)
    format_ = None if format_ is None and chosen == "text" else chosen
    inputs = expand(files or [], input_, pattern)
    import herdner
    from herdner.corpora.formats import write_documents
    from herdner.ner.suggesting import suggested

    tagger = herdner.load(model)
    report = Report()
    with progress("{task.completed} of {task.total} files") as display:
        task = display.add_task("reading", total=len(inputs))
        tagged = list(unannotated(tagger, read(inputs, encoding, lambda: display.advance(task), column=column), report))
    order = suggested(tagger, tagged)[:most]
    if report.broken or (report.failures and not order):
        report.close()
    with destination(output) as stream:
        if format_ is None:
            stream.writelines(lines(order))
        else:
            write_documents(map(told, order, range(1, len(order) + 1)), stream, format_)
    report.close()


def unannotated(tagger: Tagger, documents: Iterable[Document | Failure], report: Report) -> Iterator[Document]:
    """The documents that nobody has annotated, tagged; what fails is reported."""
    from herdner.text.document import Failure

    annotated = 0

    def bare() -> Iterator[Document | Failure]:
        nonlocal annotated
        for document in documents:
            if isinstance(document, Failure) or document.tags is None:
                yield document
            else:
                annotated += 1

    for result in tagger.outcomes(bare()):
        if isinstance(result, Failure):
            report.fail(result.message)
            report.broken |= result.is_truncated
        else:
            yield result
    if annotated:
        complain(f"{annotated} documents are annotated already and left out")


def told(suggestion: Suggestion, rank: int) -> Document:
    """The document with its place in the order among its fields."""
    words = [word for word, _ in suggestion.doubts[:WORDS]]
    found = {"rank": rank, "gain": round(suggestion.gain, 3), "doubts": words}
    document = suggestion.document
    return replace(document, fields={**document.fields, "suggested": found})


def lines(order: Sequence[Suggestion]) -> Iterator[str]:
    """Gain, id and words in doubt, separated by TAB."""
    for document, gain, doubts in order:
        words = " ".join(word for word, _ in doubts[:WORDS])
        yield f"{gain:.2f}\t{printable(document.id or '')}\t{printable(words)}\n"
