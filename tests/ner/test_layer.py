"""The layer on top of other taggers: against enumeration, on its worked examples, and on what learning finds."""

from __future__ import annotations

import doctest
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle, chain_factors
from quick import examples
from scored_documents import IOB2, LABELS, OFFSETS, SCORES, WORDS, documents
from sklearn.base import clone

import herdner
from herdner import SkipChainLayer
from herdner.crf.learning import Learner
from herdner.crf.link_rules import Acronym, SameWord
from herdner.ner import layer as module
from herdner.ner.scored import FLOOR


def joint(scores: np.ndarray, ends: list[tuple[int, int]], strength: float) -> Oracle:
    """The model written out for IOB2: chains of two sentences, forbidden tags, and ties between equal classes."""
    classes = [label[2:] for label in IOB2]
    follow, start = np.zeros((4, 4)), np.zeros(4)
    start[2] = follow[0, 2] = follow[3, 2] = -np.inf
    table = strength * np.array([[float(a == b) for b in classes] for a in classes])
    factors = []
    for begin, end in itertools.pairwise(OFFSETS):
        moved = [(tuple(t + begin for t in scope), f) for scope, f in chain_factors(scores[begin:end], [follow])]
        factors += [*moved, ((begin,), start)]
    return Oracle.of([4] * len(scores), [*factors, *((pair, table) for pair in ends)])


@pytest.mark.slow
@examples(6)
@given(st.integers(0, 10**6), st.floats(-2, 3))
@pytest.mark.parametrize(("backend", "abs_"), [("exact", 1e-9), ("sum-product", 5e-3)])
def test_tags_and_marginals_are_those_of_the_enumerated_joint(backend, abs_, seed, strength):
    scores = np.random.default_rng(seed).normal(size=(7, 4), scale=2)
    result = SkipChainLayer(IOB2, link_strength=strength, backend=backend).apply(scores, WORDS, OFFSETS)
    oracle = joint(scores, [(0, 5)], strength)
    assert result.links.tolist() == [[0, 5]]
    assert result.links.dtype == np.int32
    expected = np.stack([oracle.marginal(t) for t in range(7)])
    np.testing.assert_allclose(result.marginals, expected, atol=abs_)
    if backend == "exact":
        assert result.tags == [IOB2[k] for k in oracle.best()]
        alone = joint(scores, [], 0).best()
        assert result.changed.tolist() == (oracle.best() != alone).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"link_strength": 0.0}, {"rules": ()}, {"rules": [Acronym()]}])
def test_without_a_tie_a_rule_or_a_link_the_answer_is_the_chains(options):
    rng = np.random.default_rng(3)
    for _ in range(4):
        scores = rng.normal(size=(7, 4), scale=2)
        oracle = joint(scores, [], 0)
        result = SkipChainLayer(IOB2, **options).apply(scores, WORDS, OFFSETS)
        assert result.tags == [IOB2[k] for k in oracle.best()]
        assert not result.changed.any()
        assert result.marginals[1] == pytest.approx(oracle.marginal(1), abs=1e-9)


def test_a_name_that_is_unclear_once_takes_the_class_of_its_clear_mention():
    result = SkipChainLayer(IOB2).apply(SCORES, WORDS, OFFSETS)
    assert result.tags == ["B-PER", "O", "O", "O", "O", "B-PER", "O"]
    assert result.spans == [(0, 1, "PER"), (5, 6, "PER")]
    assert np.flatnonzero(result.changed).tolist() == [5]
    assert SkipChainLayer(IOB2, link_strength=0.0).apply(SCORES, WORDS, OFFSETS).tags[5] == "B-LOC"
    sure = SCORES.copy()
    sure[5, 3] = 9  # the text says so: a soft strength gives way
    assert SkipChainLayer(IOB2).apply(sure, WORDS, OFFSETS).tags[5] == "B-LOC"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(herdner.BACKENDS) - {"viterbi", "icm"}))
def test_any_backend_decodes(name):
    result = SkipChainLayer(IOB2, link_strength=2.0, backend=name).apply(SCORES, WORDS, OFFSETS, seed=5)
    assert result.tags[0] == result.tags[5] == "B-PER"
    again = SkipChainLayer(IOB2, link_strength=2.0, backend=herdner.make_backend(name)).apply(
        SCORES, WORDS, OFFSETS, seed=5
    )
    assert again.tags == result.tags


def test_the_worked_examples_run():
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not failed
    assert tried > 15


@pytest.mark.parametrize(
    "change",
    [
        lambda scores: scores.astype(np.float32),
        lambda scores: scores.astype(np.float16),
        lambda scores: scores.astype(">f8"),
        np.asfortranarray,
        lambda scores: np.repeat(scores, 2, axis=1)[:, ::2],
        lambda scores: scores.tolist(),
        lambda scores: scores * 1.0 + np.arange(7)[:, None] * 1e3,  # what a token's labels have in common says nothing
    ],
)
def test_arrays_of_any_kind_are_read_and_left_as_they_are(change):
    given_ = change(SCORES)
    before = np.array(given_, copy=True)
    expected = SkipChainLayer(IOB2).apply(SCORES, WORDS, OFFSETS)
    result = SkipChainLayer(IOB2).apply(given_, tuple(WORDS), np.array(OFFSETS, np.int32))
    assert result.tags == expected.tags
    np.testing.assert_allclose(result.marginals, expected.marginals, atol=1e-9)
    np.testing.assert_array_equal(given_, before)


