"""Topics of documents: clusters by a plain count, and the features that join them with words."""

from __future__ import annotations

import io

import numpy as np
import pytest
from altered import Members, altered
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from quick import examples

from herdner import Document, Tagger
from herdner.crf.templates import linear_chain_template
from herdner.ner.features import TOPIC_ATTRIBUTES, FeaturePlan, default_plan, make_extractor
from herdner.ner.lexicon import TOPICS, VECTOR_CLASSES, Lexicon, Topics, vector_classes
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError
from herdner.ner.training.topics import class_shares, learn_topics, with_topics

WORDS = [f"word{k}" for k in range(40)]
TREE = np.array([[k % 32, k % 128, 12 * k % 512] for k in range(40)])
VECTORS = vector_classes({word: k for k, word in enumerate(WORDS)}, TREE)
ROWS = VECTOR_CLASSES[2] + 1


def random_topics(seed: int) -> Topics:
    return Topics(np.random.default_rng(seed).random((ROWS, sum(TOPICS))).astype(np.float32))


def found_topics(document: Document, topics: Topics) -> NDArray[np.uint64]:
    """uint64[tokens, 3], as features see them."""
    plan = FeaturePlan(("bias[0]",))
    extractor = make_extractor(plan, Lexicon(vectors=VECTORS, topics=topics))
    *_, attributes = extractor.origins(document.tokens, document.sentence_offsets, np.empty(0, np.int64))
    return attributes[:, [plan.attributes.index(name) for name in TOPIC_ATTRIBUTES]]


SENTENCES = st.lists(st.lists(st.sampled_from([*WORDS, "unknown", "Word3"]), min_size=1, max_size=12), max_size=5)


@examples(100)
@given(SENTENCES, st.integers(0, 5))
def test_a_topic_is_the_nearest_centre(sentences, seed):
    document, topics = Document.from_tokens(sentences), random_topics(seed)
    shares, n = np.zeros(ROWS), len(document.tokens)
    for word in document.tokens:
        k = WORDS.index(word.lower()) if word.lower() in WORDS else None
        shares[0 if k is None else 1 + TREE[k, 2]] += 1 / n
    found = found_topics(document, topics)
    assert (found == found[:1]).all()
    distances = ((np.sqrt(shares)[:, None] - topics.centres) ** 2).sum(axis=0)
    for value, name, start in zip(found[:1].T, TOPICS, topics.starts[:-1], strict=True):
        near = distances[start : start + name]
        assert all(near[int(v) - 1] <= near.min() + 1e-4 for v in value)


def test_documents_have_none_where_there_are_no_topics():
    plan = FeaturePlan(tuple(f"{name}[0]" for name in TOPIC_ATTRIBUTES))
    starts, _ = make_extractor(plan, Lexicon(vectors=VECTORS)).keys(["word1", "word2"], np.array([0, 2]))
    assert starts.tolist() == [0, 0, 0]
    starts, _ = make_extractor(plan, Lexicon(vectors=VECTORS, topics=random_topics(0))).keys(["x"], np.array([0, 1]))
    assert starts.tolist() == [0, 3]


