"""``herdner corpora``: the registry of known corpora, checked downloads, conversion."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from herdner.cli.common import command, progress, working
from herdner.cli.options import MapLabelsOption
from herdner.cli.usage import check_encoding, check_not_input, wrong_use

if TYPE_CHECKING:
    from rich.progress import TaskID

corpora = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Known corpora: list, describe, fetch and convert them."
)


@corpora.command("list")
@command
def list_() -> None:
    """One line per corpus: name, licence, how to get it, title (separated by tabs in a pipe)."""
    from herdner.corpora.registry import load_registry

    rows = [(name, c.licence, c.fetch, c.title) for name, c in load_registry().items()]
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("name", "licence", "fetch", "title")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


@corpora.command("info")
@command
def info(name: Annotated[str, typer.Argument(help="A name of `herdner corpora list`.")]) -> None:
    """All that is known of a corpus: source, licence, classes, files and checksums."""
    import dataclasses

    from herdner.corpora.registry import info as find

    for field in dataclasses.fields(corpus := find(name)):
        value = getattr(corpus, field.name)
        if field.name == "files":
            for file in corpus.files:
                print(f"file: {file.name} ({file.size:,} bytes, SHA-256 {file.sha256})")
        elif field.name == "labels":
            print(f"labels: {', '.join(f'{old} -> {new}' for old, new in corpus.labels.items())}")
        elif value not in (None, "", (), []):
            print(f"{field.name}: {' '.join(value.split()) if isinstance(value, str) else ', '.join(map(str, value))}")


@corpora.command("fetch")
@command
def fetch(
    name: Annotated[str, typer.Argument(help="A name of `herdner corpora list`.")],
    folder: Annotated[str | None, typer.Option("--folder", help="Where to put it [default: the user's cache].")] = None,
    registry: Annotated[str | None, typer.Option("--registry", help="Another registry file.")] = None,
) -> None:
    """Download a corpus; size and checksum of every file are verified. Prints the folder."""
    from herdner.corpora.files import fetch as get

    with progress("{task.percentage:.0f} %") as display:
        tasks: dict[str, TaskID] = {}

        def show(file: str, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = display.add_task(file, total=total)
            display.update(tasks[file], completed=done)

        where = get(name, folder, registry=registry, progress=show)
    print(where)


@corpora.command("convert")
@command
def convert(
    source: Annotated[str, typer.Argument(metavar="FILE:FORMAT", help="What to read, as in eng.testa:conll2003.")],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="What to write: jsonl, conll, text, ... [default: by the ending of --output, else jsonl].",
        ),
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write; - is standard output.")] = "-",
    map_labels: MapLabelsOption = False,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of the input files [default: the format's].")
    ] = None,
) -> None:
    """Convert an annotated corpus to another format."""
    from herdner.cli.tag import output_format
    from herdner.corpora.reading import convert as write
    from herdner.corpora.reading import parse_source
    from herdner.text.tokenize import Tokenizer

    format_ = output_format(format_, None if output == "-" else output, "jsonl")
    if encoding:
        check_encoding(encoding)
    with wrong_use():
        parsed = parse_source(source)
    check_not_input(output, [parsed.path])
    options = {"encoding": encoding} if encoding else {}
    with working("converting"):
        count = write(parsed, format_, output, map_labels=map_labels, tokenizer=Tokenizer(), **options)
    if output != "-":
        print(f"{count:,} documents written to {output}", file=sys.stderr)
