"""The compiled features against the same features as strings, computed in plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import feature_strings
import numpy as np
import pytest
from data import shared_data
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

from herdner._ext.feature_tables import FeatureWeights
from herdner._ext.features import TYPE_ATTRIBUTES
from herdner.corpora.formats import read_documents
from herdner.ner.features import FeaturePlan, default_plan, make_extractor
from herdner.ner.lexicon import Gazetteers, Lexicon, vector_classes, word_classes
from herdner.text.document import Document

CLASSES = {"Paris": 0b1011, "paris": 5, "the": 77, "said": 0b101010101010, "of": 1023, "new": 3}
LISTS = {
    "city": [["New", "York"], ["New", "York", "City"], ["Paris"], ["York"]],
    "org": [["Bank", "of", "New", "York"]],
}
TREE = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 2], [31, 127, 511]])
LEAVES = {"paris": 0, "york": 1, "bank": 2, "said": 3, "1998": 4, "stra\u00dfe": 4}
VECTORS = {word: (*TREE[leaf].tolist(), leaf) for word, leaf in LEAVES.items()}
LEXICON = Lexicon(word_classes(CLASSES), Gazetteers.of(LISTS), vector_classes(LEAVES, TREE))
PLAN = default_plan(tuple(LISTS))
INDEX = feature_strings.index_phrases(
    {name: [[w.lower() for w in p] for p in entries] for name, entries in LISTS.items()}
)
EXTRACTOR = make_extractor(PLAN, LEXICON)

WORDS = [
    "the",
    "The",
    "Paris",
    "PARIS",
    "paris",
    "Bank",
    "of",
    "New",
    "York",
    "City",
    "said",
    "U.S.",
    "1998",
    "12-34",
    "O'Neil",
]
WORDS += [
    "\u201c",
    "``",
    "_",
    "O\u2019Neil",
    "\u00c9cole",
    "stra\u00dfe",
    "\u4e2d\u56fd",
    "x",
    "(",
    "\U0001f600",
    "\u0130zmir",
    "Abcdefgh",
]
documents = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8), min_size=1, max_size=6)


def offsets_of(sentences) -> np.ndarray:
    return np.cumsum([0, *map(len, sentences)])


def assert_same_features(sentences, extractor) -> None:
    """Equal features have equal keys and different features different ones, with the same multiplicity on every
    token.
    """
    expected = [t for s in feature_strings.features(PLAN, sentences, CLASSES, INDEX, {}, VECTORS) for t in s]
    starts, keys = extractor.keys([t for s in sentences for t in s], offsets_of(sentences))
    assert np.diff(starts).tolist() == list(map(len, expected))
    assert_bijection(expected, starts, keys)


def assert_bijection(expected, starts, keys) -> None:
    """Signatures of strings and of keys (which tokens carry them, how often) are the same multiset."""
    by_string: dict[str, Counter] = {}
    by_key: dict[int, Counter] = {}
    for i, strings in enumerate(expected):
        for string in strings:
            by_string.setdefault(string, Counter())[i] += 1
        for key in keys[starts[i] : starts[i + 1]].tolist():
            by_key.setdefault(key, Counter())[i] += 1
    frozen = [Counter(frozenset(c.items()) for c in table.values()) for table in (by_string, by_key)]
    assert frozen[0] == frozen[1]


@pytest.mark.slow
@given(documents)
@examples(100)
def test_keys_are_the_features_of_the_plain_python_pipeline(sentences):
    assert_same_features(sentences, EXTRACTOR)


def test_features_of_real_articles():
    for document in islice(read_documents(shared_data("ner/conll2003/eng.testa"), "conll2003"), 8):
        assert_same_features([list(s) for s in document.sentences()], EXTRACTOR)


def weights_of(keys, n_labels=5, seed=3) -> tuple[FeatureWeights, dict[int, np.ndarray]]:
    """Random sparse weights for two of three keys, and the same densely."""
    rng = np.random.default_rng(seed)
    known = np.unique(keys)
    known = known[rng.random(len(known)) < 0.67]
    dense = np.where(rng.random((len(known), n_labels)) < 0.4, rng.normal(size=(len(known), n_labels)), 0)
    rows, labels = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(len(known) + 1))
    table = FeatureWeights(known, starts, labels, dense[rows, labels], n_labels)
    return table, dict(zip(known.tolist(), dense, strict=True))


@given(documents)
@examples(60)
def test_scores_are_the_summed_weights_of_the_keys(sentences):
    tokens, offsets = [t for s in sentences for t in s], offsets_of(sentences)
    starts, keys = make_extractor(PLAN, LEXICON).keys(tokens, offsets)
    table, dense = weights_of(keys)
    scores = make_extractor(PLAN, LEXICON, table).scores(tokens, offsets)
    for i in range(len(tokens)):
        expected = sum((dense.get(k, np.zeros(5)) for k in keys[starts[i] : starts[i + 1]].tolist()), np.zeros(5))
        np.testing.assert_allclose(scores[i], expected, atol=1e-12)


def test_scores_do_not_depend_on_what_was_scored_before():
    texts = [[f"Word{i}", "said", f"x{i % 7}"] for i in range(300)]
    tokens, offsets = [t for s in texts for t in s], offsets_of(texts)
    table, _ = weights_of(make_extractor(PLAN, LEXICON).keys(tokens, offsets)[1])
    extractor = make_extractor(PLAN, LEXICON, table)
    first = extractor.scores(tokens, offsets)
    for i in range(80):  # more new words than a store holds
        extractor.scores([f"other{i}-{j}" for j in range(1000)], np.array([0, 1000]))
    np.testing.assert_array_equal(extractor.scores(tokens, offsets), first)


def test_a_document_of_more_words_than_a_store_holds():
    tokens = [f"w{i}" for i in range(200_000)]
    starts, keys = make_extractor(FeaturePlan(("word[0]",)), Lexicon()).keys(tokens, np.array([0, len(tokens)]))
    assert len(np.unique(keys)) == len(keys) == len(tokens) == starts[-1]


def test_no_tokens():
    starts, keys = make_extractor(PLAN, LEXICON).keys([], np.array([0]))
    assert starts.tolist() == [0]
    assert len(keys) == 0


@pytest.mark.parametrize("offsets", [[0, 1], [1, 2], [0, 2, 1, 2], []])
def test_offsets_that_do_not_fit_are_refused(offsets):
    with pytest.raises(ValueError, match="sentence offsets"):
        make_extractor(PLAN, LEXICON).keys(["a", "b"], np.array(offsets, np.int64))


@pytest.mark.parametrize("template", ["word", "word[x]", "nonsense[0]", "word[0]|", "word[99]", "gazetteer:none[0]"])
def test_templates_that_do_not_exist_are_refused(template):
    with pytest.raises(ValueError, match="feature template"):
        FeaturePlan((template,)).compile()


@pytest.mark.parametrize(
    "options",
    [
        {"n_occurrences": -1},
        {"n_occurrences": 17},
        {"gazetteers": ("a", "a")},
        {"gazetteers": tuple(map(str, range(25)))},
    ],
)
def test_plans_that_reach_too_far_are_refused(options):
    with pytest.raises(ValueError, match="feature plan"):
        FeaturePlan(("word[0]",), **options).compile()


def test_every_word_attribute_can_stand_in_a_template():
    plan = FeaturePlan(tuple(f"{name}[0]" for name in TYPE_ATTRIBUTES))
    starts, _ = make_extractor(plan, LEXICON).keys(["Parisian"], np.array([0, 1]))
    assert starts[-1] == len(TYPE_ATTRIBUTES) - 8  # it has no word class and no vector class


def test_a_plan_survives_json():
    import json
    from dataclasses import asdict

    assert FeaturePlan.from_dict(json.loads(json.dumps(asdict(PLAN)))) == PLAN


def test_documents_of_typographic_variants_have_equal_features():
    straight, curly = (
        Document.from_tokens([s]) for s in (['"', "Moi", "'s", '"'], ["\u201c", "Moi", "\u2019s", "\u201d"])
    )
    keys = [make_extractor(PLAN, LEXICON).keys(d.tokens, d.sentence_offsets)[1] for d in (straight, curly)]
    np.testing.assert_array_equal(*keys)


@given(st.lists(documents, max_size=5))
@examples(60)
def test_documents_scored_together_get_what_they_get_alone(several):
    parts = [([t for s in sentences for t in s], offsets_of(sentences)) for sentences in [*several, [["Ada", "Ada"]]]]
    tokens = [token for part, _ in parts for token in part]
    starts = np.cumsum([0, *(len(part) for part, _ in parts)])
    offsets = np.concatenate([[0], *(own[1:] + start for (_, own), start in zip(parts, starts, strict=False))])
    table, _ = weights_of(make_extractor(PLAN, LEXICON).keys(tokens, offsets)[1])
    extractor = make_extractor(PLAN, LEXICON, table)
    together = extractor.scores(tokens, offsets, starts)
    alone = np.concatenate([extractor.scores(*part) for part in parts])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("starts", [[], [0], [0, 1, 3], [1, 3], [0, 2], [0, 2, 1, 3], [0, 4]])
def test_documents_that_do_not_hold_all_sentences(starts):
    table, _ = weights_of(make_extractor(PLAN, LEXICON).keys(["a", "b", "c"], np.array([0, 2, 3]))[1])
    with pytest.raises(ValueError, match="sentence"):
        make_extractor(PLAN, LEXICON, table).scores(["a", "b", "c"], np.array([0, 2, 3]), np.array(starts, np.int64))
