"""The files that a command reads: folders and patterns spelled out, each file with its format and an id of its own."""

from __future__ import annotations

import glob
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from herdner.cli.common import complain
from herdner.cli.usage import UsageError

if TYPE_CHECKING:
    from herdner.text.document import Document, Failure
    from herdner.text.io.source import Source

FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE", help="Files or folders; - (or nothing, behind a pipe) is standard input."),
]
InputOption = Annotated[
    str | None,
    typer.Option(
        "--input", "-i", metavar="FORMAT", help="text, jsonl, conll, ... [default: by the file's extension, else text]"
    ),
]
PatternOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pattern",
        metavar="GLOB",
        help="Which files of a folder to read, as in '*.log'; may be repeated [default: those whose endings tell their "
        "format]. Hidden files are left out.",
    ),
]
ErrorsOption = Annotated[
    Literal["skip", "replace", "fail"] | None,
    typer.Option(
        "--errors",
        metavar="skip|replace|fail",
        help="What cannot be read or tagged: skip it, and what follows it in a file that breaks off; replace bytes "
        "that do not decode by U+FFFD; fail at the first, and write no --output [default: skip it; no --output where a "
        "file breaks off].",
    ),
]
ColumnOption = Annotated[
    str, typer.Option("--column", help="Column of CSV, TSV and Parquet files that holds the texts.")
]
MESSAGES = 100  # about documents that fail; the rest are counted
ENDINGS = 5  # of files that are left out, which are named


class Input(NamedTuple):
    """A file, or what else a reader looks into by itself, and the name of its format; None of a folder without files
    that tell theirs.
    """

    source: str | Source
    format: str | None

    @property
    def path(self) -> str:
        """As it was given."""
        return self.source if isinstance(self.source, str) else str(self.source.path or "-")


@dataclass
class Report:
    """What became of the inputs."""

    documents: int = 0
    tokens: int = 0
    failures: int = 0
    broken: bool = False  # a file broke off: what came before it is not all

    def fail(self, message: object) -> None:
        self.failures += 1
        if self.failures <= MESSAGES:
            complain(message)

    def close(self) -> None:
        """Exit code 1 where something failed."""
        if self.failures > MESSAGES:
            complain(f"{self.failures - MESSAGES} more failed")
        if self.failures:
            raise typer.Exit(1)


def expand(
    files: Sequence[str], format: str | None, patterns: Sequence[str] | None = None, errors: str | None = None
) -> list[Input]:
    """The inputs in the order given. A folder stands for the files in it that match one of the ``patterns`` or, without
    any, have an ending that tells the format; how many others there are is said in one line.

    Ids are paths from the folder that holds all that is given, so that no two are the same.
    """
    from herdner.corpora.formats import READABLE

    if format is not None and format not in READABLE:
        raise UsageError(f"--input {format!r}: expected one of {', '.join(READABLE)}")
    if not files:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("no FILE: name files or folders, or pipe text in")
        files = ["-"]
    if files.count("-") > 1:
        raise UsageError("standard input (-) can be read only once")
    inputs: list[Input] = []
    bases: list[Path] = []  # what holds each input, or is it
    for name in files:
        if not name:
            raise UsageError("a FILE without a name; . is the folder that you are in")
        path = Path(name)
        if path.is_dir():
            found = _in_folder(path, format, patterns or ())
            bases.append(path)
        else:
            found, base = _file(name, format)
            bases += [base] if base is not None else []
        inputs += found
    return _with_ids(inputs, bases, errors == "replace")


