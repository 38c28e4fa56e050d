"""The page about files lists all formats."""

from __future__ import annotations

import re

from data import REPOSITORY

from herdner.corpora.formats import FORMATS, READABLE, WRITABLE


def test_the_page_lists_every_format() -> None:
    page = (REPOSITORY / "docs" / "pages" / "tutorials" / "files.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (yes|) ?\| (yes|) ?\| (.*?) ?\|", page, re.MULTILINE)
    assert [name for name, *_ in rows] == list(FORMATS)
    for name, read, written, endings in rows:
        entry = FORMATS[name]
        assert (bool(read), bool(written)) == (entry.read is not None, entry.write is not None), name
        assert tuple(re.findall(r"`([^`]+)`", endings)) == entry.extensions, name


def test_number_of_formats() -> None:
    assert (len(READABLE), len(WRITABLE)) >= (20, 12)
