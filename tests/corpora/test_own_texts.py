"""Our own stories are our own: they share no sentence with a corpus on which models are measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from data import REPOSITORY, shared_data
from shared_sequences import LENGTH, corpus_texts, own_texts, sequences, shared_passages, words

CORPORA = [
    ("btc/btc.dev", "columns"),
    ("btc/btc.train", "columns"),
    ("conll2003/eng.testa", "columns"),
    ("conll2003/eng.train", "columns"),
    ("gmb/gmb.conll", "columns"),
    ("gum", "conllu"),
    ("ieer", "ieer"),
    ("ler/ler_dev.conll", "columns"),
    ("litbank", "text"),
    ("mobie/dev.conll2003", "columns"),
    ("mobie/train.conll2003", "columns"),
    ("sec/FIN5.txt", "columns"),
    ("tweebank/dev.bio", "columns"),
    ("tweebank/train.bio", "columns"),
    ("uner_ewt/en_ewt-ud-dev.iob2", "conllu"),
    ("wikigold/wikigold.dev", "columns"),
    ("wnut17/emerging.dev.conll", "columns"),
    ("wnut17/wnut17train.conll", "columns"),
    ("worldwide/dev", "columns"),
    ("worldwide/train", "columns"),
]
ALLOWED = Path(__file__).parent / "allowed_passages.txt"
KINDS = {"heading", "name", "phrase"}


@pytest.fixture(scope="module")
def own() -> list[list[str]]:
    return own_texts(REPOSITORY / "corpora")


def allowed() -> dict[str, str]:
    """Kind of each allowed passage."""
    lines = [line for line in ALLOWED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {passage: kind for kind, _, passage in (line.partition(": ") for line in lines)}


def test_passages_are_found() -> None:
    assert words(["The", "27", "A-1", "."]) == ["the", "a"]
    assert words(["The", "U.S.", "did", "n't", "tax", "banks", "'", "well-known", "bank", "'s", "fund"]) == words(
        ["The", "U.S", "didn't", "tax", "banks'", "well", "-", "known", "bank’s", "fund"]
    )
    assert list(sequences(list("abcdefgh"))) == [tuple("abcdefg"), tuple("bcdefgh")]
    ours, theirs = [list("xabcdefghyabcdefgz"), list("bcdefg")], [list("qabcdefghq")]
    assert shared_passages(ours, theirs) == ["a b c d e f g", "a b c d e f g h"]
    assert shared_passages(ours, [list("abcdef")]) == []


@pytest.mark.slow
def test_allowed_passages_occur_in_our_texts(own: list[list[str]]) -> None:
    texts = [f" {' '.join(text)} " for text in own]
    for passage, kind in allowed().items():
        assert kind in KINDS
        assert len(passage.split()) >= LENGTH
        assert any(f" {passage} " in text for text in texts), passage


@pytest.mark.slow
@pytest.mark.parametrize(("path", "format"), CORPORA)
def test_shared_passages_are_headings_names_or_set_phrases(path: str, format: str, own: list[list[str]]) -> None:
    """Rewrite a passage that this test lists, unless it is a heading, a name or a set phrase of everyday English."""
    known = [f" {passage} " for passage in allowed()]
    shared = shared_passages(own, corpus_texts(shared_data(f"ner/{path}"), format))
    assert [passage for passage in shared if not any(f" {passage} " in each for each in known)] == []
