"""The tagger as its users call it, against CRFsuite's own tagger, enumeration and scikit-learn's conventions."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import numpy as np
import pandas
import pycrfsuite
import pytest
from data import news, shared_data

import herdner
from herdner.corpora.formats import read_documents
from herdner.crf.crfsuite_files import chain_weights, crfsuite_sequences, read_crfsuite, train_crfsuite
from herdner.crf.learning import Learner
from herdner.crf.templates import linear_chain_template
from herdner.crf.trainer import StoppingRule
from herdner.crf.weights import ChainWeights
from herdner.inference.gibbs import bin_sharing, linear_annealing
from herdner.ner.features import default_plan, make_extractor
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.ner.tagger import NotFittedError, Tagger
from herdner.text.document import Document
from herdner.text.partial import PartialAnnotation
from herdner.text.tags import convert_tags, spans_from_tags
from herdner.text.tokenize import Tokenizer

CORPORA = Path(__file__).parents[2] / "corpora"


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger(max_iterations=30, templates=(linear_chain_template(),)).fit(news("train"))


def test_it_learns(tagger):
    assert tagger.score(news("train")) > 0.98
    assert tagger.score(news("dev")) > 0.5


def test_text_gives_entities_with_offsets_into_the_untouched_text(tagger):
    text = "  \u201cAda Reyes\u201d\tof the Oslo Times\n\nmet Ada  Reyes in Kenya.\n"
    document = tagger.tag(text)
    assert document.text == text
    assert document.entities
    for entity in document.entities:
        assert text[entity.start : entity.end] == entity.text
        assert 0 < entity.confidence <= 1


@pytest.mark.parametrize("text", ["", " \n\t ", "\u200b", "a", ".", "\x00", "\ud800 x", "A" * 300_000])
def test_odd_texts_are_tagged(tagger, text):
    assert tagger.tag(text).text == text


def crfsuite_agrees(train: list[Document], test: list[Document], path: Path, **options) -> None:
    plan = default_plan()
    extractor = make_extractor(plan, Lexicon())
    offsets = [d.sentence_offsets for d in train]
    gold = [convert_tags(d.tags, None, "iobes", d.sentence_offsets) for d in train]
    features = [extractor.keys(d.tokens, d.sentence_offsets) for d in train]
    weights = train_crfsuite(features, offsets, gold, model_path=path, **options)
    crfsuite = pycrfsuite.Tagger()
    crfsuite.open(str(path))
    predicted = Tagger.from_model(TaggerModel(weights, plan, constrained=False)).predict(test)
    for document, tags in zip(test, predicted, strict=True):
        keys = extractor.keys(document.tokens, document.sentence_offsets)
        expected = [crfsuite.tag(sentence) for sentence in crfsuite_sequences([keys], [document.sentence_offsets])]
        assert tags == list(itertools.chain.from_iterable(expected))


@pytest.mark.slow
def test_tags_are_those_of_crfsuite(tmp_path):
    crfsuite_agrees(news("train"), news("dev"), tmp_path / "m.crfsuite", max_iterations=20)


@pytest.mark.slow
def test_weights_with_an_l1_norm_are_those_of_crfsuite():
    documents = news("train")[:8]
    options = {"c1": 0.3, "c2": 0.2, "min_freq": 1, "max_iterations": 2000, "templates": (linear_chain_template(),)}
    ours, theirs = (
        Tagger(**options, trainer=trainer, tolerance=1e-9, constrained=False).fit(documents).model_.weights
        for trainer in ("herdner", "crfsuite")
    )
    assert ours.entry_weights.all()

    def weights_of(chain: ChainWeights) -> dict[tuple[int, str], float]:
        tags = [chain.tags[k] for k in chain.entry_tags]
        return dict(zip(zip(chain.entry_keys.tolist(), tags, strict=True), chain.entry_weights.tolist(), strict=True))

    first, second = weights_of(ours), weights_of(theirs)
    assert 100 < len(first) < 0.5 * len(weights_of(Tagger(**options | {"c1": 0.0}).fit(documents).model_.weights))
    for key in first.keys() | second.keys():
        assert first.get(key, 0.0) == pytest.approx(second.get(key, 0.0), abs=0.03)  # CRFsuite stops earlier


def test_the_default_tolerance_is_the_trainer_s():
    """Written twice, so that who only tags does not import the trainer."""
    assert Tagger().tolerance == StoppingRule.min_decrease


@pytest.mark.slow
def test_tags_are_those_of_crfsuite_on_the_whole_of_conll(tmp_path):
    train = list(itertools.islice(read_documents(shared_data("ner/conll2003/eng.train"), "conll2003"), 60))
    test = list(read_documents(shared_data("ner/conll2003/eng.testa"), "conll2003"))
    crfsuite_agrees(train, test, tmp_path / "m.crfsuite", max_iterations=15)


def test_crfsuite_weights_are_read_at_full_precision(tmp_path):
    trainer = pycrfsuite.Trainer("lbfgs", {"max_iterations": 10}, verbose=False)
    trainer.append([["1", "22"], ["1"], ["333"]], ["O", "B-PER", "O"])
    trainer.append([["22"], ["333", "4444"]], ["B-PER", "I-PER"])
    trainer.train(str(tmp_path / "m"))
    crfsuite = pycrfsuite.Tagger()
    crfsuite.open(str(tmp_path / "m"))
    model, dump = read_crfsuite(tmp_path / "m"), crfsuite.info()
    assert model.labels == crfsuite.labels()
    names = [
        (model.attribute_names[a], model.labels[label])
        for a, label in zip(model.attributes, model.state_labels, strict=True)
    ]
    assert dict(zip(names, model.state_weights, strict=True)) == pytest.approx(dump.state_features, abs=6e-7)
    transitions = {
        (a, b): model.transition[i, j] for i, a in enumerate(model.labels) for j, b in enumerate(model.labels)
    }
    assert {k: v for k, v in transitions.items() if v} == pytest.approx(dump.transitions, abs=6e-7)
    assert chain_weights(model).keys.tolist() == [1, 22, 333, 4444]


@pytest.mark.parametrize("data", [b"", b"lCRF", b"x" * 500, b"lCRF\0\0\0\0FOMC" + b"\xff" * 60])
def test_what_is_no_crfsuite_model_is_refused(tmp_path, data):
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(ValueError, match="not a linear-chain model of CRFsuite"):
        read_crfsuite(tmp_path / "m")


def test_a_crfsuite_model_with_weights_of_nothing_is_refused(tmp_path):
    trainer = pycrfsuite.Trainer("lbfgs", {"max_iterations": 5}, verbose=False)
    trainer.append([["1", "22"], ["1"]], ["O", "B-PER"])
    trainer.train(str(tmp_path / "m"))
    data = (tmp_path / "m").read_bytes()
    first = data.index(b"FEAT") + 12
    for place in range(first, data.index(b"CQDB"), 20):  # type, source, target, weight
        for field in (4, 8):
            (tmp_path / "m").write_bytes(data[: place + field] + b"\xff" * 4 + data[place + field + 4 :])
            with pytest.raises(ValueError, match="not a linear-chain model of CRFsuite"):
                read_crfsuite(tmp_path / "m")


def joint(tagger: Tagger, document: Document) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """All states of a one-sentence document with their probabilities, by enumeration."""
    model, crf = tagger.model_, tagger.model_.crf()
    unary = model.extractor().scores(document.tokens, document.sentence_offsets)
    states = list(itertools.product(range(len(model.weights.tags)), repeat=len(unary)))
    scores = np.array(
        [
            sum(unary[t, k] for t, k in enumerate(x))
            + sum(crf.transition[a, b] for a, b in itertools.pairwise(x))
            + crf.start[x[0]] + crf.end[x[-1]]
            for x in states
        ]
    )  # fmt: skip
    weights = np.exp(scores - scores.max())
    return states, weights / weights.sum()


def test_confidences_and_marginals_are_those_of_the_enumerated_joint(tagger):
    document = Document.from_tokens([["Ada", "Reyes", "of", "Oslo"]])
    states, p = joint(tagger, document)
    labels = tagger.classes_
    marginals = tagger.predict_marginals([document])[0]
    for t, k in itertools.product(range(4), range(len(labels))):
        assert marginals[t, k] == pytest.approx(sum(p[i] for i, x in enumerate(states) if x[t] == k), abs=1e-12)
    tagged = tagger.tag(document)
    assert tagged.tags == [labels[k] for k in states[int(p.argmax())]]
    spans = spans_from_tags(tagged.tags)
    assert spans
    for span, entity in zip(spans, tagged.entities, strict=True):
        expected = sum(p[i] for i, x in enumerate(states) if span in spans_from_tags([labels[k] for k in x]))
        assert entity.confidence == pytest.approx(expected, abs=1e-12)


def test_tags_are_well_formed_even_where_the_weights_are_not(tagger):
    weights = tagger.model_.weights
    from dataclasses import replace

    wild = replace(weights, transition=np.random.default_rng(0).normal(size=weights.transition.shape, scale=9))
    constrained = Tagger.from_model(replace(tagger.model_, weights=wild))
    for document in constrained.pipe(news("dev")):
        spans = spans_from_tags(document.tags, document.sentence_offsets, strict="iobes")
        assert spans == spans_from_tags(document.tags, document.sentence_offsets)


def test_saved_and_loaded_it_tags_the_same(tagger, tmp_path):
    tagger.save(tmp_path / "m.herdner")
    loaded = herdner.load(tmp_path / "m.herdner")
    documents = [document.text for document in news("dev")]
    for before, after in zip(tagger.pipe(documents), loaded.pipe(documents), strict=True):
        assert (before.tags, before.entities) == (after.tags, after.entities)
    assert loaded.card == tagger.card


def test_pickled_it_tags_the_same(tagger):
    copy = pickle.loads(pickle.dumps(tagger))
    assert copy.predict(news("dev")) == tagger.predict(news("dev"))


def test_it_is_a_scikit_learn_estimator(tagger):
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_score

    fresh = clone(tagger)
    assert fresh is not tagger
    assert fresh.get_params() == tagger.get_params()
    assert not hasattr(fresh, "model_")
    assert fresh.set_params(c2=1.0).get_params()["c2"] == 1.0
    assert Tagger().set_params(learner__l2=1.0).learner == Learner(l2=1.0)
    assert Tagger().learner == Learner()  # the default itself does not change
    with pytest.raises(ValueError, match="unknown parameter 'c3'"):
        fresh.set_params(c3=1.0)
    documents = news("dev")
    scores = cross_val_score(Tagger(max_iterations=3, n_folds=2), documents, [d.tags for d in documents], cv=2)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_pipe_is_lazy_and_keeps_the_order(tagger):
    def endless():
        for i in itertools.count():
            yield f"Ada Reyes met {i} people."

    tagged = list(itertools.islice(tagger.pipe(endless()), 3))
    assert [document.text for document in tagged] == [f"Ada Reyes met {i} people." for i in range(3)]


def test_documents_without_tokens_are_split_first(tagger):
    text = "Charlotte Akinyi met Gideon Odera in Kisumu."
    tagged = tagger.tag(Document.from_text(text, id="a"))
    assert (tagged.id, tagged.entities) == ("a", tagger.tag(text).entities)
    assert tagged.entities


def test_progress_is_reported_and_ctrl_c_stops_training():
    seen = []

    def interrupt(number, report):
        seen.append((number, report["loss"]))
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tagger(max_iterations=50).fit(news("dev"), progress=interrupt)
    assert [number for number, _ in seen] == [1, 2]


def test_training_ends_when_the_loss_falls_by_less_than_the_tolerance():
    def losses(**options) -> list[float]:
        values = []
        tagger = Tagger(templates=(linear_chain_template(),), max_iterations=60, **options)
        tagger.fit(news("dev"), progress=lambda number, report: values.append(report["loss"]))
        return values

    usual, long = losses(), losses(tolerance=1e-4)
    assert long[: len(usual)] == usual
    for found, tolerance in ((usual, 5e-3), (long, 1e-4)):
        falls = [(before - after) / after for before, after in zip(found, found[5:], strict=False)]
        assert falls[-1] < tolerance <= min(falls[:-1])
    assert 5 < len(usual) < len(long) < 60


def test_misuse_is_told_in_one_line(tagger):
    document = news("dev")[0]
    with pytest.raises(NotFittedError, match="not trained"):
        Tagger().tag("x")
    with pytest.raises(ValueError, match="must have one tag for each of its 1 tokens, got none"):
        Tagger().fit([Document.from_tokens([["a"]])])
    with pytest.raises(ValueError, match="have no entity"):
        Tagger().fit([Document.from_tokens([["a"]], [["O"]])])
    with pytest.raises(ValueError, match="must be one tag sequence for each of the 1 documents, got 0"):
        Tagger().fit([document], [])
    with pytest.raises(ValueError, match="no backend 'nothing'"):
        tagger.tag("x", backend="nothing")
    with pytest.raises(ValueError, match="no option 'sweeps'"):
        tagger.tag("x", sweeps=3)
    for nothing in (3, herdner.plain_gibbs, herdner.Gibbs):
        with pytest.raises(ValueError, match=r"`backend` must be a name .* or a Backend such as Gibbs\(\)"):
            tagger.tag("x", backend=nothing)
    with pytest.raises(ValueError, match="seed must be a whole number of at least 0, or None, not 'a'"):
        tagger.tag("x", seed="a")


def test_the_exact_backend_agrees_with_viterbi_on_short_sentences(tagger):
    document = Document.from_tokens([["Ada", "met", "Kiptoo"], ["Oslo"]])
    assert tagger.tag(document, backend="exact").tags == tagger.tag(document).tags


SAMPLERS = [
    "annealed-gibbs", "blocked-gibbs", "bounded-error", "dhg", "gibbs", "herded-gibbs", "qmc-gibbs", "rdhg"
]  # fmt: skip


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_begin_with_the_best_state_of_the_chain(tagger, name):
    """Changes of one tag at a time would not come there from elsewhere: the scheme forbids the states between."""
    for document in news("dev")[:5]:
        best, sampled = tagger.tag(document), tagger.tag(document, backend=name, n_sweeps=4)
        assert sampled.tags == best.tags
        assert sampled.entities == best.entities


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_samples_repeat_by_seed_and_number_of_the_document(tagger, name):
    options = {"backend": name, "n_sweeps": 30, "record": "nothing"}  # the last state, not the best

    def tags(sources, **more):
        return [document.tags for document in tagger.pipe(sources, **options, **more)]

    sources = news("dev")
    whole = tags(sources, seed=5)
    assert tags(sources[:7], seed=5) + tags(sources[7:], seed=5, first=7) == whole
    assert tags(sources, seed=6) != whole


@pytest.mark.parametrize("name", [*SAMPLERS, "icm", "max-product", "mean-field", "sum-product"])
def test_documents_without_a_token_have_no_names_by_any_backend(tagger, name):
    sources = ["", " \n", Document.from_tokens([]), "Ada Reyes met Gideon Odera in Kisumu."]
    tagged = list(tagger.pipe(sources, backend=name, n_sweeps=5))
    assert [document.tags for document in tagged[:3]] == [[], [], []]
    assert [document.entities for document in tagged[:3]] == [(), (), ()]
    assert len(tagged[3].tags) == len(tagged[3].tokens)


def test_a_plan_of_ones_own_is_a_backend_too(tagger):
    plan = herdner.Gibbs(50, sharing=bin_sharing(16), annealing=linear_annealing(0.5, 2.0))
    document = news("dev")[0]
    assert tagger.tag(document, backend=plan).entities == tagger.tag(document).entities
    with pytest.raises(ValueError, match="options n_sweeps need the name of a backend, got the object Gibbs"):
        tagger.tag(document, backend=plan, n_sweeps=3)


def test_options_of_tagging_are_one_value(tagger):
    inference = tagger.inference(backend="gibbs", n_sweeps=5, links=False)
    text = news("dev")[0].text
    assert tagger.tag(text, inference).tags == tagger.tag(text, backend="gibbs", n_sweeps=5, links=False).tags
    assert inference == tagger.inference(backend="gibbs", n_sweeps=5, links=False)
    assert list(inference.to_dict()) == ["backend", "links"]
    with pytest.raises(ValueError, match="`inference` cannot be combined with other options"):
        tagger.tag(text, inference, links=True)


def test_entities_of_low_confidence_are_removed(tagger):
    text = "\n\n".join(document.text for document in news("dev"))
    everything = tagger.tag(text).entities
    middle = sorted(entity.confidence for entity in everything)[len(everything) // 2]
    expected = [entity for entity in everything if entity.confidence >= middle]
    kept = tagger.tag(text, min_confidence=middle, min_confidence_of="mention")
    assert list(kept.entities) == expected


def test_a_name_is_kept_or_removed_with_all_its_mentions(tagger):
    text = "\n\n".join(document.text for document in news("dev"))
    names = tagger.tag(text).names
    middle = sorted(name.confidence for name in names)[len(names) // 2]
    kept = tagger.tag(text, min_confidence=middle)
    expected = [name for name in names if name.confidence >= middle]
    assert [(name.id, name.text, len(name.mentions)) for name in kept.names] == [
        (name.id, name.text, len(name.mentions)) for name in expected
    ]
    assert len(kept.entities) == sum(len(name.mentions) for name in expected)
    with pytest.raises(ValueError, match="`min_confidence_of` must be 'name' or 'mention', got 'word'"):
        tagger.tag(text, min_confidence=middle, min_confidence_of="word")
    for wrong in (5, -0.1, float("nan")):
        with pytest.raises(ValueError, match="`min_confidence` must be between 0 and 1, or None, got"):
            tagger.tag(text, min_confidence=wrong)


def test_tagged_documents_have_no_partial_annotation(tagger):
    """Otherwise a document could have entities whose labels are not among its annotated labels."""
    document = Document.from_tokens([["Ada", "Reyes", "of", "Oslo"]])
    partial = document.with_partial(PartialAnnotation(annotated_labels=("LOC",)))
    for options in ({}, {"min_confidence": 0.01}):
        assert tagger.tag(partial, **options) == tagger.tag(document, **options)


def test_missing_values_and_tables_are_refused(tagger):
    for missing in (None, float("nan")):
        with pytest.raises(TypeError, match=f"got the missing value {missing}; use an empty text"):
            list(tagger.pipe(["Ada Reyes", missing]))
    for table in ({"text": ["Ada Reyes"]}, pandas.DataFrame({"text": ["Ada Reyes"]})):
        with pytest.raises(TypeError, match=r'got a (dict|DataFrame); pass one column, as in data\["text"\]'):
            list(tagger.pipe(table))
    assert list(tagger.pipe(pandas.Series(["Ada Reyes"]))) == [tagger.tag("Ada Reyes")]


class OtherString(str):
    """Subclass of ``str``, as BeautifulSoup and NumPy have them."""

    __slots__ = ()


def test_strings_of_a_subclass_are_texts(tagger):
    text, document = "Ada Reyes of Oslo", tagger.tag("Ada Reyes of Oslo")
    for kind in (OtherString, np.str_):
        assert tagger.tag(kind(text)) == document
        assert list(tagger.pipe([kind(text)])) == [document]
        assert tagger.tag(list(map(kind, text.split()))) == tagger.tag(text.split())
        assert tagger.tag(text, names=[(kind("Oslo"), kind("ORG"))]) == tagger.tag(text, names=[("Oslo", "ORG")])
        assert Document.from_text(kind(text)) == Document.from_text(text)
        assert Document.from_aligned(kind(text), [[kind("Ada"), kind("Reyes of Oslo")]]).text == text
        assert Tokenizer().tokens(kind(text)) == text.split()


def test_unknown_options_are_answered_with_the_options_of_tagging(tagger):
    with pytest.raises(ValueError, match=r"^tagging has no option 'jobs'; did you mean 'n_jobs'\?$"):
        list(tagger.pipe(["Ada"], jobs=2))
    with pytest.raises(
        ValueError, match=r"no option 'workers'; it has backend, .*, n_jobs, batch_size, and the options of"
    ):
        list(tagger.pipe(["Ada"], workers=2))


def test_lists_of_tokens_are_documents(tagger):
    tokens = ["Ada", "Reyes", "of", "Oslo"]
    document = Document.from_tokens([tokens])
    assert tagger.tag(tokens) == tagger.tag(document)
    assert list(tagger.pipe([[tokens, tokens]])) == [tagger.tag(Document.from_tokens([tokens, tokens]))]
    assert tagger.predict([tokens]) == tagger.predict([document])
    np.testing.assert_array_equal(tagger.predict_marginals([tokens]), tagger.predict_marginals([document]))
    with pytest.raises(TypeError, match="expected a text, a herdner Document, a list of tokens"):
        tagger.tag([1, 2])
    for call in (tagger.predict, tagger.predict_marginals, Tagger().fit):
        with pytest.raises(
            TypeError, match=r"got the text 'Ada Reyes'; tokenize texts first, as by herdner\.Tokenizer"
        ):
            call(["Ada Reyes"])


def test_marginals_include_links(tagger):
    tokens = ["Ada", "Winam", "left", ".", "Then", "Winam", "left", "."]
    with_links, chain = (tagger.predict_marginals([tokens], links=links)[0] for links in (True, False))
    assert with_links.shape == chain.shape
    np.testing.assert_allclose(with_links.sum(axis=1), 1.0)
    links = tagger.find_links(Document.from_tokens([tokens]))
    assert np.allclose(with_links, chain) == (not any(map(len, links.values())))


def test_a_list_of_texts_is_not_read_as_tokens() -> None:
    for source in (["Ada met Bo.", "Cy left."], [["Ada", "met Bo"]], ["\u00a0"], ["a\tb"], ["a\u2028b"]):
        with pytest.raises(
            ValueError, match=r"a token must be a word without spaces and line breaks, got .*; use `pipe` for a list"
        ):
            herdner.load("en").tag(source)


@pytest.mark.parametrize("token", ["10\u00a0000", "10\u202f000"])
def test_tokens_may_contain_no_break_spaces(token: str) -> None:
    document = herdner.load("en").tag(["Winam", "paid", token, "euros", "in", "Kisumu", "."])
    assert document.tokens[2] == token
    assert [entity.text for entity in document.entities][-1] == "Kisumu"
