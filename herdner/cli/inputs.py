"""Input files of a command: expansion of folders and patterns, the format and the id of each file."""

from __future__ import annotations

import glob
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from herdner.cli.common import print_message, print_note
from herdner.cli.usage import UsageError, check_format, usage_errors

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.text.document import Document, Failure
    from herdner.text.io.source import Source

MAX_MESSAGES = 100  # messages about failures; further failures are only counted
ONE_TEXT = ("text", "markdown", "docx")  # formats whose files are one document each
MAX_EXTENSIONS = 5  # extensions of ignored files that one message lists


class CommandInput(NamedTuple):
    """Input of a command, with the name of the input's format.

    Attributes:
        source: A file, or the path of a folder or archive in which the reader finds the files.
        format: Name of the format; None for a folder without any file of a known extension.
    """

    source: str | Source
    format: str | None

    @property
    def path(self) -> str:
        """Path of the input as written in the command."""
        return self.source if isinstance(self.source, str) else str(self.source.path or "-")


@dataclass
class RunStatus:
    """Counts of the documents that one run of a command has processed.

    Attributes:
        errors: Value of ``--errors``.
        output: File that the command writes; None and "-" are standard output. Without ``errors``, a truncated input
            prevents the file.
        documents: Number of documents that succeeded.
        tokens: Number of tokens in the documents that succeeded.
        failures: Number of documents and files that failed.
        is_truncated: Whether a file ended too early, so that an unknown number of documents is missing.
    """

    errors: str | None = None
    output: str | None = None
    documents: int = 0
    tokens: int = 0
    failures: int = 0
    is_truncated: bool = False

    def fail(self, message: object) -> None:
        """Count a failed document or file, and print ``message`` unless many failures were printed before.

        Args:
            message: Message. After the first `MAX_MESSAGES` failures, messages are not printed.
        """
        self.failures += 1
        if self.failures <= MAX_MESSAGES:
            print_message(message)

    def add_failure(self, failure: Failure) -> None:
        """Count a document or file that cannot be read or tagged, and print its message.

        Args:
            failure: The failure.

        Raises:
            ValueError: ``errors`` is "fail".
        """
        if self.errors == "fail":
            raise ValueError(failure.message)
        self.is_truncated |= failure.is_truncated and self.errors is None and self.output not in (None, "-")
        self.fail(failure.message + ("; nothing is written (see --errors)" if self.is_truncated else ""))

    def successes(self, results: Iterable[Document | Failure]) -> Iterator[Document]:
        """Yield the tagged documents of a stream, and count documents, tokens and failures.

        Failures are not yielded.

        Args:
            results: Results of tagging.

        Raises:
            ValueError: A document failed, and ``errors`` is "fail".
        """
        from herdner.text.document import Failure

        for result in results:
            if isinstance(result, Failure):
                self.add_failure(result)
            else:
                self.documents += 1
                self.tokens += len(result.tokens)
                yield result

    def exit_without_output(self) -> None:
        """End the command with exit code 1 if it must not write its output: no document succeeded, or some are lost."""
        if self.is_truncated or (self.failures and not self.documents):
            self.exit_on_failure()

    def exit_on_failure(self) -> None:
        """End the command with exit code 1 if there was a failure.

        Raises:
            typer.Exit: A document or a file has failed.
        """
        if self.failures > MAX_MESSAGES:
            print_message(f"{self.failures - MAX_MESSAGES} further failures")
        if self.failures:
            raise typer.Exit(1)


def expand_inputs(
    files: Sequence[str], format: str | None, patterns: Sequence[str] | None = None, errors: str | None = None
) -> list[CommandInput]:
    """Return the input files that the FILE arguments of a command name, each with its format.

    A folder is expanded to its files that match a pattern or, without patterns, have a known extension. One message
    states the number of its other files. The id of a file is its path relative to the common parent folder, so that all
    ids differ.

    Args:
        files: Files, folders and patterns, each as FILE or FILE:FORMAT; "-" is standard input. An empty list means
            standard input, if it is a pipe.
        format: Format of the arguments without format; None stands for the format of each extension.
        patterns: Patterns for the files of folders.
        errors: Value of ``--errors``.

    Returns:
        The inputs in the given order, without repetitions.

    Raises:
        UsageError: The format is unknown, there is no file, or standard input is named twice.
    """
    from herdner.corpora.formats import split_format

    check_format(format)
    if not files:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("no FILE: name files or folders, or pipe text to the command")
        files = ["-"]
    if [split_format(file)[0] for file in files].count("-") > 1:
        raise UsageError("standard input (-) can be read only once; give - only once")
    inputs: list[CommandInput] = []
    folders: list[Path] = []  # folder of each input
    for argument in files:
        name, own_format = split_format(argument)
        if not name:
            raise UsageError("FILE is an empty string; use . for the current folder")
        _check_format_of(name)
        _check_is_path(name)
        path = Path(name)
        if path.is_dir():
            inputs += _expand_folder(path, own_format or format, patterns or ())
            folders.append(path)
        else:
            expanded, folder = _expand_file(name, own_format or format)
            inputs += expanded
            folders += [folder] if folder is not None else []
    return _with_ids(_without_repetitions(inputs), folders, errors == "replace")


