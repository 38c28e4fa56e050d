"""Word documents (DOCX) for tests."""

from __future__ import annotations

import io
import zipfile
from xml.sax.saxutils import escape

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
TYPES = (
    f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>'
)


def relations(**targets: str) -> str:
    entries = "".join(
        f'<Relationship Id="r-{kind}" Type="{OFFICE}/{kind}" Target="{target}"/>' for kind, target in targets.items()
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{entries}</Relationships>'


def paragraph(text: str) -> str:
    return f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def docx_file(*paragraphs: str, body: str = "", notes: str | None = None, **members: str | bytes) -> bytes:
    """Return a document with these paragraphs, then XML of the body, and further members of the archive."""
    xml = f'<w:document xmlns:w="{WORD}"><w:body>{"".join(map(paragraph, paragraphs))}{body}</w:body></w:document>'
    files: dict[str, str | bytes] = {
        "[Content_Types].xml": TYPES, "_rels/.rels": relations(officeDocument="word/document.xml"),
        "word/document.xml": xml,
    }  # fmt: skip
    if notes is not None:
        files["word/_rels/document.xml.rels"] = relations(footnotes="footnotes.xml")
        files["word/footnotes.xml"] = f'<w:footnotes xmlns:w="{WORD}">{notes}</w:footnotes>'
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (files | members).items():
            archive.writestr(name, content)
    return stream.getvalue()
