"""The layer's files, and what it says of bad input."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from altered import altered
from scored_documents import IOB2, LABELS, OFFSETS, SCORES, WORDS, documents

import herdner
from herdner import ModelError, SkipChainLayer
from herdner.crf.link_rules import Acronym, SameWord
from herdner.crf.templates import skip_chain_template


@pytest.fixture
def saved(tmp_path):
    train = documents(60, 0)
    layer = SkipChainLayer(LABELS, [skip_chain_template(), Acronym(nearest=2)], scheme="iob2").fit(*train)
    layer.save(tmp_path / "layer")
    return layer, tmp_path / "layer"


def test_a_saved_layer_comes_back(saved):
    layer, path = saved
    loaded = SkipChainLayer.load(path, backend="mean-field")
    assert loaded.backend == "mean-field"
    assert (list(loaded.tags), loaded.scheme, loaded.link_strength) == (LABELS, "iob2", 1.0)
    assert [rule.rule for rule in loaded.rules] == [SameWord(), Acronym(nearest=2)]
    for before, after in zip(layer.model_.link_tables, loaded.model_.link_tables, strict=True):
        np.testing.assert_array_equal(before.table, after.table)
        assert before.template == after.template
    test = documents(40, 1)
    assert SkipChainLayer.load(path).predict(*test[:2], test[3]) == layer.predict(*test[:2], test[3])


def test_an_untrained_layer_comes_back(tmp_path):
    transition = np.random.default_rng(0).normal(size=(4, 4))
    layer = SkipChainLayer(IOB2, link_strength=0.7, transition=transition)
    layer.save(tmp_path / "layer")
    for a, b in ((layer, SkipChainLayer.load(tmp_path / "layer")), (SkipChainLayer(IOB2, ()), None)):
        if b is None:
            a.save(tmp_path / "none")
            b = SkipChainLayer.load(tmp_path / "none")
        x, y = (each.apply(SCORES, WORDS, OFFSETS) for each in (a, b))
        assert x.tags == y.tags
        np.testing.assert_array_equal(x.marginals, y.marginals)


def test_what_is_saved_can_be_loaded(tmp_path):
    tags = ["O", *(f"B-T{k}" for k in range(1500))]
    SkipChainLayer(tags, ()).save(tmp_path / "layer")  # tables of zeros, which compress a thousandfold
    assert list(SkipChainLayer.load(tmp_path / "layer").tags) == tags
    with pytest.raises(ValueError, match=r"links \* tags \* tags must be at most"):
        SkipChainLayer(tags).save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_each_kind_of_file_says_what_it_is(saved, tmp_path):
    with pytest.raises(ModelError, match=r"contains a layer: open it with SkipChainLayer.load"):
        herdner.load(saved[1])
    herdner.load("en").save(tmp_path / "tagger")
    with pytest.raises(ModelError, match=r"contains a tagger: open it with herdner.load"):
        SkipChainLayer.load(tmp_path / "tagger")
    with pytest.raises(ModelError, match="no such"):
        SkipChainLayer.load(tmp_path / "nowhere")


def test_damaged_layers_are_refused(saved, tmp_path):
    data = saved[1].read_bytes()
    for length in range(0, len(data), 11):
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(ModelError):
            SkipChainLayer.load(tmp_path / "cut")


@pytest.mark.parametrize(
    "values",
    [
        {"tags": []}, {"tags": ["O", "O", "B-PER"]}, {"tags": [1, 2, 3]}, {"tags": "OBI"}, {"tags": ["O"]},
        {"tags": ["O", "x", "y"]}, {"scheme": "iob9"}, {"scheme": ["iob2"]}, {"scores": "x"}, {"link_strength": "1"},
        {"link_strength": float("nan")}, {"links": 3}, {"links": [], "link_strength": None}, {"links": [{}]},
        {"links": [{"template": {"rule": {"name": "os.system"}}}] * 2},
    ],
)  # fmt: skip
def test_headers_that_make_no_sense_are_refused(saved, tmp_path, values):
    def change(members):
        members["header.json"] = json.dumps({**json.loads(members["header.json"]), **values}).encode()

    (tmp_path / "bad").write_bytes(altered(saved[1].read_bytes(), change))
    with pytest.raises(ModelError, match="damaged layer") as raised:
        SkipChainLayer.load(tmp_path / "bad")
    assert "\n" not in str(raised.value)


@dataclass(frozen=True)
class Own:
    """A rule of the user's own: all tokens in one row."""

    name: ClassVar[str] = "own"

    def links(self, tokens, sentence_offsets):
        return np.array([[0, len(tokens) - 1]], np.int32)


