"""The bias towards names: zero changes nothing, more finds more, and each mention keeps its tokens' order."""

from __future__ import annotations

import pytest

from herdner import Tagger
from herdner.ner.inference import Inference

TEXT = "Old Harrow and the clerk of Pell met Ms. Oduya at Winam. The Lake Line was late, Harrow said."


def test_more_bias_finds_more_tokens(news_tagger: Tagger) -> None:
    plain = news_tagger.tag(TEXT)
    assert news_tagger.tag(TEXT, name_bias=0.0) == plain
    counts = [
        sum(end - start for start, end, _ in news_tagger.tag(TEXT, name_bias=bias).spans or ())
        for bias in (-30.0, 0.0, 3.0, 30.0)
    ]
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] == plain.n_tokens


def test_bias_is_an_option_of_inference() -> None:
    assert Inference.of(name_bias=2.0).to_dict() == {"name_bias": 2.0}
    assert Inference.of().to_dict() == {}
    with pytest.raises(ValueError, match="`name_bias` must be a finite number, got nan"):
        Inference.of(name_bias=float("nan"))
