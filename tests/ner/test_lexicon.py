"""Word classes and gazetteers as tables."""

from __future__ import annotations

import numpy as np
import pytest

import herdner
from herdner._ext.features import MAX_GAZETTEERS, MAX_PHRASE
from herdner.base.npz import write_npz
from herdner.ner.features import FeaturePlan, make_extractor
from herdner.ner.lexicon import (
    VECTOR_CLASSES,
    Gazetteers,
    Lexicon,
    brown_classes,
    read_vector_classes,
    vector_classes,
    word_classes,
)

CITIES = {"city": [["New", "York"], ["Paris"], ["York"]]}
BANKS = {"bank": [["Bank", "of", "New", "York"], ["New", "Bank"]], "name": [["Paris"]]}


def test_joined_gazetteers_are_those_built_together():
    union, together = Gazetteers.of(CITIES).union(Gazetteers.of(BANKS)), Gazetteers.of({**CITIES, **BANKS})
    assert union.names == together.names
    np.testing.assert_array_equal(union.phrases.keys, together.phrases.keys)
    np.testing.assert_array_equal(union.phrases.values, together.phrases.values)


def test_lists_that_cannot_be_joined_are_refused():
    with pytest.raises(ValueError, match="two gazetteers are named city"):
        Gazetteers.of(CITIES).union(Gazetteers.of(CITIES))
    many = {f"list{i}": [["a"]] for i in range(MAX_GAZETTEERS)}
    with pytest.raises(ValueError, match=f"at most {MAX_GAZETTEERS} gazetteers"):
        Gazetteers.of(CITIES).union(Gazetteers.of(many))
    with pytest.raises(ValueError, match=f"at most {MAX_GAZETTEERS} gazetteers"):
        Gazetteers.of({**many, **CITIES})


def test_phrases_that_are_too_long_or_empty_are_left_out():
    assert len(Gazetteers.of({"a": [[], ["x"] * (MAX_PHRASE + 1)]}).phrases.keys) == 0


def test_a_class_is_found_by_the_word_as_written_then_by_its_small_form():
    extractor = make_extractor(FeaturePlan(("class20[0]",)), Lexicon(word_classes({"us": 5, "US": 9})))
    starts, keys = extractor.keys(["us", "US", "Us", "none"], np.array([0, 4]))
    assert np.diff(starts).tolist() == [1, 1, 1, 0]
    assert keys[0] == keys[2] != keys[1]


NAMES = tuple(f"vector{n}[0]" for n in VECTOR_CLASSES)


def test_vector_classes_are_those_of_the_small_form():
    tree = np.array([[3, 5, 7], [3, 5, 8]])
    extractor = make_extractor(FeaturePlan(NAMES), Lexicon(vectors=vector_classes({"oslo": 0, "bergen": 1}, tree)))
    starts, keys = extractor.keys(["Oslo", "OSLO", "bergen", "none"], np.array([0, 4]))
    assert np.diff(starts).tolist() == [4, 4, 4, 0]
    oslo, capitals, bergen = keys.reshape(3, 4)
    assert oslo.tolist() == capitals.tolist()
    assert (oslo == bergen).tolist() == [True, True, False, False]


@pytest.mark.parametrize("row", [[32, 0, 0], [0, 128, 0], [0, 0, 512], [-1, 0, 0], [0, 0]])
def test_vector_classes_out_of_range_are_refused(row):
    with pytest.raises(ValueError, match="at least 0 and below 32, 128, 512, 2048"):
        vector_classes({"oslo": 0}, np.array([row]))


def test_words_that_stand_in_similar_texts_share_english_vector_classes():
    extractor = make_extractor(FeaturePlan(NAMES), Lexicon(vectors=herdner.load("en").model_.lexicon.vectors))
    words = ["Monday", "tuesday", "Boston", "Chicago", "bank", "Qqxzzy"]
    starts, keys = extractor.keys(words, np.array([0, len(words)]))
    assert np.diff(starts).tolist() == [4] * 5 + [0]
    monday, tuesday, boston, chicago, bank = keys.reshape(5, 4)
    assert monday.tolist() == tuesday.tolist()
    assert boston[0] == chicago[0] != monday[0]
    assert bank[3] not in (monday[3], boston[3])


def test_the_larger_english_vector_classes_hold_whole_smaller_ones():
    values = np.unique(herdner.load("en").model_.lexicon.vectors.values)
    assert len(values) == len(np.unique(values >> np.uint32(21))) > 1900


def test_languages_without_classes_are_named():
    pytest.importorskip("spacy_lookups_data")
    with pytest.raises(ValueError, match="no word classes for 'xx'"):
        brown_classes("xx")


@pytest.mark.parametrize(
    ("name", "array"),
    [("leaves", np.array([0, 2], np.uint16)), ("keys", np.array([5, 0], np.uint32)), ("keys", np.ones(3, np.uint32)),
     ("leaves", np.array([0, 1], np.int64)), ("tree", np.zeros(2, np.uint16))],
)  # fmt: skip
def test_vector_classes_that_do_not_fit_are_refused(name, array, tmp_path):
    arrays = {
        "keys": np.array([5, 3], np.uint32), "leaves": np.array([0, 1], np.uint16), "tree": np.zeros((2, 3), np.uint16)
    }  # fmt: skip
    write_npz(tmp_path / "v.npz", arrays, {})
    assert read_vector_classes(tmp_path / "v.npz").keys.tolist() == [5, 8]
    write_npz(tmp_path / "v.npz", {**arrays, name: array}, {})
    with pytest.raises(ValueError, match="vector classes"):
        read_vector_classes(tmp_path / "v.npz")