def test_marginals_and_their_logarithms_say_the_same_even_rounded_to_nothing():
    p = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)
    by_logs = SkipChainLayer(IOB2).apply(np.log(p), WORDS, OFFSETS)
    by_p = SkipChainLayer(IOB2, scores="marginals").apply(p, WORDS, OFFSETS)
    np.testing.assert_allclose(by_p.marginals, by_logs.marginals, atol=1e-9)
    certain = np.eye(4)[[1, 0, 0, 0, 0, 3, 0]]
    result = SkipChainLayer(IOB2, scores="marginals", link_strength=-2 * np.log(FLOOR)).apply(certain, WORDS, OFFSETS)
    assert result.tags[0][2:] == result.tags[5][2:]
    half = SkipChainLayer(IOB2, scores="marginals").apply(p.astype(np.float16), WORDS, OFFSETS)
    assert half.tags == by_p.tags


def test_numbers_out_of_all_proportion_forbid_or_decide():
    scores = SCORES.astype(np.float32)
    scores[5] = np.finfo(np.float32).min
    scores[5, 3] = 0
    assert SkipChainLayer(IOB2).apply(scores, WORDS, OFFSETS).tags[5] == "B-LOC"
    huge = SCORES * 4e307
    assert SkipChainLayer(IOB2).apply(huge, WORDS, OFFSETS).tags[0] == "B-PER"


def test_plain_labels_need_no_scheme():
    scores = SCORES[:, [0, 1, 3]]
    layer = SkipChainLayer(["O", "PER", "LOC"], constrained=False)
    result = layer.apply(scores, WORDS, OFFSETS)
    assert result.tags == ["PER", "O", "O", "O", "O", "PER", "O"]
    assert result.spans == [(0, 1, "PER"), (5, 6, "PER")]
    pairs = layer.apply(np.eye(3)[[1, 1, 0, 2, 2, 1, 0]] * 9, WORDS, OFFSETS)
    assert pairs.spans == [(0, 2, "PER"), (3, 5, "LOC"), (5, 6, "PER")]


@pytest.mark.parametrize(
    ("labels", "scheme", "bad"),
    [
        (["I-PER", "B-PER", "O"], None, ["O", "I-PER"]),
        (["I-PER", "B-PER", "O"], "iob1", ["O", "B-PER"]),
        (["I-PER", "O"], None, None),
        (["E-PER", "S-PER", "I-PER", "B-PER", "O"], None, ["O", "E-PER"]),
        (["L-PER", "U-PER", "I-PER", "B-PER", "O"], None, ["B-PER", "O"]),
    ],
)
def test_sequences_that_are_not_well_formed_are_forbidden(labels, scheme, bad):
    rng = np.random.default_rng(1)
    for tags in itertools.product(labels, repeat=2):
        scores = rng.normal(size=(2, len(labels)))
        for t, tag in enumerate(tags):
            scores[t, labels.index(tag)] += 20
        constrained = SkipChainLayer(labels, scheme=scheme).apply(scores, ["a", "b"]).tags
        assert constrained != bad
        assert SkipChainLayer(labels, constrained=False).apply(scores, ["a", "b"]).tags == list(tags)


def test_one_token_none_and_one_sentence():
    layer = SkipChainLayer(IOB2)
    assert layer.apply([[0, 1, 0, 0]], ["Paris"]).tags == ["B-PER"]
    for nothing in (np.empty((0, 4)), []):
        for offsets in (None, [0], [0, 0]):
            result = layer.apply(nothing, [], offsets)
            assert (result.tags, result.spans, result.marginals.shape) == ([], [], (0, 4))
            assert (result.links.shape, result.changed.shape) == ((0, 2), (0,))
    assert layer.apply(SCORES, WORDS).tags == layer.apply(SCORES, WORDS, [0, 7]).tags


def accuracy(layer: SkipChainLayer, data: tuple) -> float:
    scores, tokens, tags, offsets = data
    pairs = zip(layer.predict(scores, tokens, offsets), tags, strict=True)
    return float(np.mean([a == b for found, right in pairs for a, b in zip(found, right, strict=True)]))


def log_likelihood(layer: SkipChainLayer, data: tuple) -> float:
    """The log-probability of the right tags, by marginals."""
    total = 0.0
    for scores, tokens, tags, offsets in zip(*data, strict=True):
        marginals = layer.apply(scores, tokens, offsets).marginals
        total += float(np.log(marginals[np.arange(5), [LABELS.index(tag) for tag in tags]]).sum())
    return total


