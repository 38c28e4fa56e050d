"""Word classes and gazetteers as tables."""

from __future__ import annotations

import numpy as np
import pytest

from herdner._ext.features import MAX_GAZETTEERS, MAX_PHRASE
from herdner.ner.features import FeaturePlan, make_extractor
from herdner.ner.lexicon import Gazetteers, Lexicon, brown_classes, word_classes

CITIES = {"city": [["New", "York"], ["Paris"], ["York"]]}
BANKS = {"bank": [["Bank", "of", "New", "York"], ["New", "Bank"]], "name": [["Paris"]]}


def test_joined_gazetteers_are_those_built_together():
    joined, together = Gazetteers.of(CITIES).joined(Gazetteers.of(BANKS)), Gazetteers.of({**CITIES, **BANKS})
    assert joined.names == together.names
    np.testing.assert_array_equal(joined.phrases.keys, together.phrases.keys)
    np.testing.assert_array_equal(joined.phrases.values, together.phrases.values)


def test_lists_that_cannot_be_joined_are_refused():
    with pytest.raises(ValueError, match="two gazetteers named city"):
        Gazetteers.of(CITIES).joined(Gazetteers.of(CITIES))
    many = {f"list{i}": [["a"]] for i in range(MAX_GAZETTEERS)}
    with pytest.raises(ValueError, match="too many"):
        Gazetteers.of(CITIES).joined(Gazetteers.of(many))
    with pytest.raises(ValueError, match="too many"):
        Gazetteers.of({**many, **CITIES})


def test_phrases_that_are_too_long_or_empty_are_left_out():
    assert len(Gazetteers.of({"a": [[], ["x"] * (MAX_PHRASE + 1)]}).phrases.keys) == 0


def test_a_class_is_found_by_the_word_as_written_then_by_its_small_form():
    extractor = make_extractor(FeaturePlan(("class20[0]",)), Lexicon(word_classes({"us": 5, "US": 9})))
    starts, keys = extractor.keys(["us", "US", "Us", "none"], np.array([0, 4]))
    assert np.diff(starts).tolist() == [1, 1, 1, 0]
    assert keys[0] == keys[2] != keys[1]


def test_languages_without_classes_are_named():
    pytest.importorskip("spacy_lookups_data")
    with pytest.raises(ValueError, match="no word classes for 'xx'"):
        brown_classes("xx")