def test_rules_of_ones_own_work_but_are_not_saved(tmp_path):
    layer = SkipChainLayer(IOB2, [Own()])
    assert layer.apply(SCORES, WORDS).links.tolist() == [[0, 6]]
    with pytest.raises(ValueError, match="cannot be stored in a file"):
        layer.save(tmp_path / "layer")


def with_(value, at=(2, 1), scores=SCORES):
    changed = scores.copy()
    changed[at] = value
    return changed


P = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)
BAD_DOCUMENTS = [
    ((SCORES[:6], WORDS), r"7 rows \(tokens\) and 4 columns \(tags\), got shape \(6, 4\)"),
    ((SCORES[:, :3], WORDS), r"7 rows \(tokens\) and 4 columns \(tags\), got shape \(7, 3\)"),
    ((SCORES[None], WORDS), r"shape \[tokens, tags\], got \(1, 7, 4\)"),
    ((np.empty((0, 4)), WORDS), r"7 rows .* got shape \(0, 4\)"),
    ((SCORES, []), r"0 rows .* got shape \(7, 4\)"),
    ((SCORES.astype(str), WORDS), "array of numbers"),
    ((SCORES.astype(complex), WORDS), "complex"),
    (([[1, 2], [3]], WORDS), "array of numbers"),
    ((with_(np.nan), WORDS), r"token 2 \('.'\) must be finite, or -inf"),
    ((with_(np.inf), WORDS), r"token 2 \('.'\) must be finite, or -inf"),
    ((with_(-np.inf, 2), WORDS), r"token 2 \('.'\) are all -inf"),
    ((with_(-np.inf, (3, [0, 1, 3])), WORDS, OFFSETS), "every labelling is forbidden"),
    ((SCORES, "Paris s"), "list of strings, got a value of type str"),
    ((SCORES, [*WORDS[:6], 3]), "token 6 must be a string, got int"),
    ((SCORES, WORDS, [0, 3]), "must rise from 0 to the number of tokens, 7"),
    ((SCORES, WORDS, [0, 3, 3, 7]), "must rise"),
    ((SCORES, WORDS, [0, 5, 3, 7]), "must rise"),
    ((SCORES, WORDS, [3, 7]), "must rise"),
    ((SCORES, WORDS, []), "must rise"),
    ((SCORES, WORDS, [0.0, 7.0]), "must rise"),
    ((SCORES, WORDS, [[0, 7]]), "must rise"),
]