@pytest.mark.parametrize(
    "rules",
    [
        ["same-word"],
        pytest.param([SameWord(), "acronym"], marks=pytest.mark.slow),
    ],
)
def test_fit_finds_what_ties_say(rules):
    train, test = documents(300, 0), documents(200, 1)
    chain, untrained = SkipChainLayer(LABELS, rules=()), SkipChainLayer(LABELS, rules)
    steps = []
    fitted = SkipChainLayer(LABELS, rules).fit(*train, development=documents(50, 2), progress=steps.append)
    assert log_likelihood(fitted, test) > log_likelihood(untrained, test) + 10 > log_likelihood(chain, test) + 20
    assert accuracy(fitted, test) >= accuracy(untrained, test) > accuracy(chain, test)
    assert fitted.learning_curve_.steps == tuple(steps)
    assert all(0 < step.score <= 1 for step in steps)
    table = fitted.model_.link_tables[0].table
    assert table[1, 1] > table[1, 2]
    assert table[2, 2] > table[2, 1]


def test_the_transition_table_is_learned_only_jointly():
    train = documents(50, 0)
    for joint_, rules in itertools.product((False, True), (["same-word"], [])):
        layer = SkipChainLayer(LABELS, rules, learner=Learner(joint=joint_)).fit(*train)
        assert layer.model_.transition.any() == joint_
        assert accuracy(layer, train) > 0.5


def test_right_tags_may_be_of_any_scheme_and_labels_may_be_missing():
    words, scores = ["Ada", "Byron", "met", "Ada"], np.zeros((4, 3))
    iobes, iob2 = ["B-PER", "E-PER", "O", "S-PER"], ["B-PER", "I-PER", "O", "B-PER"]
    by = [SkipChainLayer(["O", "B-PER", "I-PER"]).fit([scores], [words], [tags]) for tags in (iobes, iob2)]
    np.testing.assert_array_equal(by[0].model_.transition, by[1].model_.transition)
    inside_only = SkipChainLayer(["O", "I-PER"]).fit([scores[:, :2]], [words], [iobes])
    assert inside_only.apply(np.array([[0, 1]] * 2 + [[9, 0], [0, 1]]), words).spans == [(0, 2, "PER"), (3, 4, "PER")]
    more = SkipChainLayer([*IOB2, "B-MISC"]).fit([np.zeros((4, 5))], [words], [iob2])  # nobody has seen B-LOC, B-MISC
    assert more.apply(np.eye(5)[[4, 0, 0, 4]] * 9, words).tags == ["B-MISC", "O", "O", "B-MISC"]


def test_plain_labels_are_learned_and_scored():
    scores, tokens, tags, offsets = documents(100, 0)
    plain = [[tag[-3:] for tag in sequence] for sequence in tags]
    data = scores, tokens, plain, offsets
    layer = SkipChainLayer(["O", "PER", "LOC"], constrained=False).fit(*data, development=data)
    assert max(step.score for step in layer.learning_curve_.steps) > 0.5
    assert accuracy(layer, data) > accuracy(SkipChainLayer(layer.tags, rules=(), constrained=False), data)


def test_each_document_is_decoded_by_itself():
    scores, tokens, _, offsets = documents(30, 4)
    layer = SkipChainLayer(LABELS)
    order = np.random.default_rng(0).permutation(30).tolist()
    together = layer.predict(scores, tokens, offsets)
    moved = layer.predict([scores[i] for i in order], [tokens[i] for i in order], [offsets[i] for i in order])
    assert moved == [together[i] for i in order]
    with ThreadPoolExecutor(4) as pool:
        each = list(pool.map(layer.apply, scores, tokens, offsets))
    assert [result.tags for result in each] == together
    sampler = SkipChainLayer(LABELS, backend="gibbs")
    assert sampler.predict(scores, tokens, offsets, seed=3) == sampler.predict(scores, tokens, offsets, seed=3)
    assert SkipChainLayer(LABELS).predict([], []) == []


def test_it_keeps_scikit_learns_conventions():
    layer = SkipChainLayer(LABELS, [SameWord(nearest=5)], link_strength=0.5, backend="gibbs")
    copy = clone(layer.fit(*documents(20, 0)))
    assert (copy.tags, copy.rules, copy.link_strength) == (LABELS, [SameWord(nearest=5)], 0.5)
    assert not hasattr(copy, "model_")
    assert copy.set_params(link_strength=2.0).link_strength == 2.0
    with pytest.raises(ValueError, match="unknown parameter 'ties'; SkipChainLayer has the parameters tags"):
        copy.set_params(ties=2.0)
    assert pickle.loads(pickle.dumps(layer)).predict(*documents(5, 1)[:2]) == layer.predict(*documents(5, 1)[:2])
    with pytest.raises(ValueError, match="call `fit` again"):
        layer.set_params(tags=LABELS[::-1]).predict(*documents(5, 1)[:2])