def have_headings(inputs: Sequence[CommandInput]) -> bool:
    """Return True if there may be several documents, so that the output must show the id of each document.

    Args:
        inputs: Inputs of the command.
    """
    return len(inputs) > 1 or inputs[0].format not in ONE_TEXT


def output_folder(output: str | None, files: Sequence[str] | None, inputs: Sequence[CommandInput]) -> Path | None:
    """Return the folder that ``--output`` names, which receives one output file for each input file; None for a file.

    Args:
        output: The option. It names a folder if it ends in a slash or is a folder. A name that does not exist and has
            no extension is a folder if one of ``files`` is a folder.
        files: The FILE arguments.
        inputs: Input files; the id of each is the path of its output in the folder.

    Raises:
        UsageError: An output file is one of the inputs.
    """
    if output is None or output == "-":
        return None
    folder = Path(output)
    is_new = not folder.exists() and not folder.suffix and any(Path(file).is_dir() for file in files or ())
    if not (is_new or output.endswith(("/", os.sep)) or folder.is_dir()):
        return None
    sources = [each.source for each in inputs if not isinstance(each.source, str)]
    existing = {source.path.resolve() for source in sources if source.path is not None}
    for source in sources:
        if source.path is not None and (path := folder / source.id).resolve() in existing:
            raise UsageError(f"--output {output}: the file {path} is also an input; name another folder")
    return folder


