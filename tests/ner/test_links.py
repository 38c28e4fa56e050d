"""Links between mentions, from training to tags."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data import news

import herdner
from herdner.crf.link_rules import SameStem, SameWord
from herdner.crf.model import LinkTable
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.inference import BACKENDS, UnsupportedGraph
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import ModelError, read_model, write_model
from herdner.ner.tagger import Tagger
from herdner.ner.training.chains import HerdnerTrainer
from herdner.ner.training.held_out import held_out_unaries
from herdner.text.document import Document
from herdner.text.tags import spans_from_tags

CORPORA = Path(__file__).parents[2] / "corpora"
UNLIMITED = {"auto", "exact", "tempered", "annealed-importance", "mini-bucket"}  # without n_sweeps


@pytest.fixture(scope="module")
def tagger(news_tagger: Tagger) -> Tagger:
    return news_tagger


def test_links_are_learned_and_prefer_equal_labels(tagger):
    (each,) = tagger.model_.link_tables
    labels = [tag.partition("-")[2] for tag in tagger.classes_]
    equal = np.array([[a == b for b in labels] for a in labels])
    assert np.isfinite(each.table).all()
    assert each.table[equal].mean() > each.table[~equal].mean() + 0.1
    assert tagger.learning_curve_.steps[-1].value < tagger.learning_curve_.steps[0].value


def test_mentions_of_one_name_are_linked(tagger):
    """Links so strong that the table decides: all mentions get the label of the most confident one."""
    labels = [tag.partition("-")[2] for tag in tagger.classes_]
    equal = np.array([[10.0 if a == b else 0.0 for b in labels] for a in labels])
    strong = Tagger.from_model(replace(tagger.model_, link_tables=(LinkTable(skip_chain_template(), equal),)))
    text = "Zarno Quill, a teacher, met Ada Reyes. The teacher said that Quill was late. Quill left."
    without, linked = strong.tag(text, links=False), strong.tag(text)
    labels = {e.label for e in linked.entities if "Quill" in e.text}
    assert len(labels) <= 1
    assert without.tokens == linked.tokens


def test_without_links_it_is_the_chain(tagger):
    chain = Tagger.from_model(replace(tagger.model_, link_tables=()))
    for document in news("dev")[:5]:
        assert tagger.tag(document, links=False).tags == chain.tag(document).tags
        assert tagger.tag(document, links=False).entities == chain.tag(document).entities
    off = Tagger.from_model(tagger.model_, links=False)
    assert off.predict(news("dev")[:3]) == chain.predict(news("dev")[:3])


@pytest.mark.parametrize("name", sorted(set(BACKENDS) - UNLIMITED - {"viterbi"}))
def test_every_backend_decodes_a_linked_document(tagger, name):
    document = news("dev")[0]
    options = {"n_sweeps": 20} if name != "dogs" else {}
    found = tagger.tag(document, backend=name, **options)
    assert len(found.tags) == len(document.tokens)
    assert all(0 <= entity.confidence <= 1 for entity in found.entities)
    assert [(s.start, s.end) for s in spans_from_tags(found.tags, document.sentence_offsets)]


def test_viterbi_says_what_to_use(tagger):
    with pytest.raises(UnsupportedGraph, match=r"viterbi needs a chain.*links=False"):
        tagger.tag("Oslo won. In Bergen and Oslo they met Oslo.", backend="viterbi")
    assert tagger.tag("In Bergen they met.", backend="viterbi").tags  # nothing is linked here


def test_marginals_of_links_raise_or_lower_confidences(tagger):
    documents = news("dev")
    pairs = [
        (a.confidence, b.confidence)
        for document in documents
        for a in tagger.tag(document).entities
        for b in tagger.tag(document, links=False).entities
        if (a.start, a.end, a.label) == (b.start, b.end, b.label)
    ]
    assert any(a != b for a, b in pairs)
    assert all(0 < a <= 1 for a, _ in pairs)


def test_models_keep_their_links(tagger, tmp_path):
    second = LinkTable(skip_chain_template(SameStem()), tagger.model_.link_tables[0].table * 2)
    model = replace(tagger.model_, link_tables=(*tagger.model_.link_tables, second))
    model.save(tmp_path / "m")
    loaded = TaggerModel.load(tmp_path / "m")
    for a, b in zip(model.link_tables, loaded.link_tables, strict=True):
        assert a.template == b.template
        np.testing.assert_array_equal(a.table, b.table)
    document = news("dev")[0]
    assert herdner.load(tmp_path / "m").tag(document).tags == Tagger.from_model(model).tag(document).tags


@pytest.mark.parametrize(
    "damage",
    [
        lambda header, arrays: header["links"][0]["template"]["rule"].update(name="nope"),
        lambda header, arrays: header["links"][0]["template"]["rule"].update(nearest=10**9),
        lambda header, arrays: header["links"].append(header["links"][0]),
        lambda header, arrays: arrays.update(link_tables=arrays["link_tables"][:, 1:]),
        lambda header, arrays: arrays.update(link_tables=arrays["link_tables"] * np.nan),
        lambda header, arrays: arrays.pop("link_tables"),
    ],
)
def test_damaged_links_are_refused(tagger, tmp_path, damage):
    tagger.save(tmp_path / "m")
    file = read_model(tmp_path / "m")
    header, arrays = dict(file.header), dict(file.arrays)
    damage(header, arrays)
    write_model(tmp_path / "n", header, arrays)
    with pytest.raises(ModelError, match="damaged"):
        TaggerModel.load(tmp_path / "n")


def test_held_out_scores_come_from_chains_that_have_not_seen_the_document():
    documents = news("dev")[:6]
    seen = []

    class Fake:
        def __init__(self, chosen):
            self.weights = type("W", (), {"tags": ("B", "A")})
            self.chosen = set(chosen)

        def extractor(self):
            return self

        def scores(self, tokens, offsets):
            at = next(i for i, d in enumerate(documents) if list(d.tokens) == list(tokens))
            assert at not in self.chosen
            return np.tile([1.0, -1.0], (len(tokens), 1))

    def train(chosen, stage):
        seen.append((tuple(chosen), stage))
        return Fake(chosen)

    unaries, _ = held_out_unaries(documents, ["A", "B", "C"], 3, train)
    assert [stage for _, stage in seen] == ["fold 1 of 3", "fold 2 of 3", "fold 3 of 3"]
    assert all((u == [-1.0, 1.0, -1.0]).all() for u in unaries)  # C was not seen: as unlikely as the least


def test_documents_without_repetitions_leave_a_chain():
    documents = [Document.from_tokens([["Oslo", "won"]], [["S-LOC", "O"]]), Document.from_tokens([["a"]], [["O"]])]
    tagger = Tagger(max_iterations=3).fit(documents)
    assert tagger.model_.link_tables == ()
    assert tagger.learning_curve_ is None


def test_one_document_is_enough():
    tagger = Tagger(max_iterations=5).fit(news("dev")[:1])
    assert len(tagger.model_.link_tables) == 1


@pytest.mark.parametrize(
    "templates",
    [(), (skip_chain_template(),), (linear_chain_template(), linear_chain_template()), (linear_chain_template(), "x")],
)
def test_templates_are_checked(templates):
    with pytest.raises(ValueError, match="templates"):
        Tagger(templates=templates).fit(news("dev"))


def test_development_data_choose_the_iteration():
    documents = news("train")[:20]
    reports = []
    tagger = Tagger(max_iterations=8, n_folds=2).fit(
        documents, development=news("dev")[:8], progress=lambda number, report: reports.append(report)
    )
    curve = tagger.learning_curve_
    scores = [step.score for step in curve.steps]
    assert curve.steps[curve.best_iteration].score == max(scores)
    assert {report["stage"] for report in reports} == {"chain", "fold 1 of 2", "fold 2 of 2", "links"}


def test_development_data_without_entities_are_refused_before_the_training():
    bare = [document.with_tags(["O"] * len(document.tokens)) for document in news("dev")[:2]]
    with pytest.raises(ValueError, match="the development documents have no entity"):
        Tagger().fit(news("dev")[:2], development=bare, progress=lambda *_: pytest.fail("the training began"))


def test_an_averaged_chain_is_the_mean_of_all_that_were_trained(monkeypatch):
    trained = []
    train = HerdnerTrainer.train

    def remembered(self, indices, progress):
        trained.append(train(self, indices, progress))
        return trained[-1]

    monkeypatch.setattr(HerdnerTrainer, "train", remembered)
    documents = news("train")[:20]
    tagger = Tagger(max_iterations=8, n_folds=3, averaged=True).fit(documents)
    assert len(trained) == 4
    extractor, document = tagger.model_.extractor(), news("dev")[0]
    single = [replace(tagger.model_, weights=each).extractor() for each in trained]
    scores = [each.scores(document.tokens, document.sentence_offsets) for each in single]
    mean = extractor.scores(document.tokens, document.sentence_offsets)
    np.testing.assert_allclose(mean, sum(scores) / 4, atol=1e-9)
    assert np.abs(mean - scores[0]).max() > 0.01
    assert tagger.model_.link_tables[0].table.any()


def test_chains_of_crfsuite_are_not_averaged():
    with pytest.raises(ValueError, match="`averaged` needs trainer='herdner'"):
        Tagger(averaged=True, trainer="crfsuite").fit(news("dev")[:4])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"c1": -1}, "`c1` must be a finite number of at least 0, got -1"),
        ({"c2": -0.1}, "`c2` must be a finite number of at least 0, got -0.1"),
        ({"c2": "much"}, "`c2` must be a finite number of at least 0, got 'much'"),
        ({"min_freq": -1}, "min_freq must be a whole number of at least 0, not -1"),
        ({"max_iterations": 2.5}, "max_iterations must be a whole number of at least 0, not 2.5"),
        ({"tolerance": float("nan")}, "`tolerance` must be a finite number of at least 0, got nan"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(ValueError, match=message):
        Tagger(**parameters).fit(news("dev")[:4])


def test_no_development_documents_are_as_none():
    documents = news("dev")[:6]
    taggers = [Tagger(max_iterations=4, n_folds=2).fit(documents, development=given) for given in ([], None)]
    first, second = (tagger.model_.link_tables[0].table for tagger in taggers)
    assert first.any()
    np.testing.assert_array_equal(first, second)


def test_a_backend_that_knows_no_links_does_not_stop_the_training():
    tagger = Tagger(backend="viterbi", max_iterations=8, n_folds=2).fit(news("dev")[:6], development=news("dev")[6:9])
    assert tagger.model_.link_tables[0].table.any()


def test_links_are_those_of_the_rules(tagger):
    document = news("dev")[0]
    edges = tagger.find_links(document)
    assert list(edges) == ["same-word"]
    expected = SameWord().links(document.tokens, document.sentence_offsets)
    assert len(expected)
    np.testing.assert_array_equal(edges["same-word"], expected)
    assert tagger.find_links("")["same-word"].shape == (0, 2)
    twice = replace(tagger.model_, link_tables=tagger.model_.link_tables * 2)
    np.testing.assert_array_equal(Tagger.from_model(twice).find_links(document)["same-word"], np.tile(expected, (2, 1)))
