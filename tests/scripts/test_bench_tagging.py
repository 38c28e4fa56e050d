"""The benchmark of tagging: its short texts differ and have the stated length."""

from __future__ import annotations

from bench_tagging import short_text

from herdner.text.tokenize import Tokenizer


def test_short_texts_differ_and_have_36_tokens() -> None:
    texts = [short_text(seed) for seed in range(1000)]
    assert len(set(texts)) == 1000
    assert {len(Tokenizer().tokens(text)) for text in texts} == {36}
