"""Commands ``herdner corpora``: list of known corpora, verified downloads, and conversion."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from herdner.base.messages import format_count
from herdner.base.progress import show_progress
from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import make_console, print_note, show_activity
from herdner.cli.gold import options_of
from herdner.cli.groups import TableOptions
from herdner.cli.usage import check_encoding, check_format, check_output, usage_errors

if TYPE_CHECKING:
    from rich.progress import TaskID

corpora = typer.Typer(rich_markup_mode=None, help="List, describe, download and convert known corpora.")


@corpora.command("list")
@command
def list_() -> None:
    """List the known corpora: name, licence, how to get the files (by download or by hand), and title."""
    from herdner.corpora.registry import load_registry

    rows = [(name, c.licence, c.fetch, c.title) for name, c in load_registry().items()]
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("name", "licence", "fetch", "title")
    for row in rows:
        table.add_row(*map(Text, row))
    make_console().print(table)


@corpora.command("info")
@command
def info(name: Annotated[str, typer.Argument(help="Name in `herdner corpora list`.")]) -> None:
    """Describe a corpus: source, licence, labels, files and checksums."""
    import dataclasses

    from herdner.corpora.registry import info as find

    for field in dataclasses.fields(corpus := find(name)):
        value = getattr(corpus, field.name)
        if field.name == "files":
            for file in corpus.files:
                print(f"file: {file.name} ({file.size:,} bytes, SHA-256 {file.sha256})")
        elif field.name == "label_names":
            print(f"label_names: {', '.join(f'{old} -> {new}' for old, new in corpus.label_names.items())}")
        elif value not in (None, "", (), []):
            print(f"{field.name}: {' '.join(value.split()) if isinstance(value, str) else ', '.join(map(str, value))}")


@corpora.command("fetch")
@command
def fetch(
    name: Annotated[str, typer.Argument(help="Name in `herdner corpora list`.")],
    folder: Annotated[str | None, typer.Option("--folder", help="Target folder [default: the user's cache].")] = None,
    registry: Annotated[
        str | None, typer.Option("--registry", help="Registry file to use instead of herdner's.")
    ] = None,
) -> None:  # fmt: skip
    """Download a corpus, verify the size and checksum of every file, and print the path of the folder."""
    from herdner.corpora.files import fetch as fetch_corpus

    with show_progress("{task.percentage:.0f} %") as display:
        tasks: dict[str, TaskID] = {}

        def update(file: str, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = display.add_task(file, total=total)
            display.update(tasks[file], completed=done)

        path = fetch_corpus(name, folder, registry=registry, progress=update)
    print(path)


@corpora.command("convert")
@command
def convert(
    source: Annotated[str, typer.Argument(metavar="FILE:FORMAT", help="Input file, as in eng.testa:conll2003.")],
    tables: TableOptions,
    input_: opt.InputOption = None,
    format_: Annotated[str | None, typer.Option(
        "--format", "-f", metavar="FORMAT", help="Output format: jsonl, conll, text, ... [default: by the extension of "
        "--output, else jsonl].")] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="Output file; - is standard output.")] = "-",
    rename_labels: opt.RenameLabelsOption = False,
    encoding: Annotated[str | None, typer.Option(
        "--encoding", help="Encoding of the input files [default: the format's].")] = None,
) -> None:  # fmt: skip
    """Convert an annotated corpus to another format."""
    from herdner.cli.tag import choose_format
    from herdner.corpora.reading import convert as convert_file
    from herdner.corpora.reading import parse_source
    from herdner.text.tokenize import Tokenizer

    format_ = choose_format(format_, output, "jsonl")
    if encoding:
        check_encoding(encoding)
    check_format(input_)
    with usage_errors():
        source_file = parse_source(source, input_)
    check_output(output, [source_file.path])
    options = options_of(source_file, tables.read_options()) | ({"encoding": encoding} if encoding else {})
    with show_activity("converting"):
        count = convert_file(source_file, format_, output, core_labels=rename_labels, tokenizer=Tokenizer(), **options)
    if output != "-":
        print_note(f"{format_count(count, 'document')} written to {output}")
