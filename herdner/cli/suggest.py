"""Command ``herdner suggest``: order in which to annotate documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import open_output, print_note, show_files
from herdner.cli.explain import to_printable
from herdner.cli.groups import TextOptions
from herdner.cli.inputs import RunStatus
from herdner.cli.tag import OutputOption, choose_format
from herdner.cli.usage import check_output

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.ner.suggesting import Suggestion
    from herdner.text.document import Document, Failure

MAX_WORDS = 8  # uncertain words to show for each document


@command
def suggest(
    texts: TextOptions,
    limit: Annotated[int | None, typer.Option(
        "--limit", "-n", min=1, help="Number of documents to suggest [default: all].")] = None,
    model: opt.ModelOption = "en",
    format_: Annotated[str | None, typer.Option(
        "--format", "-f", metavar="FORMAT", help="label-studio, doccano, prodigy, brat, jsonl, ...: write the "
        "documents with the model's names [default: by the extension of --output; else one line for each "
        "document].")] = None,
    output: OutputOption = None,
) -> None:  # fmt: skip
    """Order documents for annotation: the documents whose annotation would improve the model most come first.

    A word is useful if the model is uncertain about it, if linked mentions disagree, if many documents contain it, and
    if no earlier document in the order contains it. Documents that are already annotated are left out, so FILE may be
    the complete export of an annotation tool.

    Without --format, each line has the expected gain of annotating a document, its id and its uncertain words. The gain
    is the weighted uncertainty of its words that no document before it covers.
    """
    output_format = choose_format(format_, output)
    format_ = None if format_ is None and output_format == "text" else output_format
    inputs = texts.expand()
    check_output(output, [*(each.path for each in inputs), model])
    import herdner
    from herdner.corpora.formats import file_options, write_documents
    from herdner.ner.suggesting import rank_documents

    tagger = herdner.load(model)
    status = RunStatus(texts.errors, output)
    with show_files("reading", len(inputs)) as advance:
        tagged = list(_tag_unannotated(tagger, texts.read(inputs, advance), status))
    status.exit_without_output()
    suggestions = rank_documents(tagger, tagged)[:limit]
    with open_output(output) as stream:
        if format_ is None:
            stream.writelines(_lines(suggestions))
        else:
            ranked = map(_with_rank, suggestions, range(1, len(suggestions) + 1))
            write_documents(ranked, stream, format_, **file_options(format_, output or "-"))
    status.exit_on_failure()


def _tag_unannotated(tagger: Tagger, documents: Iterable[Document | Failure], status: RunStatus) -> Iterator[Document]:
    """Tag the documents that have no annotation, and yield them; count failures in ``status``."""
    from herdner.text.document import Failure

    n_annotated = 0

    def unannotated_documents() -> Iterator[Document | Failure]:
        nonlocal n_annotated
        for document in documents:
            if isinstance(document, Failure) or not document.is_annotated:
                yield document
            else:
                n_annotated += 1

    yield from status.successes(tagger.outcomes(unannotated_documents()))
    if n_annotated:
        print_note(f"documents that are already annotated are left out: {n_annotated}")


def _with_rank(suggestion: Suggestion, rank: int) -> Document:
    """Return a suggested document, whose new field ``suggested`` holds its rank, gain and uncertain words."""
    words = [word for word, _ in suggestion.uncertain_words[:MAX_WORDS]]
    values = {"rank": rank, "gain": round(suggestion.gain, 3), "uncertain_words": words}
    document = suggestion.document
    return replace(document, fields={**document.fields, "suggested": values})


def _lines(suggestions: Sequence[Suggestion]) -> Iterator[str]:
    """Yield a line for each suggested document: gain, id and uncertain words, separated by tabs."""
    for document, gain, uncertain_words in suggestions:
        words = " ".join(word for word, _ in uncertain_words[:MAX_WORDS])
        yield f"{gain:.2f}\t{to_printable(document.id or '')}\t{to_printable(words)}\n"
