"""Calibrated confidences: what is fitted, from what, and that nothing else depends on it."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace

import numpy as np
import pytest
import spacy
import threadpoolctl
from altered import members_of, packed, with_checksum
from data import news
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

import herdner
from herdner.crf.templates import linear_chain_template
from herdner.evaluation.calibration import entity_confidences, log_loss
from herdner.ner.calibration import Calibration, CalibrationInputs
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError
from herdner.ner.tagger import Tagger
from herdner.ner.training.corpus import prepare_corpus
from herdner.ner.training.held_out import HeldOutPredictions, fit_calibration, predict_held_out
from herdner.text.document import Document
from herdner.text.partial import PartialAnnotation

weight, constant = st.floats(0, 5), st.floats(-5, 5)
maps = st.builds(
    Calibration,
    st.tuples(weight, weight, constant),
    st.tuples(weight, constant),
    st.dictionaries(st.sampled_from(["PER", "LOC"]), constant),
    constant,
    weight,
)
probability = st.floats(0, 1)


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger(max_iterations=15, n_folds=2).fit(news("train"))


@pytest.fixture(scope="module")
def raw(tagger: Tagger) -> Tagger:
    return Tagger.from_model(tagger.model_, calibrated=False)


def beliefs(confidence, without, linked, label=None, length=None, document=None) -> CalibrationInputs:
    """Names of one token and class, each in a document of its own, if nothing else is said."""
    n = len(confidence)
    length = np.ones(n, int) if length is None else np.array(length, int)
    document = np.arange(n) if document is None else np.array(document, int)
    numbers = np.array(confidence, float), np.array(without, float), np.array(linked, bool)
    return CalibrationInputs(*numbers, label or ["PER"] * n, length, document)


def chosen(said: CalibrationInputs, rows) -> CalibrationInputs:
    """These names alone."""
    return CalibrationInputs(
        *(column[rows] for column in said[:3]), [said.label[i] for i in rows], said.length[rows], said.document[rows]
    )


def numbers_of(found: Calibration) -> list[float]:
    return [*found.linked, *found.unlinked, *found.labels.values(), found.length, found.document]


def with_numbers(numbers, classes) -> Calibration:
    *classes_numbers, length, document = numbers[5:]
    return Calibration(
        tuple(numbers[:3]), tuple(numbers[3:5]), dict(zip(classes, classes_numbers, strict=True)), length, document
    )


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
    np.testing.assert_allclose(Calibration()(beliefs(p, 1 - p, p > 0.3)), p, rtol=1e-6)


def draw(found: Calibration, n: int, seed: int) -> tuple[CalibrationInputs, np.ndarray]:
    """Names of which this map tells the truth, about four in a document."""
    rng = np.random.default_rng(seed)
    document = rng.integers(0, max(n // 4, 1), n)
    own = 1 / (1 + np.exp(-rng.normal(2, 2, n) - rng.normal(0, 2, n)[document]))
    linked = rng.random(n) < 0.5
    with_links = np.where(linked, 1 / (1 + np.exp(-rng.normal(3, 3, n))), own)
    label = rng.choice(["LOC", "ORG", "PER"], n).tolist()
    said = beliefs(with_links, own, linked, label, rng.integers(1, 7, n), document)
    return said, rng.random(n) < found(said)


def test_names_of_a_document_are_as_sure_as_they_are_on_average():
    said = beliefs([0.9] * 5, [0.2, 0.4, 0.9, 0.6, 0.5], [True] * 5, document=[3, 0, 3, 0, 7])
    np.testing.assert_allclose(said.regressors()[3], [0.55, 0.5, 0.55, 0.5, 0.5])


def test_class_length_and_document_add_to_the_log_odds():
    found = Calibration(labels={"ORG": -0.5}, length=-0.25, document=2.0)
    said = beliefs([0.5] * 4, [0.5] * 4, [True, False] * 2, ["ORG", "ORG", "PER", "NEW"], [1, 3, 9, 4], [0, 0, 0, 1])
    odds = np.log(found(said) / (1 - found(said)))
    np.testing.assert_allclose(odds, [0.5, 0.0, 0.25, 0.25], atol=1e-12)


def test_what_is_certain_stays_certain():
    map_, one = Calibration((0.5, 0.3, -1.0), (0.7, -0.4)), np.ones(3)
    said = beliefs(one, [1.0, 0.6, 1.0], [True, True, False])
    found = map_(said)
    assert (found[[0, 2]] == 1).all()
    assert found[1] < 1


def test_fitting_finds_the_map_that_names_were_drawn_from():
    true = Calibration((0.2, 0.6, -0.3), (0.7, 0.2), {"LOC": 0.3, "ORG": -0.5, "PER": 0.2}, -0.2, 1.5)
    found = Calibration.fit(*draw(true, 200_000, 1))
    # A constant may go from the classes to the others.
    moved = found.labels["LOC"] - true.labels["LOC"]
    np.testing.assert_allclose([*found.linked[:2], found.unlinked[0]], [0.2, 0.6, 0.7], atol=0.03)
    np.testing.assert_allclose([found.linked[2] + moved, found.unlinked[1] + moved], [-0.3, 0.2], atol=0.15)
    np.testing.assert_allclose([v - moved for v in found.labels.values()], list(true.labels.values()), atol=0.05)
    np.testing.assert_allclose([found.length, found.document], [-0.2, 1.5], atol=0.15)
    said, _ = draw(true, 1000, 2)
    np.testing.assert_allclose(found(said), true(said), atol=0.02)


def penalised(
    found: Calibration, said: CalibrationInputs, right: np.ndarray, counts: np.ndarray, origin: Calibration
) -> float:
    """Return the penalised loss that fitting minimises, entity by entity."""
    off = np.subtract(numbers_of(found), numbers_of(origin))
    loss = sum(c * -math.log(q if r else 1 - q) for q, r, c in zip(found(said).tolist(), right, counts, strict=True))
    return loss + float(off @ off)


@pytest.mark.parametrize("seed", range(3))
def test_no_map_near_the_fitted_one_is_better(seed):
    classes = {"LOC": 0.1, "ORG": -0.2, "PER": 0.0}
    said, right = draw(Calibration((0.3, 0.0, 0.5), (0.5, -1.0), classes, 0.2, 0.0), 40, seed)
    rng = np.random.default_rng(seed)
    counts, origin = rng.random(40), Calibration((0.5, 0.5, 0.2), (0.8, 0.1), classes, 0.1, 0.3)
    found = Calibration.fit(said, right, counts, origin)
    best = penalised(found, said, right, counts, origin)
    for _ in range(60):
        near = np.array(numbers_of(found)) + rng.normal(0, 0.02, 10)
        near[[0, 1, 3, 9]] = np.maximum(near[[0, 1, 3, 9]], 0)
        assert penalised(with_numbers(near, classes), said, right, counts, origin) >= best - 1e-4


def test_without_names_the_map_stays_where_it_was():
    origin = Calibration((0.5, 0.5, 0.2), (0.8, 0.1), {"PER": 0.3}, -0.1, 0.7)
    nothing = beliefs([], [], [])
    assert Calibration.fit(nothing, np.empty(0, bool), origin=origin) == origin
    assert Calibration.fit(nothing, np.empty(0, bool)) == Calibration()


@pytest.mark.parametrize("numbers", [((1, 0), (1, 0)), ((1, 0, 0), (1,)), ((1, 0, 0, 0), (1, 0))])
def test_maps_of_other_sizes_are_refused(numbers):
    with pytest.raises(ValueError, match="`linked` must have 3 numbers, and `unlinked` must have 2"):
        Calibration(*numbers)


@pytest.mark.parametrize(
    "numbers",
    [
        {"linked": (1, -1, 0)}, {"linked": (1, 0, math.nan)}, {"unlinked": (-1, 0)}, {"document": -0.1},
        {"labels": {"PER": math.inf}}, {"length": math.nan},
    ],
)  # fmt: skip
def test_maps_that_are_none_are_refused(numbers):
    with pytest.raises(ValueError, match=r"must be at least 0|must be finite"):
        Calibration(**numbers)


# --- in a tagger


def test_tags_are_the_same_bit_for_bit_and_confidences_are_not(tagger, raw, monkeypatch):
    # Short forms take the label of a full name by its confidence, which is calibrated.
    monkeypatch.setattr("herdner.ner.identity.short_forms.relabel_short_forms", lambda document: document)
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
    losses = [log_loss(entity_confidences(gold, list(each.pipe(gold)))) for each in (tagger, raw)]
    assert losses[0] < losses[1]


def test_they_are_what_the_map_makes_of_those_with_and_without_links(tagger, raw):
    document = news("dev")[0]
    with_links = raw.tag(document).entities
    explained = raw.explain(document)
    ends = {t for found in raw.find_links(document).values() for t in found.ravel().tolist()}
    spans = raw.tag(document).spans or []
    linked = [any(t in ends for t in range(span.start, span.end)) for span in spans]
    assert len(explained) == len(with_links)
    assert 0 < sum(linked) < len(linked)
    alone, confidence = [e.confidence_without_links for e in explained], [e.confidence for e in with_links]
    labels, lengths = [span.label for span in spans], [span.end - span.start for span in spans]
    said = beliefs(confidence, alone, linked, labels, lengths, [0] * len(spans))
    expected = tagger.model_.calibration(said)
    np.testing.assert_allclose([e.confidence for e in tagger.tag(document).entities], expected, rtol=1e-12)


def test_a_model_keeps_its_calibration_in_its_file(tagger, tmp_path):
    tagger.save(tmp_path / "m")
    again = herdner.load(tmp_path / "m")
    assert again.model_.calibration == tagger.model_.calibration
    assert list(again.pipe(news("dev"))) == list(tagger.pipe(news("dev")))


@pytest.fixture(scope="module")
def by_document(tagger: Tagger) -> Tagger:
    """The tagger, with a calibration that looks at the other names of a document."""
    map_ = Calibration((0.3, 0.5, 0.1), (0.8, 0.2), {"ORG": -0.4}, -0.2, 2.0)
    return Tagger.from_model(replace(tagger.model_, calibration=map_))


def test_documents_tagged_together_say_what_they_say_alone(by_document):
    assert list(by_document.pipe(news("dev"))) == [by_document.tag(document) for document in news("dev")]


def test_names_explained_one_at_a_time_keep_their_confidences(by_document):
    document = news("dev")[0]
    everything = by_document.explain(document)
    for each in everything:
        own = [e for e in by_document.explain(document, name=each.mention.text) if e.mention == each.mention]
        assert [e.confidence_without_links for e in own] == [each.confidence_without_links]
    assert len(everything) > 5


def test_files_without_one_say_what_the_crf_says(tagger, raw, tmp_path):
    replace(tagger.model_, calibration=None).save(tmp_path / "m")
    assert list(herdner.load(tmp_path / "m").pipe(news("dev"))) == list(raw.pipe(news("dev")))


@pytest.mark.parametrize("wrong", [None, 7, {}, {"linked": [1, 0, 0]}, {"linked": ["x", 0, 0], "unlinked": [1, 0]},
                                   {"linked": [1, 0, 0], "unlinked": [-1, 0]},
                                   {"linked": [1, 0, 0], "unlinked": [1, 0], "labels": [1]},
                                   {"linked": [1, 0, 0], "unlinked": [1, 0], "document": None}])  # fmt: skip
def test_a_calibration_that_is_none_is_a_damaged_model(tagger, tmp_path, wrong):
    tagger.save(tmp_path / "m")
    members = members_of((tmp_path / "m").read_bytes())
    header = json.loads(members["header.json"])
    members["header.json"] = json.dumps({**header, "calibration": wrong}).encode()
    (tmp_path / "m").write_bytes(packed(with_checksum(members)))
    with pytest.raises(ModelError, match="damaged model"):
        TaggerModel.load(tmp_path / "m")


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
    assert Tagger(max_iterations=3, templates=(linear_chain_template(),)).fit(documents).model_.calibration is None
    assert Tagger(max_iterations=3, n_folds=2, calibrated=False).fit(documents).model_.calibration is None


def test_each_source_counts_the_same():
    """Test that weighting equals repeating the entities of the smaller source."""
    said, right = draw(Calibration((0.3, 0.4, 0.5), (0.5, -1.0)), 60, 1)
    said = said._replace(document=np.repeat([0, 1, 2], [30, 15, 15]))
    known = np.ones(60, bool)
    found = fit_calibration(HeldOutPredictions(said, right, known), [0, 0, 1], None)
    counts = np.repeat([60 / 90, 2.0], [45, 15])
    np.testing.assert_allclose(numbers_of(found), numbers_of(Calibration.fit(said, right, counts)), atol=1e-3)
    alike = fit_calibration(HeldOutPredictions(said, right, known), [0] * 3, None)
    assert alike == fit_calibration(HeldOutPredictions(said, right, known), None, None)


def test_names_of_which_nobody_knows_do_not_count():
    said, right = draw(Calibration((0.3, 0.4, 0.5), (0.5, -1.0)), 60, 1)
    known = np.arange(60) % 3 > 0
    found = fit_calibration(HeldOutPredictions(said, right, known), None, None)
    assert found == fit_calibration(HeldOutPredictions(said, right & known, known), None, None)
    assert found != fit_calibration(HeldOutPredictions(said, right, np.ones(60, bool)), None, None)


def test_sources_of_documents_matter(tagger):
    documents = news("train")
    groups = ["a" if i % 8 else "b" for i in range(len(documents))]
    other = Tagger(max_iterations=15, n_folds=2).fit(documents, groups=groups).model_
    assert other.calibration != tagger.model_.calibration
    assert [each.table.tolist() for each in other.link_tables] == [
        each.table.tolist() for each in tagger.model_.link_tables
    ]


def test_sources_are_checked():
    with pytest.raises(ValueError, match="`groups` must name the source of each of the 8 documents, got 1 names"):
        Tagger(max_iterations=3).fit(news("dev")[:8], groups=["a"])


def test_names_that_an_annotation_leaves_open_are_not_held_against_it(tagger):
    labels = tagger.classes_
    tokens = [["Ada", "Lovelace", "met", "Charles", "Babbage"]]
    tags = ["B-PER", "E-PER", "O", "O", "O"]
    found = ["B-ORG", "E-ORG", "O", "B-PER", "E-PER"]
    unary = np.full((5, len(labels)), -9.0)
    unary[np.arange(5), [labels.index(tag) for tag in found]] = 9.0
    crf = Tagger.from_model(replace(tagger.model_, link_tables=())).model_.crf()

    def right(annotated: tuple[str, ...] | None) -> list[bool]:
        document = Document.from_tokens(tokens, [tags])
        if annotated is not None:
            document = replace(document, partial=PartialAnnotation(annotated_labels=annotated))
        corpus = prepare_corpus([document], None, "iobes", base_tags=labels)
        found = predict_held_out(crf, labels, corpus, [unary])
        return found.is_correct[found.is_decidable].tolist()

    assert right(None) == [False, False]
    assert right(("PER", "LOC", "ORG")) == [False, False]
    found[3:] = ["B-LOC", "E-LOC"]
    unary = np.full((5, len(labels)), -9.0)
    unary[np.arange(5), [labels.index(tag) for tag in found]] = 9.0
    assert right(("PER", "ORG")) == [False]  # whether there is a place is not known


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor")
def test_what_is_fitted_does_not_depend_on_the_number_of_threads():
    rng, n = np.random.default_rng(0), 40_000
    labels = [("PER", "LOC", "ORG")[k] for k in rng.integers(0, 3, n)]
    of_document = np.sort(rng.integers(0, 300, n))
    said = CalibrationInputs(
        rng.random(n), rng.random(n), rng.random(n) < 0.5, labels, rng.integers(1, 5, n), of_document
    )
    right, counts = np.arange(n) % 3 == 0, np.linspace(0.5, 1, n)
    found: list[Calibration] = []
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads, "blas"):
            found.append(Calibration.fit(said, right, counts))
    assert found[0] == found[1]
