"""``herdner tag``: names of files, folders or standard input, streaming."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from herdner.cli.common import (
    BackendOption,
    EncodingOption,
    ModelOption,
    SeedOption,
    SetOption,
    UsageError,
    check_encoding,
    check_writable,
    command,
    complain,
    destination,
    inference,
    progress,
)

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.ner.document import Document

# Longer text files are tagged in pieces, cut at a blank line, so that memory stays small.
PIECE_CHARACTERS = 1_000_000


class Input(NamedTuple):
    """A file (or ``-``) and the name of its format."""

    path: str
    format: str


@dataclass
class Report:
    """What became of the inputs."""

    documents: int = 0
    tokens: int = 0
    failures: int = 0

    def fail(self, message: object) -> None:
        self.failures += 1
        complain(message)


@command
def tag(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Files or folders; - (or nothing, behind a pipe) is standard input."),
    ] = None,
    model: ModelOption = "en",
    backend: BackendOption = None,
    set_: SetOption = None,
    input_: Annotated[
        str | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FORMAT",
            help="text, jsonl, conll, ... [default: by the file's extension, else text]",
        ),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help="text, jsonl, conll, html or spacy.")
    ] = "text",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write this file, when all is done, instead of standard output."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes that tag at the same time.")] = 1,
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty", help="Average the confidence of names over the model's particles.")
    ] = False,
    seed: SeedOption = 0,
    encoding: EncodingOption = "utf-8",
) -> None:
    """Find the names in texts.

    A text file longer than a million characters is tagged in pieces cut at blank lines; each piece is a document
    (its id ends in #1, #2, ...).
    """
    inputs = expand(files or [], input_)
    check_output(format_, output)
    check_encoding(encoding)
    import herdner

    tagger = herdner.load(model)
    from herdner.cli.tagging import tagged
    from herdner.ner.io import write_documents

    options = inference(backend, set_, tagger)
    if uncertainty:
        check_particles(tagger, model)
        options["uncertainty"] = True
    report = Report()
    on_terminal = (output is None or output == "-") and sys.stdout.isatty()
    with progress("{task.fields[words]:,} tokens", shown=not on_terminal) as display:
        task = display.add_task("tagging", total=len(inputs), words=0)

        def counted(documents: Iterable[Document]) -> Iterator[Document]:
            for document in documents:
                report.documents += 1
                report.tokens += len(document.tokens)
                display.update(task, words=report.tokens)
                yield document

        sources = read(inputs, encoding, report, lambda: display.advance(task))
        documents = tagged(tagger, sources, inference=options, seed=seed, jobs=jobs, model=model, fail=report.fail)
        with destination(output) as stream:
            write_documents(counted(documents), stream, format_)
            if report.failures and not report.documents:
                raise typer.Exit(1)  # nothing to show: an older output file stays
    if report.failures:
        raise typer.Exit(1)


def check_output(format: str, output: str | None) -> None:
    """Wrong use before any work is done: a format that cannot be written, bytes on a terminal."""
    from herdner.ner.io import FORMATS

    known = [name for name, entry in FORMATS.items() if entry.write is not None]
    if format not in known:
        raise UsageError(f"--format {format!r}: expected one of {', '.join(known)}")
    if format == "spacy" and output in (None, "-") and sys.stdout.isatty():
        raise UsageError("--format spacy is binary: add --output FILE")
    check_writable(output)


def check_particles(tagger: Tagger, model: str) -> None:
    """ValueError for a model that cannot say how sure it is of its own tables."""
    if tagger.model_.particles is None:
        raise ValueError(
            f"--uncertainty: model {model} has no particles to average over; train it with herdner train --particles 32"
        )


def expand(files: list[str], format: str | None) -> list[Input]:
    """The inputs in the order given; a folder stands for the files in it whose extension is known, sorted."""
    from pathlib import Path

    from herdner.ner.corpora import EXTENSIONS
    from herdner.ner.io import FORMATS

    known = [name for name, entry in FORMATS.items() if entry.read is not None]
    if format is not None and format not in known:
        raise UsageError(f"--input {format!r}: expected one of {', '.join(known)}")
    if not files:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("no FILE: name files or folders, or pipe text in")
        files = ["-"]
    if files.count("-") > 1:
        raise UsageError("standard input (-) can be read only once")
    inputs: list[Input] = []
    for name in files:
        path = Path(name)
        if name == "-" or not path.is_dir():
            inputs.append(Input(name, format or _format_of(path, EXTENSIONS) or "text"))
            continue
        found = [(str(file), _format_of(file, EXTENSIONS)) for file in sorted(path.rglob("*")) if file.is_file()]
        chosen = [Input(file, own) for file, own in found if own is not None and format in (None, own)]
        # The extensions of the corpora's own formats vary: their readers look for the files themselves.
        inputs += chosen or [Input(name, format or "text")]
    return inputs


def _format_of(path: Any, extensions: dict[str, str]) -> str | None:
    return extensions.get(type(path)(path.name.removesuffix(".gz")).suffix.lower())


def read(inputs: list[Input], encoding: str, report: Report, done: Any) -> Iterator[Document]:
    """The documents of all inputs; a file that cannot be read is reported, and the next one follows."""
    from herdner.ner.io import FORMATS, read_documents

    for path, format in inputs:
        options: dict[str, Any] = {"max_chars": PIECE_CHARACTERS} if format == "text" else {}
        if "encoding" in FORMATS[format].read_options and (encoding != "utf-8" or format in ("text", "jsonl", "conll")):
            options["encoding"] = encoding
        try:
            yield from read_documents(path, format, **options)
        except (ValueError, OSError) as error:
            report.fail(error)
        done()
