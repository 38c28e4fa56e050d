"""Reading and writing documents."""

from herdner.text.io.formats import FORMATS, Format, read_documents, tokenized, write_documents
from herdner.text.io.source import FormatError

__all__ = ["FORMATS", "Format", "FormatError", "read_documents", "tokenized", "write_documents"]
