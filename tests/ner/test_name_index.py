"""The index of names: the rule of merging, counts against a count in Python, and all formats of the table."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.ner.name_index import MAX_WIDTH, IndexedName, NameIndex, write_index
from herdner.text.document import Document
from herdner.text.entity import Entity


def document(id: str, *mentions: tuple[str, str, int | None]) -> Document:
    text, entities = "", []
    for word, label, name_id in mentions:
        entities.append(Entity(len(text), len(text) + len(word), label, word, 0.9, name_id))
        text += word + " said so. "
    return replace(Document.from_text(text, id=id), entities=tuple(entities))


def rows(*documents: Document) -> list[IndexedName]:
    with NameIndex() as index:
        for each in documents:
            index.add(each)
        assert len(index) == len(list(index.rows()))
        return list(index.rows())


def test_names_are_merged_by_full_form_and_label_never_by_surname_alone() -> None:
    found = rows(
        document("a", ("ANA RIVERA", "PER", 0), ("RIVERA", "PER", 0)),
        document("b", ("Ana  Rivera", "PER", 0), ("Rivera", "PER", 0), ("Rivera", "PER", 0)),
        document("c", ("Rivera", "PER", 0)),
        document("d", ("Ana Rivera", "ORG", None), ("Ana Rivera", "ORG", None)),
    )
    assert [row[:5] for row in found] == [
        ("Ana Rivera", "PER", 5, 2, "a"), ("Ana Rivera", "ORG", 2, 1, "d"), ("Rivera", "PER", 1, 1, "c"),
    ]  # fmt: skip
    assert found[0].context == "ANA RIVERA said so. RIVERA said so."


def test_context_is_cut_between_words() -> None:
    text = "supercalifragilistic " * 5 + "Ana\nRivera " + "expialidocious " * 5
    start = text.index("Ana")
    made = replace(Document.from_text(text, id="a"), entities=(Entity(start, start + 10, "PER", "Ana\nRivera"),))
    assert rows(made)[0].context == "supercalifragilistic Ana Rivera expialidocious expialidocious"


NAMES = st.tuples(
    st.sampled_from(["Ana", "ANA", "Bo Lim", "İş", "\ud800x", "ß"]), st.sampled_from(["PER", "ORG"]), st.none()
)


@given(st.lists(st.lists(NAMES, max_size=6), max_size=6))
def test_counts_equal_those_of_python(corpus: list[list[tuple[str, str, None]]]) -> None:
    mentions: dict[tuple[str, str], int] = defaultdict(int)
    documents: dict[tuple[str, str], set[int]] = defaultdict(set)
    for i, names in enumerate(corpus):
        for text, label, _ in names:
            mentions[text.casefold(), label] += 1
            documents[text.casefold(), label].add(i)
    found = rows(*(document(str(i), *names) for i, names in enumerate(corpus)))
    expected = sorted((n, len(documents[key])) for key, n in mentions.items())
    assert sorted((row.mentions, row.documents) for row in found) == expected
    assert [row.mentions for row in found] == sorted((row.mentions for row in found), reverse=True)


ROWS = [
    IndexedName("Ana <Rivera>", "PER", 12, 3, "a.txt", 'said "Ana", & so\x1b[1m'),
    IndexedName("x" * 60, "ORG", 1, 1, "b,c.txt", "…"),
]  # fmt: skip


@pytest.mark.parametrize("format", ["text", "csv", "json", "html"])
def test_tables(format: str) -> None:
    stream = io.StringIO()
    write_index(ROWS, stream, format, 60)
    text = stream.getvalue()
    if format == "csv":
        header, *body = csv.reader(io.StringIO(text))
        assert header == ["name", "label", "mentions", "documents", "first_document", "context"]
        assert body == [[str(value) for value in row] for row in ROWS]
    elif format == "json":
        assert [tuple(each.values()) for each in json.loads(text)] == ROWS
    else:
        assert "\x1b" not in text
        assert ("&lt;Rivera&gt;" in text) == (format == "html")
    if format == "text":
        assert text.splitlines()[1].startswith(f"      12          3  PER    {'Ana <Rivera>':<{MAX_WIDTH}}  said")
    empty = io.StringIO()
    write_index([], empty, format)
    assert format != "json" or json.loads(empty.getvalue()) == []
    with pytest.raises(ValueError, match="`format` must be one of text, csv, json, html, got 'pdf'"):
        write_index([], empty, "pdf")


def test_limits() -> None:
    with NameIndex() as index:
        index.add(document("a", ("Ana", "PER", 0), ("Ana", "PER", 0), ("Bo", "PER", 1)))
        assert [row.name for row in index.rows(min_mentions=2)] == ["Ana"]
        assert [row.name for row in index.rows(limit=1)] == ["Ana"]
        assert index.width() == 3
