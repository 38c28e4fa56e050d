"""Reading and conversion of annotated files, with the label names of registered corpora."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from herdner.corpora.formats import FORMATS, READABLE, format_of, read_documents, split_format, write_documents
from herdner.corpora.registry import Corpus, load_registry
from herdner.text.document import Document

ANNOTATION_OPTIONS: Mapping[str, dict[str, Any]] = {
    "label-studio": {"annotations": True},
    "prodigy": {"answer": "accept"},
}
"""Options of writers that mark the entities as a finished annotation; by default they are written as predictions."""


class FileAndFormat(NamedTuple):
    """File to read and the name of its format.

    The file may be another argument of `herdner.corpora.formats.read_documents`, such as a stream.
    """

    path: str
    format: str


def parse_source(argument: str, default: str | None = None) -> FileAndFormat:
    """Split an argument ``FILE:FORMAT`` into the file and its format.

    Args:
        argument: The text, as in `split_format`. The format may be omitted if ``default`` or the file extension
            determines it (`herdner.corpora.formats.format_of`).
        default: Format of arguments without format; None: the file extension determines it.

    Returns:
        The file and its format.

    Raises:
        ValueError: The format is unknown or missing.
    """
    path, format = split_format(argument)
    if format is not None:
        return FileAndFormat(path, format)
    head, colon, tail = argument.rpartition(":")
    whole = Path(argument)
    by_extension = format_of(argument) if default is None else default
    if by_extension and (whole.exists() or not colon or not tail.isidentifier()):
        return FileAndFormat(argument, by_extension)
    expected = f"expected FILE:FORMAT with one of {', '.join(READABLE)}"
    if not argument or (colon and not head):
        raise ValueError(f"{argument!r} contains no file name; {expected}")
    if colon and tail.isidentifier() and not whole.exists():
        near = difflib.get_close_matches(tail.lower(), READABLE, n=1)
        raise ValueError(
            f"{argument!r}: unknown format {tail!r}{f' (did you mean {near[0]}?)' if near else ''}; {expected}"
        )
    if whole.is_dir():
        problem = "a folder needs a format, as in FOLDER:brat"
    elif whole.suffix.lower() == ".json":
        problem = "several formats have the file extension .json; add the format, as in FILE:label-studio"
    else:
        problem = "the file extension belongs to no format"
    raise ValueError(f"{argument!r}: {problem}; {expected}")


def corpus_label_names(format: str, registry: Mapping[str, Corpus] | None = None) -> dict[str, str | None] | None:
    """Return the dict that renames labels of the registered corpora of a file format; None if the corpora disagree.

    Args:
        format: Name of a format.
        registry: The registry; by default herdner's.

    Returns:
        The argument ``names`` of `herdner.text.labels.rename_labels` that maps labels to PER, LOC and ORG. None if the
        format is a general one, or if its corpora have different label names.
    """
    corpora = (load_registry() if registry is None else registry).values()
    owners = [corpus for corpus in corpora if corpus.task == "ner" and corpus.format == format]
    is_general = bool(FORMATS[format].extensions) and format != "uner"
    is_unique = bool(owners) and all(corpus.all_label_names == owners[0].all_label_names for corpus in owners)
    return owners[0].all_label_names if is_unique and not is_general else None


def read(source: str | FileAndFormat, *, core_labels: bool = False, **options: Any) -> Iterator[Document]:
    """Read the documents of a file. ``source`` is the text "FILE:FORMAT", or a pair of a file and a format name.

    Args:
        source: The file and the name of its format.
        core_labels: Rename the labels of a registered corpus to PER, LOC and ORG and remove all others
            (`corpus_label_names`); the tags are then IOB2.
        **options: Options of `herdner.corpora.formats.read_documents`.

    Returns:
        An iterator over the documents.

    Raises:
        ValueError: The format or an option is unknown.
        FormatError: The input is invalid. It is raised during iteration.
    """
    path, format = parse_source(source) if isinstance(source, str) else source
    if core_labels and (labels := corpus_label_names(format)) is not None:
        options.setdefault("labels", labels)
    return read_documents(path, format, **options)


def convert(
    source: str | FileAndFormat,
    target_format: str,
    output: str | os.PathLike[str],
    *,
    core_labels: bool = False,
    **options: Any,
) -> int:
    """Convert the documents in ``source``, a pair of a file and its format, to another format.

    Args:
        source: The file and its format.
        target_format: Name of the other format. Column formats need tokens: give a ``tokenizer`` for plain text.
        output: The file to write, which is replaced only after success, or ``"-"`` for standard output.
        core_labels: As in `read`.
        **options: Options of `herdner.corpora.formats.read_documents`.

    Returns:
        The number of documents.

    Raises:
        ValueError: A format or an option is unknown, or the input is invalid.
        OSError: The output cannot be written.
    """
    count = 0

    def documents() -> Iterator[Document]:
        nonlocal count
        for document in read(source, core_labels=core_labels, **options):
            count += 1
            yield document

    stream = sys.stdout if str(output) == "-" else output
    write_documents(documents(), stream, target_format, **ANNOTATION_OPTIONS.get(target_format, {}))
    return count
