"""Command ``herdner names``: index of the names of a corpus."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from herdner.cli.command import command
from herdner.cli.common import open_output, show_files
from herdner.cli.groups import TaggingOptions, TextOptions
from herdner.cli.inputs import LanguageMessages, RunStatus
from herdner.cli.usage import check_extension, check_output

FORMATS = {".txt": "text", ".csv": "csv", ".json": "json", ".html": "html", ".htm": "html"}


@command
def names(
    texts: TextOptions,
    tagging: TaggingOptions,
    format_: Annotated[Literal["text", "csv", "json", "html"] | None, typer.Option(
        "--format", "-f", metavar="text|csv|json|html", help="Format of the table [default: by the extension of "
        "--output, else text].")] = None,
    output: Annotated[str | None, typer.Option(
        "--output", "-o", help="Write this file instead of standard output. It appears when it is complete.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Largest number of names to list [default: "
        "all].")] = None,
    min_mentions: Annotated[int, typer.Option(min=1, help="Leave out names with fewer mentions.")] = 1,
    min_confidence: Annotated[float | None, typer.Option(
        "--min-confidence", min=0, max=1, help="Leave out names with a lower confidence.")] = None,
) -> None:  # fmt: skip
    """List the names in all texts, each with its counts of mentions and documents, and its first context.

    Names of different documents are one name if their fullest forms and labels are equal. A surname alone belongs to a
    longer name only in a document that contains both. The required memory does not depend on the number of documents.
    """
    format = format_ or FORMATS.get(check_extension(output, FORMATS), "text")
    inputs = texts.expand()
    check_output(output, [*(each.path for each in inputs), *tagging.files()])
    from herdner.ner.name_index import NameIndex, write_index

    tagger, inference = tagging.load(min_confidence=min_confidence)
    status = RunStatus(texts.errors, output)
    with NameIndex() as index:
        with show_files("reading", len(inputs)) as advance:
            languages = LanguageMessages(tagger)
            documents = texts.read(inputs, advance, languages.add_file)
            results = languages.check(tagger.outcomes(documents, inference, seed=tagging.seed))
            for document in status.successes(results):
                index.add(document)
        status.exit_without_output()
        with open_output(output) as stream:
            write_index(index.rows(min_mentions, limit), stream, format, index.width())
    status.exit_on_failure()