@pytest.mark.parametrize(("document", "message"), BAD_DOCUMENTS)
def test_bad_documents_are_told_in_one_line(document, message):
    with pytest.raises(ValueError, match=message) as raised:
        SkipChainLayer(IOB2).apply(*document)
    assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match=message):
        SkipChainLayer(IOB2).predict([document[0]], [document[1]], [document[2]] if len(document) > 2 else None)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (SCORES, "between 0 and 1, got .*; for logits"),
        (with_(-0.1, scores=P), "between 0 and 1"),
        (with_(np.nan, scores=P), "must be finite"),
        (P * 0.9, r"token 0 \('Paris'\) must add up to 1, got 0.9"),
        (P * 0, "add up to 1"),
    ],
)
def test_bad_marginals_are_told_in_one_line(scores, message):
    with pytest.raises(ValueError, match=message):
        SkipChainLayer(IOB2, scores="marginals").apply(scores, WORDS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": []}, "at least one item"),
        ({"tags": "OBI"}, "list of strings"),
        ({"tags": ["O", "B-PER", "O", "x"]}, "must be distinct, got 'O' twice"),
        ({"tags": ["O", "", "a", "b"]}, "must be non-empty strings"),
        ({"tags": [0, 1, 2, 3]}, "tags must be non-empty strings"),
        ({"tags": ["O", "PER", "LOC", "ORG"]}, "'PER' is not a tag .*constrained=False"),
        ({"tags": ["O", "S-PER", "U-PER", "I-PER"]}, "does not exist in iobes"),
        ({"scheme": "iobes", "tags": ["O", "L-PER", "U-PER", "I-PER"]}, "does not exist in iobes"),
        ({"scheme": "iob9"}, "unknown tag scheme"),
        ({"scores": "logits"}, "log-potentials, marginals"),
        ({"link_strength": float("nan")}, "link_strength must be a finite number"),
        ({"link_strength": "1"}, "link_strength must be a finite number"),
        ({"transition": np.zeros((3, 3))}, r"\[4, 4\]"),
        ({"transition": np.full((4, 4), np.nan)}, "transition must contain -inf or finite numbers"),
        ({"transition": "x"}, "array of numbers"),
        ({"rules": "same-word"}, "rules must be a list"),
        ({"rules": SameWord()}, "rules must be a list"),
        ({"rules": [SameWord]}, r"a rule must be an object such as SameWord\(\)"),
        ({"rules": ["same-thing"]}, "same-thing"),
        ({"backend": "magic"}, "no backend 'magic'"),
        ({"backend": 7}, "`backend` must be a name"),
        ({"backend": "viterbi"}, "viterbi needs a chain"),
    ],
)
def test_bad_options_are_told_in_one_line(options, message):
    with pytest.raises(ValueError, match=message) as raised:
        SkipChainLayer(**{"tags": IOB2, **options}).apply(SCORES, WORDS)
    assert "\n" not in str(raised.value)


def test_bad_training_data_are_told():
    scores, tokens, tags, _ = documents(3, 0)
    forbidden = np.where(np.eye(3)[[0] * 5] > 0, -np.inf, 0.0)
    for arguments, message in (
        ((scores, tokens, tags[:2]), "one sequence for each of 3 documents, got 2"),
        ((scores, tokens[:2], tags), "got 3, 2 and 2 items"),
        ((scores, tokens, [*tags[:2], tags[2][:4]]), "document 2: tags must have one item for each of the 5 tok"),
        ((scores, tokens, [*tags[:2], ["O", "x", "O", "O", "O"]]), "document 2: 'x' is not a tag"),
        ((scores, tokens, [*tags[:2], ["O", "B-ORG", "O", "O", "O"]]), "document 2: .*'B-ORG' of token 1 is not among"),
        (([*scores[:2], scores[2] * np.nan], tokens, tags), "document 2: .* must be finite"),
        (([*scores[:2], forbidden], tokens, tags), "document 2: .*tag 'O' of token 0 has the score -inf"),
        (([], [], []), "have no tokens"),
        (([np.empty((0, 3))], [[]], [[]]), "have no tokens"),
    ):
        with pytest.raises(ValueError, match=message):
            SkipChainLayer(LABELS).fit(*arguments)
    for development in ((scores, tokens), [scores, tokens, tags]):
        with pytest.raises(ValueError, match="development must be"):
            SkipChainLayer(LABELS).fit(scores, tokens, tags, development=development)
    nothing = [["O"] * len(sequence) for sequence in tags]
    with pytest.raises(ValueError, match="the development documents have no entity"):
        SkipChainLayer(LABELS).fit(scores, tokens, tags, development=(scores, tokens, nothing))


@pytest.mark.parametrize(
    "links", [[[[0, 9]]], [[[-1, 1]]], [[[1, 0]]], [[[0.5, 1.0]]], [], [[[0, 1]], [[0, 1]]], [[0, 1]], [[[0, 2**33]]]]
)
def test_links_that_are_none_are_told(links):
    layer = SkipChainLayer(["O", "B-PER", "I-PER"])
    with pytest.raises(ValueError, match=r"^links (of rule same-word )?must "):
        layer.apply(np.zeros((3, 3)), ["Ada", "met", "Ada"], links=links)