def documents(n: int, seed: int = 0) -> list[Document]:
    """Half are on sports, where Alpha is a team, half are not, where it is a place."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        label, words = ("ORG", WORDS[:20]) if i % 2 else ("LOC", WORDS[20:])
        tokens = [*rng.choice(words, 8).tolist(), "Alpha", *rng.choice(words, 3).tolist()]
        found.append(Document.from_tokens([tokens], [["O"] * 8 + [f"B-{label}"] + ["O"] * 3], id=str(i)))
    return found


def test_a_word_means_what_it_does_on_the_topic():
    """Without topics the words beside it are all there is, and here they say nothing: they are other ones each time."""
    lexicon = Lexicon(vectors=VECTORS)
    alone = FeaturePlan(tuple(t for t in default_plan().templates if t in ("lower[0]", "brief_shape[0]", "bias[0]")))
    with_them = FeaturePlan((*alone.templates, *(f"{name}[0]|lower[0]" for name in TOPIC_ATTRIBUTES)))
    train, test = documents(640), documents(60, seed=1)
    learned = with_topics(Tagger(lexicon=lexicon).fit(train[:2]).model_, train, None, 0).lexicon.topics
    known = Lexicon(vectors=VECTORS, topics=learned)
    scores = [
        Tagger(plan=plan, lexicon=known, calibrated=False, n_folds=1).fit(train).score(test)
        for plan in (alone, with_them)
    ]
    assert scores[0] < 0.7
    assert scores[1] > 0.95


def test_training_learns_topics_where_it_can():
    lexicon, train = Lexicon(vectors=VECTORS), documents(10 * max(TOPICS))
    tagger = Tagger(lexicon=lexicon, calibrated=False, n_folds=1, templates=[linear_chain_template()])
    model = tagger.fit(train).model_
    assert model.lexicon.topics is not None
    assert model.plan == default_plan(topics=True)
    again = Tagger(lexicon=lexicon, calibrated=False, n_folds=1, templates=[linear_chain_template()])
    np.testing.assert_array_equal(again.fit(train).model_.lexicon.topics.centres, model.lexicon.topics.centres)
    more = again.fit([*train, *documents(2, seed=5)], start=tagger).model_  # numbers of topics mean what they did
    np.testing.assert_array_equal(more.lexicon.topics.centres, model.lexicon.topics.centres)
    assert Tagger().fit(documents(4), base=tagger).model_.lexicon is model.lexicon
    stream = io.BytesIO()
    model.save(stream)
    stream.seek(0)
    loaded = Tagger.from_model(TaggerModel.load(stream))
    test = [document.without_annotation() for document in documents(40, seed=2)]
    assert [d.tags for d in loaded.pipe(test)] == [tagger.tag(d).tags for d in test]


def test_training_learns_none_where_it_cannot():
    few, many = documents(10 * max(TOPICS) - 1), documents(10 * max(TOPICS))
    own = Tagger(lexicon=Lexicon(vectors=VECTORS)).fit(few[:4]).model_
    assert with_topics(own, few, None, 0) is own
    assert with_topics(own, many, own, 0) is own  # the model that it starts from has none
    bare = Tagger().fit(few[:4]).model_
    assert with_topics(bare, many, None, 0) is bare
    plan = FeaturePlan(("lower[0]",))
    given = Tagger(plan=plan, lexicon=Lexicon(vectors=VECTORS), calibrated=False, n_folds=1).fit(many).model_
    assert given.plan == plan
    assert given.lexicon.topics is None


def test_clusters_are_found():
    """Test that groups of documents are not split, and that most have their own topic, if there are enough topics."""
    rng = np.random.default_rng(0)
    kinds = rng.permutation(np.arange(640) % max(TOPICS))
    points = np.zeros((640, ROWS))
    points[np.arange(640), kinds] = 1.0
    topics = learn_topics(points, 0)
    products = points @ topics.centres[:, -max(TOPICS) :] + topics.biases[-max(TOPICS) :]
    found = products.argmax(axis=1)
    assert len(set(zip(kinds.tolist(), found.tolist(), strict=True))) == max(TOPICS)
    assert len(set(found.tolist())) > 0.6 * max(TOPICS)


def test_shares_are_those_of_vector_classes():
    model = Tagger(lexicon=Lexicon(vectors=VECTORS)).fit(documents(2)).model_
    (row, empty) = class_shares(
        model, [Document.from_tokens([["word1", "word1", "word2", "none"]]), Document.from_tokens([])]
    )
    assert row[[0, 1 + TREE[1, 2], 1 + TREE[2, 2]]].tolist() == [0.5, np.sqrt(0.5), 0.5]
    assert row.sum() == pytest.approx(1 + np.sqrt(0.5))
    assert not empty.any()


def test_features_of_topics_are_said_in_words():
    tagger = Tagger(lexicon=Lexicon(vectors=VECTORS, topics=random_topics(1)), calibrated=False).fit(documents(40))
    said = " ".join(part.words for part in tagger.explain(documents(1)[0], name="Alpha")[0].parts)
    assert "the word is in a document on topic" in said


@pytest.mark.parametrize(
    "centres", [np.zeros((ROWS, 5)), np.zeros((3, sum(TOPICS))), np.full((ROWS, 96), np.nan), np.full((ROWS, 96), 2.0)]
)
def test_other_arrays_are_no_topics(centres):
    with pytest.raises(ValueError, match=r"centres must be numbers from 0 to 1 in an array of shape \(513, 96\)"):
        Topics(centres.astype(np.float32))


def test_a_file_with_other_topics_is_no_model(tmp_path):
    lexicon = Lexicon(vectors=VECTORS, topics=random_topics(0))
    model = Tagger(lexicon=lexicon, calibrated=False).fit(documents(4)).model_
    model.save(tmp_path / "m.herdner")
    wrong, message = (
        np.zeros((ROWS, 5), np.float32),
        r"centres must be numbers from 0 to 1 in an array of shape \(513, 96\)",
    )

    def edit(members: Members) -> None:
        buffer = io.BytesIO()
        np.save(buffer, wrong)
        members["topics.npy"] = buffer.getvalue()

    with pytest.raises(ModelError, match=message):
        TaggerModel.load(io.BytesIO(altered((tmp_path / "m.herdner").read_bytes(), edit)))
    object.__setattr__(lexicon.topics, "centres", wrong)
    with pytest.raises(ValueError, match=message):
        model.save(tmp_path / "m.herdner")
