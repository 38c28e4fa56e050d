"""Restoring: token borders, changed white space, streams with any borders of chunks, unknown pseudonyms."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.ner.pseudonyms.restoring import MAX_SPACES, Restorer

ORIGINALS = {
    "Person 1": "Ana Rivera", "Person 1b": "Rivera", "Person 12": "Bo Lim", "Place 3": "تونس", "Email 2": "a@b.org",
    "PER_abcdefghij": "X", "PER_abcdefghij_abcd": "Y", "Joan Miller": "Ana Bianchi", "Joan\nMiller": "Ana\nBianchi",
    "Joan": "Ana", "Miller": "Bianchi", "J. Miller": "A. Bianchi",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "restored"),
    [
        ("Person 12 met Person 1, not Person 123.", "Bo Lim met Ana Rivera, not Person 123."),
        ("Person 1's and Person 1b-led", "Ana Rivera's and Rivera-led"),
        ("APerson 1 Person_1 Person 1_ Person 1x", "APerson 1 Person_1 Person 1_ Person 1x"),
        ("PERSON 1B, person 1, Person 1B's, EMAIL 2", "Rivera, Ana Rivera, Rivera's, a@b.org"),
        ("Person 1bs, the PERSON 12S, Place 3es", "Riveras, the Bo LimS, تونسes"),
        ("PERSON\n1", "Ana\nRivera"),
        ("per_ABCDEFGHIJ_abcd Per_abcdefghijs", "Y Xs"),
        ("JOAN MILLER, the Millers, a miller, millers", "Ana Bianchi, the Bianchis, a miller, millers"),
        ("Joan Millers of Joans", "Ana Bianchis of Anas"),
        ("Person Person 1 1", "Person Ana Rivera 1"),
        ("Person\n  12", "Bo\n  Lim"),
        ("Person" + " " * (MAX_SPACES + 1) + "12", "Person" + " " * (MAX_SPACES + 1) + "12"),
        ("(Place 3)", "(تونس)"),
        ("Person 1さん", "Ana Riveraさん"),
        ("PER_abcdefghij PER_abcdefghij_abcd PER_abcdefghijk", "X Y PER_abcdefghijk"),
        ("Joan Miller, J. Miller, Joan\nMiller, J.", "Ana Bianchi, A. Bianchi, Ana\nBianchi, J."),
        ("Joan\tMiller", "Ana\tBianchi"),
        ("", ""),
        ("Person", "Person"),
        ("e\u0301Person 1\u0301", "e\u0301Person 1\u0301"),
    ],
)  # fmt: skip
def test_pseudonyms_are_replaced_at_the_borders_of_tokens(text: str, restored: str) -> None:
    assert Restorer(ORIGINALS)(text) == restored
    for size in (1, 2, 3, 7):
        chunks = [text[i : i + size] for i in range(0, len(text), size)]
        assert "".join(Restorer(ORIGINALS).stream(chunks)) == restored


PIECES = st.sampled_from(
    [*ORIGINALS, "Person", "PERSON", "miller", "s", "e", "S",
     " ", "\n", " " * 9, "1", "12", "b", "_", ".", "J.", "ü", "\u0301", "さ", "PER_abc", "x" * 30]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30), st.lists(st.integers(0, 100), max_size=8))
def test_streams_give_the_same_text_as_a_whole_text(pieces: list[str], borders: list[int]) -> None:
    text = "".join(pieces)
    offsets = [0, *sorted(min(border, len(text)) for border in borders), len(text)]
    chunks = [text[start:end] for start, end in pairwise(offsets)]
    assert "".join(Restorer(ORIGINALS).stream(chunks)) == Restorer(ORIGINALS)(text)


def test_stream_yields_text_as_soon_as_it_is_decided() -> None:
    stream = Restorer(ORIGINALS).stream(iter(["Dear Per", "son 1", "2, ", "hello", " you"]))
    assert list(stream) == ["Dear ", "Bo Lim, ", "hello ", "you"]


def test_stream_holds_back_little() -> None:
    restorer = Restorer(ORIGINALS)
    n_in = n_out = 0

    def chunks():
        nonlocal n_in
        for _ in range(1000):
            n_in += 50
            yield "x" * 50

    for piece in restorer.stream(chunks()):
        n_out += len(piece)
        assert n_in - n_out <= 50
    assert n_out == 50_000


def test_unknown_pseudonyms_are_counted() -> None:
    restorer = Restorer(ORIGINALS, re.compile(r"Person \d+"))
    assert restorer("Person 1 Person 77 Person 77 Person 9") == "Ana Rivera Person 77 Person 77 Person 9"
    assert restorer.unknown == {"Person 77": 2, "Person 9": 1}
    assert restorer.n_restored == 1


def test_find_returns_offsets_in_the_text_with_pseudonyms() -> None:
    text = "so Person 1 left Place 3"
    found = Restorer(ORIGINALS).find(text)
    assert [(text[each.start : each.end], each.original) for each in found] == [
        ("Person 1", "Ana Rivera"), ("Place 3", "تونس"),
    ]  # fmt: skip
