"""Conversion of documents to lower and upper case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running_texts import running_texts

from herdner.text.case import change_case
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.tags import Span


@pytest.mark.slow
@pytest.mark.parametrize(("case", "turn"), [("lower", str.lower), ("upper", str.upper)])
@given(document=running_texts(), annotated=st.booleans())
def test_only_the_case_of_tokens_changes(document, annotated, case, turn):
    if not annotated:
        document = Document(
            document.text, document.tokens, document.token_starts, document.token_ends, document.sentence_offsets
        )
    found = change_case(document, case)
    assert list(found.tokens) == [turn(token) for token in document.tokens]
    placed = zip(found.token_starts, found.token_ends, strict=True)
    assert [found.text[start:end] for start, end in placed] == found.tokens
    assert found.spans == document.spans
    assert (found.tags is None) == (not annotated)
    assert found.sentence_offsets.tolist() == document.sentence_offsets.tolist()
    outside = [0, *found.token_ends.tolist()], [*found.token_starts.tolist(), len(found.text)]
    before = [0, *document.token_ends.tolist()], [*document.token_starts.tolist(), len(document.text)]
    gaps = [
        [text[a:b] for a, b in zip(*places, strict=True)]
        for text, places in ((found.text, outside), (document.text, before))
    ]
    assert gaps[0] == gaps[1]


def test_letters_that_become_two_letters():
    document = Document.from_aligned("  Stra\u00dfe  5, Kisumu", [["Stra\u00dfe", "5", ",", "Kisumu"]])
    found = change_case(document.with_spans([Span(0, 2, "LOC"), Span(3, 4, "LOC")]), "upper")
    assert found.text == "  STRASSE  5, KISUMU"
    assert found.entities == (Entity(2, 12, "LOC", "STRASSE  5"), Entity(14, 20, "LOC", "KISUMU"))
    assert change_case(Document.from_text(" \u00df "), "upper").text == " \u00df "  # nothing but tokens changes
