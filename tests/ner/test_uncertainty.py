"""Particles of a tagger's tables: trained, stored, averaged over, asked for on the command line."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from altered import members_of, packed, with_checksum
from commands import Call, one_line
from data import REPOSITORY, news

import herdner
from herdner.crf.bayesian import TableParticles, tables_of
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.ner.model import Model
from herdner.ner.model_file import ModelError
from herdner.ner.tagger import Tagger

slow = partial(pytest.param, marks=pytest.mark.slow)
CORPORA = REPOSITORY / "corpora"


@pytest.fixture(scope="module", params=["plain", *(slow(name) for name in ("scaled", "chain"))])
def tagger(request) -> Tagger:
    links = {"plain": (skip_chain_template(),), "scaled": (skip_chain_template(scaled=True),), "chain": ()}[
        request.param
    ]
    return Tagger(max_iterations=15, n_folds=2, n_particles=3, templates=(linear_chain_template(), *links)).fit(
        news("train")
    )


def with_particles(tagger: Tagger, vectors, weights) -> Tagger:
    particles = TableParticles(np.array(vectors), np.array(weights, float))
    return Tagger.from_model(replace(tagger.model_, particles=particles))


def confidences(tagger: Tagger, **options) -> list[float | None]:
    return [e.confidence for document in tagger.pipe(news("dev"), **options) for e in document.entities]


def test_training_keeps_as_many_particles_as_asked_for(tagger):
    particles = tagger.model_.particles
    assert particles.vectors.shape == (3, len(tables_of(tagger.model_.crf())))
    assert len(np.unique(particles.vectors, axis=0)) == 3


@pytest.mark.parametrize("backend", [None, "sum-product", "icm"])
def test_the_confidence_is_the_weighted_mean_of_those_of_the_particles(tagger, backend):
    vectors = tagger.model_.particles.vectors[1:]
    vectors = vectors + np.random.default_rng(0).normal(size=vectors.shape) / 2  # so that they disagree
    one, other = (
        confidences(with_particles(tagger, [vector], [1]), backend=backend, uncertainty=True) for vector in vectors
    )
    both = confidences(with_particles(tagger, vectors, [0.25, 0.75]), backend=backend, uncertainty=True)
    assert np.abs(np.subtract(one, other)).max() > 0.01
    assert both == pytest.approx(0.25 * np.array(one) + 0.75 * np.array(other), abs=1e-12)


def test_a_particle_at_the_tables_themselves_changes_nothing(tagger):
    start = tables_of(tagger.model_.crf()).start
    same = with_particles(tagger, [start], [1]).set_params(calibrated=False)
    assert confidences(same, uncertainty=True) == pytest.approx(confidences(same), abs=1e-12)


def with_tables_of(tagger: Tagger, vector: np.ndarray) -> Model:
    """The model whose own tables are those of a particle."""
    crf, weights = tables_of(tagger.model_.crf()).crf_of(vector), tagger.model_.weights
    changed = replace(weights, transition=np.where(np.isfinite(crf.transition), crf.transition, 0.0))
    return replace(tagger.model_, weights=changed, link_tables=crf.link_tables, particles=None)


@pytest.mark.parametrize("links", [True, False])
def test_a_particle_says_what_a_model_with_its_tables_says(tagger, links):
    vector = tagger.model_.particles.vectors[-1]
    own = Tagger.from_model(with_tables_of(tagger, vector), links=links, calibrated=False)
    averaged = Tagger.from_model(with_particles(tagger, [vector], [1]).model_, links=links)
    compared = 0
    for document in news("dev"):
        expected, found = own.tag(document), averaged.tag(document, uncertainty=True)
        if expected.tags == found.tags:
            pairs = zip(expected.entities, found.entities, strict=True)
            assert all(a.confidence == pytest.approx(b.confidence, abs=1e-9) for a, b in pairs)
            compared += len(found.entities)
    assert compared > 20


def test_the_tags_stay_those_of_the_model(tagger):
    plain, averaged = (list(tagger.pipe(news("dev"), uncertainty=u)) for u in (False, True))
    assert [d.tags for d in plain] == [d.tags for d in averaged]
    assert confidences(tagger) != confidences(tagger, uncertainty=True)
    assert all(0 < c <= 1 + 1e-9 for c in confidences(tagger, uncertainty=True))
    assert tagger.tag("", uncertainty=True).entities == ()


def test_particles_are_stored_with_the_model(tagger, tmp_path):
    tagger.save(tmp_path / "m")
    loaded, own = Model.load(tmp_path / "m").particles, tagger.model_.particles
    assert loaded.vectors == pytest.approx(own.vectors, rel=1e-6)
    assert loaded.weights == pytest.approx(own.weights, rel=1e-6)
    again = confidences(herdner.load(tmp_path / "m"), uncertainty=True)
    assert again == pytest.approx(confidences(tagger, uncertainty=True), abs=1e-4)
    Tagger.from_model(replace(tagger.model_, particles=None)).save(tmp_path / "none")
    assert Model.load(tmp_path / "none").particles is None


def damaged(path: Path, changes: dict[str, np.ndarray | None]) -> None:
    """Replace arrays of a model file, or take them out."""
    members = members_of(path.read_bytes())
    header = json.loads(members["header.json"])
    for name, array in changes.items():
        if array is None:
            del members[f"{name}.npy"]
            header["arrays"].remove(name)
        else:
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, version=(1, 0))
            members[f"{name}.npy"] = buffer.getvalue()
    members["header.json"] = json.dumps(header).encode()
    path.write_bytes(packed(with_checksum(members)))


def test_damaged_particles_are_refused(tagger, tmp_path):
    vectors = tagger.model_.particles.vectors.astype(np.float32)
    wrong = vectors.copy()
    wrong[1, 2] = np.nan
    for changes, words in (
        ({"particles": wrong}, "finite"),
        ({"particles": vectors[:, 1:].copy()}, "do not fit"),
        ({"particles": vectors[:2].copy()}, "shape"),
        ({"particles": vectors[0].copy()}, "float32 of 1 axes"),
        ({"particles": vectors[:0].copy(), "particle_weights": np.empty(0, np.float32)}, "shape"),
        ({"particle_weights": np.array([2, -1, 0], np.float32)}, "probabilities"),
        ({"particle_weights": np.array([np.nan, 1, 0], np.float32)}, "finite"),
        ({"particle_weights": None}, "particle_weights"),
    ):
        tagger.save(tmp_path / "m")
        damaged(tmp_path / "m", changes)
        with pytest.raises(ModelError, match=words) as raised:
            Model.load(tmp_path / "m")
        assert "\n" not in str(raised.value)


def test_misuse_is_told_in_one_line(tagger):
    without = Tagger.from_model(replace(tagger.model_, particles=None))
    with pytest.raises(ValueError, match="no particles to average over; train it with"):
        without.tag("Ada Reyes", uncertainty=True)
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="n_particles must be a whole number"):
            Tagger(n_particles=wrong).fit(news("dev"))


@pytest.mark.slow
def test_the_command_line_trains_particles_and_averages_over_them(call: Call, tmp_path: Path) -> None:
    train, model = ("train", "--train", f"{CORPORA / 'herdner_news.dev.conll'}:conll"), tmp_path / "m"
    options = ("--iterations", "10", "--lexicon", "none", "--output", model)
    assert call(*train, *options, "--particles", "2").code == 0
    assert herdner.load(model).card["options"]["particles"] == 2
    tag = ("tag", CORPORA / "article.txt", "--model", model, "--format", "jsonl")
    plain, averaged = (json.loads(call(*tag, *more).out) for more in ((), ("--uncertainty",)))
    assert call(*tag, "--uncertainty", "--jobs", "2").out == call(*tag, "--uncertainty").out
    places = [[(e["start"], e["end"], e["label"]) for e in record["entities"]] for record in (plain, averaged)]
    assert places[0] == places[1] != []
    assert plain["entities"] != averaged["entities"]
    assert call(*train, *options, "--particles", "-1").code == 2


def test_a_model_without_particles_says_how_to_train_them(call: Call, tmp_path: Path) -> None:
    model = tmp_path / "m"
    Tagger(max_iterations=3, templates=(linear_chain_template(),)).fit(news("dev")).save(model)
    line = one_line(call("tag", CORPORA / "article.txt", "--model", model, "--uncertainty"), 1)
    assert f"model {model} has no particles" in line
    assert "herdner train --particles 32" in line