def _file(name: str, format: str | None) -> tuple[list[Input], Path | None]:
    """A file or standard input, or the files that a pattern matches, and the folder they are in."""
    from herdner.corpora.formats import format_of
    from herdner.text.io.source import FormatError, Source, sources

    path = Path(name)
    if name == "-":
        return [Input(sources(name, ())[0], format or "text")], None
    if not glob.has_magic(name) or path.exists():
        if format is None and path.suffix.lower() == ".json":
            complain(f"{name}: is read as text; annotations are read by --input label-studio, prodigy or doccano")
        return [Input(Source(name, path.name, path, None), format or format_of(path) or "text")], path.parent
    try:
        found = sources(name, ())
    except FormatError:
        return [Input(name, format or "text")], None  # whoever reads it says so, and the others are read
    base = next(parent for parent in path.parents if not glob.has_magic(str(parent)))
    return [Input(each, format or format_of(each.name) or "text") for each in found], base


def _in_folder(folder: Path, format: str | None, patterns: Sequence[str]) -> list[Input]:
    from herdner.corpora.formats import format_of
    from herdner.text.io.source import Source, matches, visible

    files = visible(folder)
    if patterns:
        chosen = [file for file in files if any(matches(file, folder, pattern) for pattern in patterns)]
        if not chosen:
            raise UsageError(f"--pattern: no file in {folder} matches {' or '.join(patterns)}")
    else:
        told = [(file, format_of(file)) for file in files]
        chosen = [file for file, own in told if own is not None and format in (None, own)]
        if not chosen:  # the endings of the corpora's own formats vary: their readers look for the files themselves
            return [Input(str(folder), format)]
        _tell_left_out(folder, set(files) - set(chosen))
    return [Input(Source(str(file), file.name, file, None), format or format_of(file) or "text") for file in chosen]


def _tell_left_out(folder: Path, files: Iterable[Path]) -> None:
    """One line on the files of a folder that are not read."""
    counts = Counter(file.suffix.lower() or "without an ending" for file in files)
    if not counts:
        return
    n, kinds = counts.total(), counts.most_common(ENDINGS)
    named = ", ".join(f"{count} {ending}" for ending, count in kinds)
    more = f", {n - sum(count for _, count in kinds)} others" if len(counts) > ENDINGS else ""
    mend = next((ending for ending, _ in kinds if ending.startswith(".")), ".log")
    files_ = "file is" if n == 1 else "files are"
    complain(f"{folder}: {n} {files_} left out ({named}{more}); to read such files, add --pattern '*{mend}'")


def _with_ids(inputs: Iterable[Input], bases: Sequence[Path], replace: bool) -> list[Input]:
    """The inputs with ids, without those that are named twice."""
    from herdner.text.io.source import named

    once: dict[str, Input] = {}
    twice: list[str] = []
    for each in inputs:
        path = each.source if isinstance(each.source, str) else each.source.name
        if once.setdefault(path, each) is not each:
            twice.append(path)
    if twice:
        more = f" and {len(twice) - 1} others" if len(twice) > 1 else ""
        complain(f"{twice[0]}{more}: named twice, read once")
    paths = [each.source.path for each in once.values() if not isinstance(each.source, str) and each.source.path]
    try:
        ids = dict(zip(paths, named(paths, Path(os.path.commonpath([base.absolute() for base in bases]))), strict=True))
    except ValueError:  # on several drives, or nothing but standard input
        ids = {path: str(path) for path in paths}
    found: list[Input] = []
    for source, format in once.values():
        if not isinstance(source, str):
            id = source.id if source.path is None else ids[source.path]
            source = source._replace(id=id, replace=replace)
        found.append(Input(source, format))
    return found


def read(
    inputs: Iterable[Input], encoding: str, done: Callable[[], object], **options: Any
) -> Iterator[Document | Failure]:
    """The documents of all inputs; what cannot be read is a `Failure`, and the next document or file follows.
    ``options`` are of the readers that take them.
    """
    from herdner.corpora.formats import read_items
    from herdner.text.document import Failure
    from herdner.text.io.source import FormatError

    for source, format in inputs:
        if format is None:
            yield Failure(FormatError(f"{source}: no file here has an ending that tells its format; add --pattern"))
        else:
            yield from read_items(source, format, encoding, **options)
        done()
