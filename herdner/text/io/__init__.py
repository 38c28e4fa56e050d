"""Reading and writing documents."""

from herdner.text.io.formats import (
    FORMATS,
    READABLE,
    WRITABLE,
    Format,
    format_of,
    read_documents,
    tokenized,
    write_documents,
)
from herdner.text.io.source import FormatError

__all__ = [
    "FORMATS",
    "READABLE",
    "WRITABLE",
    "Format",
    "FormatError",
    "format_of",
    "read_documents",
    "tokenized",
    "write_documents",
]
