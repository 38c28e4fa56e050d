"""Held-out predictions of chains and networks, to which the calibrations of models are fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from data import REPOSITORY
from networks import random_network
from train_en import Source
from train_network import HeldOutScores, held_out_weights
from train_shared_network import CalibrationErrors, held_out_networks, mean_log_loss

from herdner import Tagger, read_documents
from herdner.crf.learning import Learner
from herdner.crf.templates import linear_chain_template
from herdner.ner.model import TaggerModel
from herdner.ner.network import Network
from herdner.ner.training.held_out import fit_calibration
from herdner.text.document import Document

STORIES = REPOSITORY / "corpora" / "herdner_news.dev.conll"


def sources(n: int) -> list[Source]:
    return [Source("x", Document.from_tokens([["a"]]), i, weight=1.0 + i) for i in range(n)]


def test_documents_of_the_held_out_fold_have_weight_0() -> None:
    assert held_out_weights(sources(5), 1, 3) == [1.0, 0.0, 3.0, 4.0, 0.0]


def test_each_shared_network_is_trained_without_one_fold_of_all_languages() -> None:
    seen: list[list[float]] = []

    def train(weights: list[float]) -> None:
        seen.append(weights)

    held_out_networks({"da": sources(4), "nb": sources(2)}, train)  # type: ignore[arg-type]
    assert seen == [[0, 2, 3, 0, 0, 2], [1, 0, 3, 4, 1, 0], [1, 2, 0, 4, 1, 2]]


def test_each_name_has_the_same_weight_in_the_mean_log_loss() -> None:
    assert mean_log_loss({"a": CalibrationErrors(9, 0.3, 0.0), "b": CalibrationErrors(1, 0.8, 0.0)}) == pytest.approx(
        0.35
    )


@pytest.fixture(scope="module")
def stories() -> list[Document]:
    return list(read_documents(STORIES, "conll"))


@pytest.fixture(scope="module")
def model(stories: list[Document]) -> TaggerModel:
    return Tagger(max_iterations=9, n_folds=2, learner=Learner(max_iterations=2)).fit(stories).model_


@pytest.fixture(scope="module")
def held_out(model: TaggerModel, stories: list[Document]) -> HeldOutScores:
    """Return the scores of two folds of three."""
    chain = Tagger(model.plan, model.lexicon, max_iterations=9, templates=(linear_chain_template(),))
    sources = [Source("x", document, i) for i, document in enumerate(stories)]
    return HeldOutScores.compute(model, chain, sources, 3, [network(model, fold) for fold in range(2)])


def network(model: TaggerModel, fold: int) -> Network:
    return random_network(model.weights.tags, 0, fold, n_codes=0)


def test_each_document_is_scored_by_the_network_of_its_fold(
    held_out: HeldOutScores, model: TaggerModel, stories: list[Document]
) -> None:
    scored = [(fold, document) for fold in range(2) for document in stories[fold::3]]
    for (fold, document), scores in zip(scored, held_out.network, strict=True):
        extractor = replace(model, network=network(model, fold)).extractor()
        expected = extractor.network_scores(document.tokens, document.sentence_offsets)
        np.testing.assert_array_equal(scores, expected)


def test_the_calibration_is_the_mean_of_those_of_all_scales(held_out: HeldOutScores, model: TaggerModel) -> None:
    scales = 0.0, 0.25
    one, other = (fit_calibration(held_out.predict(model, scale), held_out.corpus.sources, None) for scale in scales)
    mean = held_out.calibrate(model, scales)
    assert one != other
    assert mean.linked == pytest.approx((np.array(one.linked) + other.linked) / 2)
    assert mean.labels["PER"] == pytest.approx((one.labels["PER"] + other.labels["PER"]) / 2)
