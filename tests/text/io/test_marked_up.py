"""Text of Markdown files and of Word documents."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from word_files import WORD, docx_file, paragraph

from herdner.base.memory import NotEnoughMemory
from herdner.corpora.formats import read_documents
from herdner.text.io import marked_up
from herdner.text.io.source import FormatError


def texts(data: bytes, format: str) -> list[str]:
    return [document.text for document in read_documents(io.BytesIO(data), format)]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("# Ada *Lovelace*\n\nmet **Bob**.\n", "Ada Lovelace\n\nmet Bob."),
        ("Ada<sup>1</sup> met Bob.\n", "Ada¹ met Bob."),
        ("Ada [Lovelace](http://x.org 'title') met\nBob.", "Ada Lovelace met Bob."),
        ("* Ada\n* Bob\n\n> quoted\n> Zoë", "Ada\n\nBob\n\nquoted Zoë"),
        ("| a | b |\n|---|---|\n| Ada | ~~Bob~~ |\n", "a\n\nb\n\nAda\n\nBob"),
        ("<div>Ada <b>Love</b>lace</div>\n\n<script>alert('Bob')</script>\n", "Ada Lovelace"),
        ("one  \ntwo \\* three &amp; four", "one\ntwo * three & four"),
        ("```\nAda = 1\nBob = 2\n```\n", "Ada = 1\nBob = 2"),
        ("![a picture](x.png)Ada", "Ada"),
        (
            "---\ntitle: Ada & Bob\nauthor: Zoë <zoe@x.org>\n---\n# Notes\n",
            "title: Ada & Bob\n\nauthor: Zoë <zoe@x.org>\n\nNotes",
        ),
        ("---\r\ndate: 3\r\ntags:\r\n  - Kenya\r\n...\r\nAda", "date: 3\n\ntags:\n\n- Kenya\n\nAda"),
        ("---\n\ntitle: Ada\n\n---\nBob", "title: Ada\n\nBob"),
    ],
)
def test_markdown_without_markup(source: str, text: str):
    assert texts(source.encode(), "markdown") == [text]


def test_markdown_without_text_gives_no_document():
    assert texts(b"<!-- Ada -->\n\n---\n", "markdown") == []


def test_long_markdown_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(marked_up, "MAX_MARKDOWN_CHARACTERS", 10)
    assert texts(b"0123456789", "markdown") == ["0123456789"]
    with pytest.raises(FormatError, match="more than 10 characters; split the file, or add --input text"):
        texts(b"01234567890", "markdown")


@pytest.fixture(autouse=True)
def _mammoth(request: pytest.FixtureRequest) -> None:
    if "docx" in request.node.name:
        pytest.importorskip("mammoth", reason="needs mammoth: pip install '.[files]'")


def test_docx_text(tmp_path: Path):
    body = (
        f"<w:tbl><w:tr><w:tc>{paragraph('Ada')}</w:tc><w:tc>{paragraph('Oslo')}</w:tc></w:tr></w:tbl>"
        "<w:p><w:r><w:t>Bob </w:t></w:r><w:ins><w:r><w:t>Lim</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>Doe</w:delText></w:r></w:del><w:r><w:br/><w:t>left.</w:t></w:r></w:p>"
    )
    (tmp_path / "a.docx").write_bytes(docx_file("Zoë & Co. <met>", body=body))
    (document,) = read_documents(str(tmp_path / "a.docx"), "docx")
    assert (document.id, document.text) == ("a.docx", "Zoë & Co. <met>\n\nAda\n\nOslo\n\nBob Lim\nleft.")


def test_docx_footnotes():
    body = '<w:p><w:r><w:t>See</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    notes = f'<w:footnote w:id="2">{paragraph("Ada Lovelace wrote it.")}</w:footnote>'
    (text,) = texts(docx_file(body=body, notes=notes), "docx")
    assert "Ada Lovelace wrote it." in text


def damaged() -> dict[str, tuple[bytes, str]]:
    good = docx_file("Ada")
    bomb = docx_file(body=" " * (marked_up.MAX_XML_BYTES + 1))
    entity = f'<!DOCTYPE x [<!ENTITY a "Ada">]><w:document xmlns:w="{WORD}"><w:body>&a;</w:body></w:document>'
    return {
        "truncated": (good[:-30], "damaged DOCX file"),
        "text": (b"Ada met Bob.", "not a DOCX document"),
        "other zip": (docx_file(**{"_rels/.rels": "<x/>", "word/document.xml": "<x/>"}), "damaged DOCX file"),
        "bomb": (bomb, "unpacks to 16 MiB of XML; expected at most 16 MiB"),
        "entities": (docx_file(**{"word/document.xml": entity}), "defines XML entities"),
        "UTF-16 entities": (docx_file(**{"word/document.xml": entity.encode("utf-16")}), "defines XML entities"),
        "deep": (docx_file(body="<w:p>" * 20_000 + "</w:p>" * 20_000), "damaged DOCX file"),
        "members": (good + marked_up._DIRECTORY_ENTRY * 10_001, "more than 10,000 members"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", list(damaged()))
def test_damaged_and_hostile_docx(name: str):
    data, message = damaged()[name]
    with pytest.raises(FormatError, match=message) as error:
        texts(data, "docx")
    assert "\n" not in str(error.value)


def test_docx_pictures_are_never_unpacked():
    picture = b"\0" * (3 * marked_up.MAX_XML_BYTES)
    assert texts(docx_file("Ada", **{"word/media/a.png": picture}), "docx") == ["Ada"]


def test_docx_that_exceeds_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(marked_up, "PARSED_BYTES", 1 << 50)
    with pytest.raises(NotEnoughMemory, match=r"reading the document takes about .* save it as text"):
        texts(docx_file("Ada"), "docx")


def test_missing_libraries_for_docx(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("herdner.base.extras.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "mammoth", raising=False)
    with pytest.raises(ImportError, match="reading DOCX needs mammoth: pip install"):
        texts(b"", "docx")