def output_path(folder: Path, id: str) -> str:
    """Return the path of the output for one input in a folder, and create the parent folders of this path.

    Args:
        folder: Value of ``--output``.
        id: Document id of the input, which is a relative path.

    Raises:
        ValueError: The path is not within the folder.
    """
    path = folder / id
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(
            f"{path}: this output file would be outside the folder {folder}; set --output to a file, not to a folder"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    return str(path)


def _expand_file(name: str, format: str | None) -> tuple[list[CommandInput], Path | None]:
    """Return the input files that an argument names, and the folder that contains all of them (None if unknown).

    The argument is a file, "-" for standard input, or a pattern.
    """
    from herdner.corpora.formats import format_of
    from herdner.text.io.source import FormatError, Source, sources

    path = Path(name)
    if name == "-":
        return [CommandInput(sources(name, ())[0], format or "text")], None
    if not glob.has_magic(name) or path.exists():
        if format is None and path.suffix.lower() == ".json":
            print_note(
                f"{name}: is read as text; to read annotations, add --input label-studio, prodigy or doccano; to read"
                " an array of objects, write one object on each line, as jq -c '.[]' does, and add --input jsonl"
            )
        elif format is None and path.suffix.lower() in (".xml", ".tei"):
            print_note(f"{name}: is read as text with its tags; to leave out the tags, add --input html")
        return [CommandInput(Source(name, path.name, path, None), format or format_of(path) or "text")], path.parent
    try:
        matches = sources(name, ())
    except FormatError:
        return [CommandInput(name, format or "text")], None  # the reader reports the error, then other files are read
    folder = next(parent for parent in path.parents if not glob.has_magic(str(parent)))
    return [CommandInput(each, format or format_of(each.name) or "text") for each in matches], folder


def _check_is_path(name: str) -> None:
    """Raise a usage error if an argument is not the path of a file but a text or an address."""
    if os.path.lexists(name):
        return
    if "://" in name:
        raise UsageError(f"{name}: addresses are read only by `herdner tag --cluster`; download the file first")
    if glob.has_magic(name) or os.sep in name:
        return
    suffix = Path(name).suffix.removeprefix(".")
    has_suffix = suffix.split() == [suffix]  # the text after the last period of a sentence contains a space
    if len(name.split()) > 2 and not has_suffix:
        raise UsageError(f"{name!r:.60}: no such file; pipe the text to the command instead")


def _check_format_of(name: str) -> None:
    """Raise a usage error if an argument consists of an existing file, a colon and an unknown format."""
    file, colon, format = name.rpartition(":")
    if colon and format.isidentifier() and Path(file).exists() and not Path(name).exists():
        from herdner.corpora.reading import parse_source

        with usage_errors():
            parse_source(name)


def _expand_folder(folder: Path, format: str | None, patterns: Sequence[str]) -> list[CommandInput]:
    from herdner.corpora.formats import format_of
    from herdner.text.io.source import Source, matches_pattern, visible_files

    files = visible_files(folder)
    if patterns:
        selected = [file for file in files if any(matches_pattern(file, folder, pattern) for pattern in patterns)]
        if not selected:
            raise UsageError(f"--pattern: no file in {folder} matches {' or '.join(patterns)}")
    else:
        formats = {file: format_of(file) for file in files}
        selected = [file for file, own in formats.items() if own is not None and format in (None, own)]
        if not selected:  # readers of corpora know the names of their files
            return [CommandInput(str(folder), format)]
        _print_ignored(folder, set(files) - set(selected))
    return [CommandInput(Source(str(file), file.name, file, None), format or format_of(file) or "text")
            for file in selected]  # fmt: skip


def _print_ignored(folder: Path, files: Iterable[Path]) -> None:
    """Print how many files of a folder are ignored, for each file extension, and how to read those that are text."""
    from herdner.text.io.source import looks_like_text

    files = sorted(files)
    counts = Counter(file.suffix.lower() or "without extension" for file in files)
    if not counts:
        return
    n, extensions = counts.total(), counts.most_common(MAX_EXTENSIONS)
    listed = ", ".join(f"{count} {extension}" for extension, count in extensions)
    others = f", {n - sum(count for _, count in extensions)} others" if len(counts) > MAX_EXTENSIONS else ""
    first = {file.suffix.lower(): file for file in reversed(files)}  # one file of each extension
    example = next((suffix for suffix, _ in extensions if suffix in first and looks_like_text(first[suffix])), None)
    advice = "" if example is None else f"; to read such files, add --pattern '*{example}'"
    verb = "file is" if n == 1 else "files are"
    print_note(f"{folder}: {n} {verb} ignored ({listed}{others}){advice}")


def _without_repetitions(inputs: Iterable[CommandInput]) -> list[CommandInput]:
    unique: dict[str, CommandInput] = {}
    repeated: list[str] = []
    for each in inputs:
        path = each.source if isinstance(each.source, str) else each.source.name
        if unique.setdefault(path, each) is not each:
            repeated.append(path)
    if repeated:
        others = f" and {len(repeated) - 1} others" if len(repeated) > 1 else ""
        print_note(f"{repeated[0]}{others}: named more than once, but read only once")
    return list(unique.values())


def _with_ids(inputs: Sequence[CommandInput], folders: Sequence[Path], replace: bool) -> list[CommandInput]:
    """Return the inputs with document ids that are relative to the common parent folder of all files."""
    from herdner.text.io.source import unique_ids

    paths = [each.source.path for each in inputs if not isinstance(each.source, str) and each.source.path]
    try:
        parent = Path(os.path.commonpath([folder.absolute() for folder in folders]))
        ids = dict(zip(paths, unique_ids(paths, parent), strict=True))
    except ValueError:  # files on several drives, or only standard input
        ids = {path: str(path) for path in paths}
    result: list[CommandInput] = []
    for source, format in inputs:
        if not isinstance(source, str):
            id = source.id if source.path is None else ids[source.path]
            source = source._replace(id=id, replace=replace)
        result.append(CommandInput(source, format))
    return result


class LanguageMessages:
    """Messages, at most one per file, about texts whose language is not the language of the model.

    Args:
        tagger: Tagger of the command.
    """

    def __init__(self, tagger: Tagger) -> None:
        """Store the language check of the tagger."""
        self._check = tagger.language_check
        self._checks: dict[str, Callable[[Document], str | None]] = {}  # of the file that is being tagged
        self._names: deque[str] = deque()  # files of the documents that are being tagged
        self._reported: set[str] = set()

    def add_file(self, name: str) -> None:
        """Record the name of the file that contains the next document.

        Args:
            name: Name of the file.
        """
        self._names.append(name)

    def check(self, results: Iterable[Document | Failure]) -> Iterator[Document | Failure]:
        """Yield the results of tagging; print a message about each file's first document not in the model's language.

        Args:
            results: One result for each call of `add_file`, in the same order.
        """
        from herdner.text.document import Failure

        for result in results:
            name = self._names.popleft()
            if name not in self._checks:
                self._checks = {name: self._check.of_stream()}
            check = self._checks[name]
            if name not in self._reported and not isinstance(result, Failure) and (other := check(result)):
                self.report(name, other)
            yield result

    def report(self, name: str, other: str) -> None:
        """Print the message about a file with a text that is not in the model's language.

        Args:
            name: Name of the file.
            other: Code of the language of the text.
        """
        self._reported.add(name)
        print_note(self._check.message(other, f"{name}: the text", command_line=True))
