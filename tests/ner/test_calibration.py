"""Calibrated confidences: what is fitted, from what, and that nothing else depends on it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import spacy
from altered import members_of, packed, with_checksum
from data import news
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

import herdner
from herdner.crf.templates import linear_chain
from herdner.evaluation.calibration import claims, log_loss
from herdner.ner.calibration import Beliefs, Calibration
from herdner.ner.fitting import Judged, calibration, judged
from herdner.ner.model import Model
from herdner.ner.model_file import ModelError
from herdner.ner.supervision import supervise
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.open import Open

weight, constant = st.floats(0, 5), st.floats(-5, 5)
maps = st.builds(Calibration, st.tuples(weight, weight, constant), st.tuples(weight, constant))
probability = st.floats(0, 1)


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger(max_iterations=15, n_folds=2).fit(news("train"))


@pytest.fixture(scope="module")
def raw(tagger: Tagger) -> Tagger:
    return Tagger.from_model(tagger.model_, calibrated=False)


def beliefs(confidence, without, linked) -> Beliefs:
    return Beliefs(np.array(confidence, float), np.array(without, float), np.array(linked, bool))


# --- the map


@given(maps, probability, probability, probability, st.booleans())
@examples(200)
def test_it_is_monotone_and_gives_probabilities(found, low, high, other, linked):
    low, high = sorted((low, high))
    for said in (beliefs([low, high], [other] * 2, [linked] * 2), beliefs([other] * 2, [low, high], [linked] * 2)):
        first, second = found(said)
        assert 0 <= first <= second <= 1


def test_the_usual_one_changes_nothing():
    p = np.array([1e-9, 0.2, 0.5, 0.9, 1 - 1e-9])
    np.testing.assert_allclose(Calibration()(Beliefs(p, 1 - p, p > 0.3)), p, rtol=1e-6)


def draw(found: Calibration, n: int, seed: int) -> tuple[Beliefs, np.ndarray]:
    """Names of which this map tells the truth."""
    rng = np.random.default_rng(seed)
    own = 1 / (1 + np.exp(-rng.normal(2, 2, n)))
    linked = rng.random(n) < 0.5
    with_links = np.where(linked, 1 / (1 + np.exp(-rng.normal(3, 3, n))), own)
    said = Beliefs(with_links, own, linked)
    return said, rng.random(n) < found(said)


def test_what_is_certain_stays_certain():
    map_, one = Calibration((0.5, 0.3, -1.0), (0.7, -0.4)), np.ones(3)
    said = Beliefs(one, np.array([1.0, 0.6, 1.0]), np.array([True, True, False]))
    found = map_(said)
    assert (found[[0, 2]] == 1).all()
    assert found[1] < 1


def test_fitting_finds_the_map_that_names_were_drawn_from():
    true = Calibration((0.2, 0.6, -0.3), (0.7, 0.2))
    found = Calibration.fit(*draw(true, 200_000, 1))
    np.testing.assert_allclose([*found.linked, *found.alone], [*true.linked, *true.alone], atol=0.03)


def penalised(found: Calibration, said: Beliefs, right: np.ndarray, counts: np.ndarray, origin: Calibration) -> float:
    """What fitting makes small, name by name."""
    off = np.subtract([*found.linked, *found.alone], [*origin.linked, *origin.alone])
    p = [float(found(Beliefs(*(column[i : i + 1] for column in said)))[0]) for i in range(len(right))]
    loss = sum(c * -math.log(q if r else 1 - q) for q, r, c in zip(p, right, counts, strict=True))
    return loss + float(off @ off)


@pytest.mark.parametrize("seed", range(3))
def test_no_map_near_the_fitted_one_is_better(seed):
    said, right = draw(Calibration((0.3, 0.0, 0.5), (0.5, -1.0)), 40, seed)
    rng = np.random.default_rng(seed)
    counts, origin = rng.random(40), Calibration((0.5, 0.5, 0.2), (0.8, 0.1))
    found = Calibration.fit(said, right, counts, origin)
    best = penalised(found, said, right, counts, origin)
    for _ in range(60):
        near = np.array([*found.linked, *found.alone]) + rng.normal(0, 0.02, 5)
        near[[0, 1, 3]] = np.maximum(near[[0, 1, 3]], 0)
        other = Calibration(tuple(near[:3]), tuple(near[3:]))
        assert penalised(other, said, right, counts, origin) >= best - 1e-4


def test_without_names_the_map_stays_where_it_was():
    origin = Calibration((0.5, 0.5, 0.2), (0.8, 0.1))
    nothing = beliefs([], [], [])
    assert Calibration.fit(nothing, np.empty(0, bool), origin=origin) == origin
    assert Calibration.fit(nothing, np.empty(0, bool)) == Calibration()


@pytest.mark.parametrize("numbers", [((1, 0), (1, 0)), ((1, -1, 0), (1, 0)), ((1, 0, math.nan), (1, 0))])
def test_maps_that_are_none_are_refused(numbers):
    with pytest.raises(ValueError, match="3 numbers for linked names and 2 for others"):
        Calibration(*numbers)


# --- in a tagger


def test_tags_are_the_same_bit_for_bit_and_confidences_are_not(tagger, raw):
    for document in news("dev"):
        one, other = tagger.tag(document), raw.tag(document)
        assert one.tags == other.tags
        assert [replace(e, confidence=None) for e in one.entities] == [
            replace(e, confidence=None) for e in other.entities
        ]
        assert all(0 < e.confidence < 1 for e in one.entities)
    assert [e.confidence for e in one.entities] != [e.confidence for e in other.entities]
    np.testing.assert_array_equal(*(np.concatenate(each.predict_marginals(news("dev"))) for each in (tagger, raw)))


def test_confidences_of_text_that_was_not_seen_are_closer_to_the_truth(tagger, raw):
    gold = news("dev")
    losses = [log_loss(claims(gold, list(each.pipe(gold)))) for each in (tagger, raw)]
    assert losses[0] < losses[1]


def test_they_are_what_the_map_makes_of_those_with_and_without_links(tagger, raw):
    document = news("dev")[0]
    with_links = raw.tag(document).entities
    explained = raw.explain(document)
    ends = {t for found in raw.find_links(document).values() for t in found.ravel().tolist()}
    spans = raw.tag(document).spans
    linked = [any(t in ends for t in range(span.start, span.end)) for span in spans]
    assert len(explained) == len(with_links)
    assert 0 < sum(linked) < len(linked)
    said = beliefs([e.confidence for e in with_links], [e.confidence_without_links for e in explained], linked)
    expected = tagger.model_.calibration(said)
    np.testing.assert_allclose([e.confidence for e in tagger.tag(document).entities], expected, rtol=1e-12)


def test_a_model_keeps_its_calibration_in_its_file(tagger, tmp_path):
    tagger.save(tmp_path / "m")
    again = herdner.load(tmp_path / "m")
    assert again.model_.calibration == tagger.model_.calibration
    assert list(again.pipe(news("dev"))) == list(tagger.pipe(news("dev")))


def test_files_without_one_say_what_the_crf_says(tagger, raw, tmp_path):
    replace(tagger.model_, calibration=None).save(tmp_path / "m")
    assert list(herdner.load(tmp_path / "m").pipe(news("dev"))) == list(raw.pipe(news("dev")))


@pytest.mark.parametrize("wrong", [None, 7, {}, {"linked": [1, 0, 0]}, {"linked": ["x", 0, 0], "alone": [1, 0]},
                                   {"linked": [1, 0, 0], "alone": [-1, 0]}])  # fmt: skip
def test_a_calibration_that_is_none_is_a_damaged_model(tagger, tmp_path, wrong):
    tagger.save(tmp_path / "m")
    members = members_of((tmp_path / "m").read_bytes())
    header = json.loads(members["header.json"])
    members["header.json"] = json.dumps({**header, "calibration": wrong}).encode()
    (tmp_path / "m").write_bytes(packed(with_checksum(members)))
    with pytest.raises(ModelError, match="damaged model"):
        Model.load(tmp_path / "m")


def test_spacy_has_the_same_confidences(tagger, raw, tmp_path):
    tagger.save(tmp_path / "m")
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("herdner", config={"model": str(tmp_path / "m")})
    doc = nlp(news("dev")[0].text)
    tokens = Document.from_aligned(doc.text, [[t.text for t in sent if not t.is_space] for sent in doc.sents])
    said = [entity._.confidence for entity in doc.ents]
    assert len(said) > 2
    assert said == [entity.confidence for entity in tagger.tag(tokens).entities]
    assert said != [entity.confidence for entity in raw.tag(tokens).entities]


def test_log_odds_of_an_explanation_are_the_crfs_own(tagger, raw):
    document = news("dev")[0]
    for one, other in zip(tagger.explain(document), raw.explain(document), strict=True):
        assert (one.log_odds, one.parts) == (other.log_odds, other.parts)
        assert one.log_odds == pytest.approx(math.fsum(part.value for part in one.parts))
        assert one.mention.confidence != other.mention.confidence
    assert [e.mention for e in tagger.explain(document)] == list(tagger.tag(document).entities)


# --- from what it is learned


def test_it_needs_documents_that_the_chain_has_not_seen():
    documents = news("dev")
    assert Tagger(max_iterations=3, n_folds=1).fit(documents).model_.calibration is None
    assert Tagger(max_iterations=3).fit(documents[:1]).model_.calibration is None
    assert Tagger(max_iterations=3, templates=(linear_chain(),)).fit(documents).model_.calibration is None
    assert Tagger(max_iterations=3, n_folds=2, calibrated=False).fit(documents).model_.calibration is None


def test_each_source_counts_the_same():
    """As if the names of the smaller source stood there as often as those of the larger one."""
    said, right = draw(Calibration((0.3, 0.4, 0.5), (0.5, -1.0)), 60, 1)
    large, small = np.arange(45), np.repeat(np.arange(45, 60), 3)
    document = np.repeat([0, 1, 2], [30, 15, 15])
    found = calibration(Judged(said, right, document), [0, 0, 1], None)
    rows = np.concatenate([large, small])
    repeated = Calibration.fit(Beliefs(*(c[rows] for c in said)), right[rows], np.full(90, 60 / 90))
    np.testing.assert_allclose([*found.linked, *found.alone], [*repeated.linked, *repeated.alone], atol=1e-3)
    alike = calibration(Judged(said, right, document), [0] * 3, None)
    assert alike == calibration(Judged(said, right, document), None, None)


def test_sources_of_documents_matter(tagger):
    documents = news("train")
    groups = ["a" if i % 8 else "b" for i in range(len(documents))]
    other = Tagger(max_iterations=15, n_folds=2).fit(documents, groups=groups).model_
    assert other.calibration != tagger.model_.calibration
    assert [each.table.tolist() for each in other.link_tables] == [
        each.table.tolist() for each in tagger.model_.link_tables
    ]


def test_sources_are_checked():
    with pytest.raises(ValueError, match="8 documents but 1 groups: name a source for each document"):
        Tagger(max_iterations=3).fit(news("dev")[:8], groups=["a"])


def test_names_that_an_annotation_leaves_open_are_not_held_against_it(tagger):
    labels = tagger.labels
    tokens = [["Ada", "Lovelace", "met", "Charles", "Babbage"]]
    tags = ["B-PER", "E-PER", "O", "O", "O"]
    found = ["B-ORG", "E-ORG", "O", "B-PER", "E-PER"]
    unary = np.full((5, len(labels)), -9.0)
    unary[np.arange(5), [labels.index(tag) for tag in found]] = 9.0
    crf = Tagger.from_model(replace(tagger.model_, link_tables=())).model_.crf()

    def right(annotated: tuple[str, ...] | None) -> list[bool]:
        document = Document.from_tokens(tokens, [tags])
        if annotated is not None:
            document = replace(document, open=Open(annotated=annotated))
        documents, taught = supervise([document], None, "iobes", labels)
        return judged(crf, labels, documents, [unary], taught).right.tolist()

    assert right(None) == [False, False]
    assert right(("PER", "LOC", "ORG")) == [False, False]
    found[3:] = ["B-LOC", "E-LOC"]
    unary = np.full((5, len(labels)), -9.0)
    unary[np.arange(5), [labels.index(tag) for tag in found]] = 9.0
    assert right(("PER", "ORG")) == [False]  # whether there is a place is not known
