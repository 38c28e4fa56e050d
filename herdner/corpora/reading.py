"""Reading and converting corpora: any file of a known format, registered or not."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from herdner.base.files import atomic_write
from herdner.corpora.formats import ANNOTATION_OPTIONS, FORMATS, READABLE, format_of, read_documents, write_documents
from herdner.corpora.registry import Corpus, load_registry
from herdner.text.document import Document


class SourceFile(NamedTuple):
    """A file (or whatever else `herdner.text.io.read_documents` reads) and its format."""

    path: str
    format: str


def parse_source(argument: str) -> SourceFile:
    """Take ``FILE:FORMAT`` apart; the format may be left out where the ending tells it (`herdner.text.io.format_of`).

    A path may hold colons: what follows the last one is a format only if it has that form, and a file that exists under
    the whole name is taken as it is. Raises ValueError with a line that names the formats.
    """
    head, colon, tail = argument.rpartition(":")
    whole = Path(argument)
    by_extension = format_of(argument)
    formats = READABLE
    if colon and head and tail in formats and not (whole.exists() and not Path(head).exists()):
        return SourceFile(head, tail)
    if by_extension and (whole.exists() or not colon or not tail.isidentifier()):
        return SourceFile(argument, by_extension)
    known = f"expected FILE:FORMAT with one of {', '.join(formats)}"
    if not argument or (colon and not head):
        raise ValueError(f"{argument!r} names no file; {known}")
    if colon and tail.isidentifier() and not whole.exists():
        near = difflib.get_close_matches(tail.lower(), formats, n=1)
        raise ValueError(
            f"{argument!r}: unknown format {tail!r}{f' (did you mean {near[0]}?)' if near else ''}; {known}"
        )
    raise ValueError(f"{argument!r}: the extension does not tell the format; {known}")


def label_map(format: str, registry: Mapping[str, Corpus] | None = None) -> dict[str, str | None] | None:
    """How the registry maps the classes of the corpora of a format to PER, LOC and ORG; None for general formats.

    A format belongs to the annotated corpora that it serves, which must agree (``conll2003``).
    """
    corpora = (load_registry() if registry is None else registry).values()
    owners = [corpus for corpus in corpora if corpus.task == "ner" and corpus.format == format]
    general = bool(FORMATS[format].extensions) and format != "uner"
    agreed = bool(owners) and all(corpus.label_map == owners[0].label_map for corpus in owners)
    return owners[0].label_map if agreed and not general else None


def read(source: str | SourceFile, *, map_labels: bool = False, **options: Any) -> Iterator[Document]:
    """The documents of ``FILE:FORMAT``, streaming; ``options`` are those of `herdner.text.io.read_documents`.

    With ``map_labels`` the classes of a registered corpus become PER, LOC and ORG and the others are dropped
    (`label_map`); tags are then IOB2. Raises ValueError, or FormatError when iteration gets to the fault.
    """
    path, format = parse_source(source) if isinstance(source, str) else source
    if map_labels and (labels := label_map(format)) is not None:
        options.setdefault("labels", labels)
    return read_documents(path, format, **options)


def convert(
    source: str | SourceFile,
    target_format: str,
    output: str | os.PathLike[str],
    *,
    map_labels: bool = False,
    **options: Any,
) -> int:
    """Write the documents of ``FILE:FORMAT`` in another format, streaming, and return how many there were.

    ``output`` is complete or is left as it was; ``"-"`` is standard output. Other arguments as for `read`; a column
    format can only be written of text with a ``tokenizer``. Raises ValueError (FormatError among them) and OSError.
    """
    count = 0

    def counted() -> Iterator[Document]:
        nonlocal count
        for document in read(source, map_labels=map_labels, **options):
            count += 1
            yield document

    if str(output) == "-":
        write_documents(counted(), sys.stdout, target_format, **ANNOTATION_OPTIONS.get(target_format, {}))
        return count
    with atomic_write(output) as stream:
        write_documents(counted(), stream, target_format, **ANNOTATION_OPTIONS.get(target_format, {}))
    return count
