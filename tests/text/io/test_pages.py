"""Text of HTML pages and its source map."""

from __future__ import annotations

import html
import io
import json
import re

import pytest
from cpu import cpu_seconds
from hypothesis import given
from hypothesis import strategies as st

from herdner.corpora.formats import read_documents, write_documents
from herdner.text.entity import Entity
from herdner.text.io.source import FormatError

pytest.importorskip("turbohtml")
TAG = re.compile(r"<[^>]*>")


def read(page: str, **options: object) -> list:
    return list(read_documents(io.BytesIO(page.encode("utf-8", "surrogatepass")), "html", **options))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>Ada <b>Love</b>lace</p><p>met<br>Bo", "Ada Lovelace\n\nmet\nBo"),
        ("Ada<sup>1, 2</sup> of Lima<sup>[3]</sup>, 19<sup>th</sup>", "Ada¹, ² of Lima[3], 19th"),
        ("Ada<sup>12<p>12 of them</sup>, <sup><a>3</a></sup>Bo", "Ada¹²\n\n12 of them, ³Bo"),
        ("<title>x</title><script>if (a<b) 'Ada'</script><style>p{}</style><h1>Ada</h1>Bo", "Ada\n\nBo"),
        ("<ul><li>Ada<li>Bo</ul><table><tr><td>Cy<td>Di</table>", "Ada\n\nBo\n\nCy\n\nDi"),
        ("Ada\r\n   met &amp; &eacute;t&#233; &lt;Bo&gt;&nbsp;&hellip;", "Ada met & été <Bo>\xa0…"),
        ("<pre>Ada\n  met</pre>", "Ada\nmet"),
        ("AT&T &foo; &notit; &", "AT&T &foo; ¬it; &"),
        ("a < b <!-- Ada --> c <![CDATA[d]]> e", "a < b c e"),
        ("<p title='a > b'>Ada</p", "Ada"),
        ("Ada</>Bo<a b='<i>Cy", "AdaBo"),
        ("<!DOCTYPE html><html lang=he dir=rtl><body>שלום <b>Ada</b> שלום 😀<i>é</i></html>", "שלום Ada שלום 😀é"),
    ],
)
def test_text_of_a_page(page: str, text: str) -> None:
    (document,) = read(page)
    assert document.text == text


def plain(page: str) -> str:
    """Return the text of a page whose tags are all complete."""
    return html.unescape(TAG.sub("", page))


PIECES = st.sampled_from(
    ["Ada", " ", "</>", "\n", "\r\n", "<b>", "</b>", "<p>", "</p>", "<br>", "&amp;", "&eacute;", "&#x1F600;", "😀",
     "שלום", "é",
     "<i class='a'>", "</i>", "&nbsp;", "<!--x-->", "Lovelace"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_every_character_is_found_in_the_page(page: str) -> None:
    for document in read(page):
        places = document.source_map
        assert places is not None
        last = 0
        for i, character in enumerate(document.text):
            start, end = places.span(i, i + 1)
            assert last <= start <= end <= len(page)
            if not character.isspace():
                assert html.unescape(page[start:end]) == character
            last = start
        found = re.sub(r"\s", "", plain(page))
        assert re.sub(r"\s", "", document.text) == found


def test_names_have_positions_in_the_page() -> None:
    page = "<h1>R&eacute;n&eacute;e</h1>\r\n<p>Ada <b>Love</b>lace &amp; Co"
    (document,) = read(page)
    names = ["Rénée", "Ada Lovelace", "Co"]
    starts = [document.text.index(name) for name in names]
    document = document.with_entities(
        [Entity(start, start + len(name), "PER", name) for start, name in zip(starts, names, strict=True)]
    )
    stream = io.BytesIO()
    write_documents([document], stream, "jsonl")
    found = [page[e["source_start"] : e["source_end"]] for e in json.loads(stream.getvalue())["entities"]]
    assert found == ["R&eacute;n&eacute;e", "Ada <b>Love</b>lace", "Co"]


@pytest.mark.parametrize("page", ["", "   ", "<p></p>", "<script>Ada</script>", "<!-- Ada", "<p title='Ada"])
def test_a_page_without_text_gives_no_document(page: str) -> None:
    assert read(page) == []


def test_invalid_pages_give_one_message() -> None:
    with pytest.raises(FormatError, match="is a PDF"):
        list(read_documents(io.BytesIO(b"%PDF-1.7"), "html"))
    with pytest.raises(FormatError, match="byte 0xff at offset 3"):
        list(read_documents(io.BytesIO(b"<p>\xff"), "html"))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"<meta charset=windows-1252><p>Ren\xe9 \x96", "René –"),
        (b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>\xe1\xc4\xc1", "Ада"),
        (b"<!--" + b" " * 5000 + b"--><meta charset=shift_jis>\x83A\x87\x40", "ア①"),
        (b"<meta charset=latin1>Ren\xe9", "René"),
        (b"<meta charset=latin1>Ren\xc3\xa9", "René"),  # the bytes are UTF-8 in spite of the declaration
        (b"\xef\xbb\xbf<meta charset=latin1>Ren\xc3\xa9", "René"),
        (b"<meta charset=nonsense>Rene", "Rene"),
    ],
)
def test_the_declared_encoding_of_a_page_is_used(page: bytes, text: str) -> None:
    (document,) = read_documents(io.BytesIO(page), "html")
    assert document.text == text
    (document,) = read_documents(io.BufferedReader(Slow(page)), "html")
    assert document.text == text


class Slow(io.BytesIO):
    """Stream that returns ten bytes at a time, as a pipe may do."""

    def readinto(self, buffer) -> int:
        data = self.read(min(10, len(buffer)))
        buffer[: len(data)] = data
        return len(data)


def test_a_stated_encoding_overrides_the_declared_one() -> None:
    page = b"<meta charset=koi8-r>Ren\xe9"
    (document,) = read_documents(io.BytesIO(page), "html", encoding="latin-1")
    assert document.text == "René"
    with pytest.raises(FormatError, match="name the encoding of the file, as in --encoding latin-1"):
        list(read_documents(io.BytesIO(b"<meta charset=nonsense>Ren\xe9"), "html"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<!--",
        "<a ",
        "<a b='",
        "</",
        "<![CDATA[",
        "<p>",
        "<svg>",
        "</svg>",
        "&",
        "&am",
        "<pre>",
        "\r",
        "a ",
        "<br>",
    ],
)
def test_pages_take_time_in_proportion_to_their_size(unit: str) -> None:
    def seconds(n: int) -> float:
        return cpu_seconds(lambda: read(unit * (n // len(unit))))

    read("<p>a")
    most = 40 * min(seconds(20_000), seconds(20_000)) + 0.25
    assert any(seconds(160_000) < most for _ in range(3))  # a busy machine may disturb one
