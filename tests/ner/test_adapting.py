"""A model adapted to other documents: what it keeps, what it learns, and what is refused."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from data import news

import herdner
from herdner.crf.learning import Learner
from herdner.crf.likelihood import ChainLikelihood
from herdner.crf.templates import linear_chain_template
from herdner.crf.trainer import StoppingRule
from herdner.evaluation.scores import evaluate
from herdner.ner.tagger import Tagger
from herdner.ner.training.chains import HerdnerTrainer
from herdner.ner.training.corpus import prepare_corpus
from herdner.ner.training.options import Regularisation
from herdner.text.document import Document
from herdner.text.labels import rename_labels, similar_labels
from herdner.text.tags import Span, tags_from_spans
from herdner.text.tokenize import TokenizerSettings


@pytest.fixture(scope="module")
def base() -> Tagger:
    return Tagger(max_iterations=25, n_folds=2).fit(news("train")[:20])


def weights(tagger: Tagger) -> dict[tuple[int, str], float]:
    w = tagger.model_.weights
    return {
        (key, w.tags[k]): weight
        for key, k, weight in zip(w.entry_keys.tolist(), w.entry_tags.tolist(), w.entry_weights.tolist(), strict=True)
    }


def verbs(documents: list[Document]) -> list[Document]:
    """The documents with one more class: the word said."""
    found: list[Document] = []
    for d in documents:
        new = [Span(t, t + 1, "VERB") for t, word in enumerate(d.tokens) if word == "said"]
        taken = {t for span in d.spans or [] for t in range(span.start, span.end)}
        found.append(d.with_spans(sorted([*(d.spans or []), *(s for s in new if s.start not in taken)])))
    return found


@pytest.mark.slow
def test_a_strong_prior_leaves_the_base_as_it_is(base):
    same = Tagger(c2=1e7, learner=Learner(l2=1e7)).fit(news("train")[:5], base=base)
    assert same.classes_ == base.classes_
    before, after = weights(base), weights(same)
    assert all(after[entry] == pytest.approx(weight, abs=1e-4) for entry, weight in before.items())
    assert same.model_.link_tables[0].table == pytest.approx(base.model_.link_tables[0].table, abs=1e-4)
    assert same.predict(news("dev")) == base.predict(news("dev"))


def test_features_that_the_documents_do_not_show_keep_their_weights(base):
    adapted = Tagger().fit(news("dev")[:3], base=base)
    before, after = weights(base), weights(adapted)
    extractor = base.model_.extractor()
    shown = {int(k) for d in news("dev")[:3] for k in extractor.keys(d.tokens, d.sentence_offsets)[1]}
    kept = [entry for entry in before if entry[0] not in shown]
    assert len(kept) > 1000
    assert all(after[entry] == before[entry] for entry in kept)
    assert any(after[entry] != before[entry] for entry in before if entry[0] in shown)


@pytest.mark.parametrize("new_class", [False, True])
def test_the_base_holds_its_weights_more_strongly_than_0_holds_new_ones(base, new_class):
    """Test that the gradients of likelihood and penalty cancel at the minimum of the loss."""
    few, known = (verbs if new_class else list)(news("dev")[:3]), base.model_.weights
    features = [base.model_.extractor().keys(d.tokens, d.sentence_offsets) for d in few]
    tags = [tags_from_spans(d.spans or [], len(d.tokens), "iobes") for d in few]
    labels = list(dict.fromkeys([*base.classes_, *chain(*tags)]))
    corpus = prepare_corpus(few, tags, "iobes", base_tags=base.classes_)
    assert list(corpus.tags) == labels
    trainer = HerdnerTrainer(
        features, corpus, Regularisation(0.0, 0.3, 1, 7.0, 9.0), StoppingRule(1000, 1e-13), base=known
    )
    vector = trainer.data.vector_of(trainer.train(None, None))
    _, pull = ChainLikelihood(trainer.data)(vector)
    origin, (columns, found) = trainer.data.vector_of(known), trainer.data.entries
    sizes, held = np.ones(len(vector)), origin != 0
    sizes[: len(columns)] = trainer.data.sizes[columns]
    if new_class:  # features that the base never saw are held too, for the tags of the base
        held[: len(found)] = np.isin(np.array(labels)[found], base.classes_)
    assert 100 < held.sum() < len(held) - 100
    expected = -2 * 0.3 * np.where(held, 9 if new_class else 7, 1) * (vector - origin) / sizes
    assert pull == pytest.approx(expected, abs=1e-3)


def test_adapting_beats_both_the_base_and_the_few_documents_alone(base):
    few, rest = news("train")[20:30], news("train")[30:] + news("dev")
    adapted = Tagger().fit(few, base=base)
    assert adapted.score(rest) > max(base.score(rest), Tagger().fit(few).score(rest))


def test_new_classes_come_and_old_ones_stay(base):
    adapted = Tagger().fit(verbs(news("train")[20:]), base=base)
    assert adapted.classes_[: len(base.classes_)] == base.classes_
    assert any(label.endswith("-VERB") for label in adapted.classes_)
    table = adapted.model_.link_tables[0].table
    assert table.shape == (len(adapted.classes_),) * 2
    found = [span.label for d in adapted.pipe(news("dev")) for span in d.spans or []]
    assert {"PER", "LOC", "VERB"} <= set(found)


def test_without_links_in_the_documents_those_of_the_base_stay(base):
    single = Document.from_tokens([["Odera", "left", "Kisumu", "."]], [["B-PER", "O", "B-VERB", "O"]])
    adapted = Tagger().fit([single], base=base)
    n = len(base.classes_)
    assert (adapted.model_.link_tables[0].table[:n, :n] == base.model_.link_tables[0].table).all()
    assert not adapted.model_.link_tables[0].table[n:].any()


def test_the_start_does_not_move_the_optimum_and_saves_iterations():
    documents = news("train")[:10]
    options: dict[str, Any] = {"templates": (linear_chain_template(),), "max_iterations": 300}
    steps: list[int] = []
    first = Tagger(**options).fit(documents, progress=lambda n, _: steps.append(n))
    again: list[int] = []
    second = Tagger(**options).fit(documents, start=first, progress=lambda n, _: again.append(n))
    assert len(again) < len(steps)
    assert agreement(first, second) > 0.995  # the search ends where it falls slowly, not at the very optimum


def test_documents_of_weight_0_teach_nothing():
    documents = news("train")[:10]
    options: dict[str, Any] = {"templates": (linear_chain_template(),), "max_iterations": 300}
    half = Tagger(**options, min_freq=1).fit(documents, document_weights=[1.0] * 5 + [0.0] * 5)
    alone = Tagger(**options, min_freq=1).fit(documents[:5])
    assert agreement(half, alone) > 0.98


def agreement(a: Tagger, b: Tagger) -> float:
    """The share of tokens that two taggers tag alike."""
    pairs = zip(chain(*a.predict(news("dev"))), chain(*b.predict(news("dev"))), strict=True)
    return float(np.mean([one == other for one, other in pairs]))


def test_a_base_that_does_not_fit_is_refused_in_one_line(base):
    documents = news("dev")[:2]
    cases: list[tuple[Tagger, dict[str, Any], str]] = [
        (Tagger(scheme="iob2"), {"base": base}, "must be 'iobes' as in the base model, got 'iob2'"),
        (Tagger(lexicon=herdner.Lexicon()), {"base": base}, "`lexicon` is not the lexicon of the base"),
        (
            Tagger(plan=herdner.FeaturePlan(("word[0]",))),
            {"base": base},
            "`plan` differs from the feature plan of the base",
        ),
        (Tagger(tokenizer=TokenizerSettings("nl")), {"base": base}, "language of the base model, 'en', got 'nl'"),
        (Tagger(trainer="crfsuite"), {"base": base}, "use trainer='herdner'"),
        (Tagger(c1=0.1), {"base": base}, "`c1` must be 0 with `base`"),
        (Tagger(), {"base": Tagger()}, "not trained"),
        (
            Tagger(plan=herdner.FeaturePlan(("word[0]",))),
            {"start": base},
            "the feature plan or the gazetteers of `start` differ from those of the new model",
        ),
        (Tagger(), {"document_weights": [1.0]}, "`document_weights` must have shape"),
        (Tagger(), {"document_weights": [1.0, -1.0]}, "at least 0"),
    ]
    for tagger, options, message in cases:
        with pytest.raises(ValueError, match=message) as error:
            tagger.fit(documents, **options)
        assert "\n" not in str(error.value)


# --- classes under other names


@pytest.mark.parametrize(
    ("classes", "known", "expected"),
    [
        ({"Person", "LOC"}, {"PER", "LOC", "ORG"}, {"Person": "PER"}),
        ({"persons", "Organisations"}, {"PER", "ORG"}, {"persons": "PER", "Organisations": "ORG"}),
        ({"geo-loc", "GPE"}, {"LOC", "Geo_Loc"}, {"GPE": "LOC", "geo-loc": "Geo_Loc"}),
        ({"PER", "Person"}, {"PER"}, {}),  # two classes there, so two here
        ({"PERCENT", "ORGAN", "VERB"}, {"PER", "ORG"}, {}),
        (set(), {"PER"}, {}),
    ],
)
def test_classes_that_look_like_those_of_a_base(classes, known, expected):
    assert similar_labels(classes, known) == expected


def test_labels_under_other_names_are_reported_in_one_line(base, caplog):
    documents = [
        rename_labels(document, {"PER": "Person", "ORG": "Organization", "LOC": "Place"})
        for document in news("dev")[:4]
    ]
    adapted = Tagger(max_iterations=2).fit(documents, base=base)
    (message,) = caplog.messages
    assert message == (
        "new labels are similar to labels of the base: Organization to ORG, Person to PER, Place to LOC; to use the"
        " labels of the base, rename the new ones: --rename Organization=ORG --rename Person=PER --rename Place=LOC on"
        " the command line, or rename_labels with {'Organization': 'ORG', 'Person': 'PER', 'Place': 'LOC'}"
    )
    assert {"S-Person", "S-PER"} <= set(adapted.classes_)


def test_new_classes_of_their_own_are_not_told(base, caplog):
    Tagger(max_iterations=2).fit(verbs(news("dev")[:4]), base=base)
    assert caplog.messages == []


def test_a_new_label_leaves_the_links_and_most_tags_of_the_base(base):
    """Test that the labels of the base are kept on text where the new label does not occur."""
    adapted = Tagger().fit(verbs(news("dev")[:5]), base=base)
    assert "VERB" in adapted.labels
    tags = list(adapted.model_.weights.tags)
    columns = [tags.index(tag) for tag in base.model_.weights.tags]
    for new, old in zip(adapted.model_.link_tables, base.model_.link_tables, strict=True):
        np.testing.assert_array_equal(new.table[np.ix_(columns, columns)], old.table)
        assert np.abs(np.delete(new.table, columns, axis=0)).max() > 0
    gold, names = news("dev")[5:], {**{label: label for label in base.labels}, "VERB": None}
    found = [rename_labels(document, names, "iob2") for document in adapted.pipe(gold)]
    assert evaluate(gold, found).micro.f1 > evaluate(gold, list(base.pipe(gold))).micro.f1 - 0.02


@pytest.mark.parametrize("name", ["base", "start"])
def test_the_name_of_a_model_in_place_of_a_tagger_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"`{name}` must be a Tagger, such as herdner.load.'en'., or None, got 'en'"):
        Tagger().fit([], **{name: "en"})


def test_labels_of_the_base_with_another_meaning_do_not_end_training_before_a_new_label_is_learned(base):
    other = {"PER": "LOC", "LOC": "ORG", "ORG": "PER", "VERB": "VERB"}
    few, gold = verbs(news("train")[20:30]), verbs(news("dev"))
    adapted = Tagger(n_folds=2).fit([rename_labels(document, other, "iobes") for document in few], base=base)
    scores = evaluate(gold, list(adapted.pipe(gold))).per_label
    assert [row.recall > 0.95 for row in scores if row.label == "VERB"] == [True]
