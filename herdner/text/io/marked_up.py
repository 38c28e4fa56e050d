"""Readers of Markdown and of Word documents (DOCX), which other libraries convert to HTML."""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from herdner.base.extras import import_extra
from herdner.base.memory import check_memory
from herdner.base.messages import one_line
from herdner.text.document import Document
from herdner.text.io.pages import html_text
from herdner.text.io.source import FormatError, Input, Source, open_bytes, read_whole, sources

MAX_MARKDOWN_CHARACTERS = 1 << 24  # the parser needs about 100 bytes of memory for each character
MAX_DOCX_BYTES = 1 << 27
MAX_DOCX_MEMBERS = 10_000
MAX_XML_BYTES = 1 << 24
PARSED_BYTES = 200  # memory of the parser for each byte of XML, as measured for elements without attributes
_FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n((?:[\w-]+[ \t]*:(?:[ \t].*)?\r?\n)(?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)
_DIRECTORY_ENTRY = b"PK\x01\x02"  # first bytes of each entry in the directory of a zip archive
_DEFINITIONS = tuple("<!DOCTYPE".encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be"))


def read_markdown(where: Input, *, encoding: str = "utf-8") -> Iterator[Document]:
    """Read documents from Markdown files: the text without markup.

    The syntax is CommonMark with tables and strikethrough. A blank line separates paragraphs, headings, cells and list
    items. Addresses of links and images are left out. Each line of YAML front matter is a paragraph.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        encoding: Encoding of the files.

    Yields:
        A document for each file with text.

    Raises:
        FormatError: A file cannot be read or is too long.
        MissingExtra: markdown-it-py is not installed.
    """
    markdown = import_extra("markdown_it", "reading Markdown needs markdown-it-py")
    parser = markdown.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for source in sources(where, ("*.md", "*.markdown")):
        remedy = "split the file, or add --input text"
        text = read_whole(source, encoding, max_chars=MAX_MARKDOWN_CHARACTERS, remedy=remedy)
        front = _FRONT_MATTER.match(text)
        lines = [] if front is None else front[1].splitlines()
        page = "".join(f"<p>{html.escape(line.strip())}</p>" for line in lines)
        if text := html_text(page + parser.render(text if front is None else text[front.end() :])):
            yield Document.from_text(text, id=source.document_id())


def read_docx(where: Input) -> Iterator[Document]:
    """Read documents from Word files (.docx): the text with footnotes and text boxes, without pictures and comments.

    A blank line separates paragraphs, cells and list items. Inserted text is read, deleted text is not. Macros and
    linked files are never opened.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).

    Yields:
        A document for each file with text.

    Raises:
        FormatError: A file is too large, damaged or not a DOCX file.
        MissingExtra: mammoth is not installed.
        NotEnoughMemory: The document does not fit into memory.
    """
    mammoth = import_extra("mammoth", "reading DOCX needs mammoth")
    for source in sources(where, ("*.docx",)):
        with open_bytes(source) as stream:
            data: bytes = stream.read(MAX_DOCX_BYTES + 1)
        try:
            page: Any = mammoth.convert_to_html(
                _xml_parts(source, data), convert_image=_no_picture, include_embedded_style_map=False,
                external_file_access=False,
            ).value  # fmt: skip
        except (FormatError, MemoryError):
            raise
        except Exception as error:  # zipfile and the parsers raise many types for damaged files
            message = f"damaged DOCX file ({one_line(error):.200}); save the document again"
            raise FormatError(f"{source.name}: {message}") from None
        if text := html_text(page):
            yield Document.from_text(text, id=source.document_id())


def _no_picture(_: object) -> list[object]:
    return []


def _xml_parts(source: Source, data: bytes) -> io.BytesIO:
    """Check the size of a DOCX file, and return a zip archive that contains only the XML parts of the file.

    Pictures and other members are left out, so that the reader cannot unpack them.
    """
    if len(data) > MAX_DOCX_BYTES:
        limit = f"{MAX_DOCX_BYTES >> 20} MiB"
        raise FormatError(f"{source.name}: the file has more than {limit}; delete its pictures, or save it as text")
    if not data.startswith(b"PK"):
        raise FormatError(f"{source.name}: the file is not a DOCX document; save it as DOCX or as text")
    if data.count(_DIRECTORY_ENTRY) > MAX_DOCX_MEMBERS:
        raise FormatError(f"{source.name}: the archive has more than {MAX_DOCX_MEMBERS:,} members; save it as text")
    parts = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(parts, "w") as copy:
        members = [member for member in archive.infolist() if member.filename.endswith((".xml", ".rels"))]
        size = sum(member.file_size for member in members)
        if size > MAX_XML_BYTES:
            sizes = f"{size >> 20} MiB of XML; expected at most {MAX_XML_BYTES >> 20} MiB"
            raise FormatError(f"{source.name}: the document unpacks to {sizes}; split the document, or save it as text")
        check_memory(PARSED_BYTES * size, f"{source.name}: reading the document", "save it as text")
        for member in members:
            xml = archive.read(member)  # at most as many bytes as the directory states
            if any(each in xml for each in _DEFINITIONS):
                problem = f"{member.filename} defines XML entities, which DOCX files must not contain"
                raise FormatError(f"{source.name}: {problem}; save the document again")
            copy.writestr(member.filename, xml)
    parts.seek(0)
    return parts
