"""Training by spaCy: examples that fit and that do not, nlp.initialize, and spaCy's commands on the files of docs."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import spacy
from confection import ConfigValidationError
from data import ELSEWHERE, REPOSITORY
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

import herdner
from herdner import read_documents, write_documents
from herdner.crf.link_rules import SameWord
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.integrations.spacy.component import ComponentError
from herdner.integrations.spacy.examples import training_documents
from herdner.text.labels import rename_labels
from herdner.text.sentences import ENGLISH

CONFIGS = Path(REPOSITORY, "docs", "spacy", "project", "configs")
CORPUS = Path(REPOSITORY, "corpora")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """herdner's own stories, a few of them, as DocBin."""
    folder = tmp_path_factory.mktemp("corpus")
    for part, n in (("train", 40), ("dev", 10)):
        documents = list(read_documents(CORPUS / f"herdner_news.{part}.conll", "conll"))[:n]
        with (folder / f"{part}.spacy").open("wb") as stream:
            write_documents(documents, stream, "spacy")
    return folder


def examples(nlp: Language, file: Path) -> list[Example]:
    docs = DocBin().from_disk(file).get_docs(nlp.vocab)
    return [
        Example(Doc(nlp.vocab, words=[t.text for t in d], spaces=[bool(t.whitespace_) for t in d]), d) for d in docs
    ]


# --- documents from examples ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nlp() -> Language:
    return spacy.blank("en")


def only(example: Example, spans_key: str | None = None) -> list[tuple[list[str], list[str]]]:
    (document,) = training_documents([example], ENGLISH, spans_key, "herdner")
    return list(zip(map(list, document.sentences()), map(list, document.sentence_tags()), strict=True))


def test_tokens_of_the_pipeline_and_entities_and_sentences_of_the_reference(nlp):
    words = ["Ada", "Love", "lace", "sang", ".", "\n", "so", "did", "Bob"]
    spaces = [True, False, True, False, False, False, True, True, False]
    begins = [i in (0, 6) for i in range(9)]
    tags = ["B-PER", "I-PER", "I-PER", "O", "O", "O", "O", "O", "B-PER"]
    reference = Doc(nlp.vocab, words=words, spaces=spaces, ents=tags, sent_starts=begins)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = only(Example(nlp.make_doc(reference.text), reference))
    assert got == [
        (["Ada", "Lovelace", "sang", "."], ["B-PER", "I-PER", "O", "O"]),
        (["so", "did", "Bob"], ["O", "O", "B-PER"]),
    ]


def test_entities_inside_a_token_are_widened_with_a_warning(nlp):
    reference = Doc(nlp.vocab, words=["Ada", "Love", "lace"], spaces=[True, False, False], ents=["O", "B-PER", "O"])
    with pytest.warns(UserWarning, match=r"^herdner: in the examples, widened to whole tokens of .*: 1 entity$"):
        assert only(Example(nlp.make_doc("Ada Lovelace"), reference)) == [(["Ada", "Lovelace"], ["O", "B-PER"])]


def test_of_overlapping_spans_the_longest_stays_with_a_warning(nlp):
    reference = Doc(nlp.vocab, words=["New", "York", "Times"])
    reference.spans["names"] = [Span(reference, 0, 2, "LOC"), Span(reference, 0, 3, "ORG")]
    with pytest.warns(UserWarning, match=r"left out, because they overlap another one or contain no token: 1 entity$"):
        got = only(Example(nlp.make_doc("New York Times"), reference), "names")
    assert got == [(["New", "York", "Times"], ["B-ORG", "I-ORG", "I-ORG"])]


def test_two_entities_in_one_token_do_not_overlap_afterwards(nlp):
    reference = Doc(nlp.vocab, words=["Love", "lace"], spaces=[False, False], ents=["B-PER", "B-LOC"])
    with pytest.warns(UserWarning, match=r"widened to .*: 2 entities; left out, because they overlap .*: 1 entity$"):
        assert only(Example(nlp.make_doc("Lovelace"), reference)) == [(["Lovelace"], ["B-PER"])]


def test_sentences_with_unknown_tokens_are_left_out_with_a_warning(nlp):
    reference = Doc(nlp.vocab, words=["Ada", "sang", "Bob", "hid"], sent_starts=[True, False, True, False])
    reference.set_ents([Span(reference, 0, 1, "PER")], missing=[reference[2:3]])
    with pytest.warns(UserWarning, match="left out, because they contain tokens without .*: 1 sentence$"):
        assert only(Example(nlp.make_doc("Ada sang Bob hid"), reference)) == [(["Ada", "sang"], ["B-PER", "O"])]


def test_references_without_annotation_are_left_out(nlp):
    known = Doc(nlp.vocab, words=["Ada", "sang"], ents=["B-PER", "O"])
    unknown = Doc(nlp.vocab, words=["Bob", "sang"])
    empty = Doc(nlp.vocab, words=["\n"], ents=["O"])
    got = training_documents([Example(d.copy(), d) for d in (known, unknown, empty)], ENGLISH, None, "herdner")
    assert [list(document.tokens) for document in got] == [["Ada", "sang"]]


# --- initialize -----------------------------------------------------------------------------------------------------


def trained(corpus: Path, settings: dict[str, object], **config: object) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("herdner", config={"model": None, **config})
    nlp.config["initialize"]["components"]["herdner"] = {"max_iterations": 25, **settings}
    nlp.initialize(lambda: examples(nlp, corpus / "train.spacy"))
    return nlp


@pytest.mark.slow
def test_initialize_trains_what_the_tagger_would(corpus):
    nlp = trained(corpus, {"rules": ["same-word:nearest=2"]})
    document = list(read_documents(CORPUS / "herdner_news.train.conll", "conll"))[:40]
    templates = [linear_chain_template(), skip_chain_template(SameWord(nearest=2))]
    lexicon = herdner.load("en").model_.lexicon
    same = herdner.Tagger(lexicon=lexicon, max_iterations=25, templates=templates).fit(document)
    component = nlp.get_pipe("herdner")
    assert component.labels == ("LOC", "ORG", "PER")
    assert (component.tagger.model_.weights.transition == same.model_.weights.transition).all()
    assert (component.tagger.model_.link_tables[0].table == same.model_.link_tables[0].table).all()
    assert nlp.evaluate(examples(nlp, corpus / "dev.spacy"))["ents_f"] > 0.6


@pytest.mark.slow
def test_initialize_with_spans_and_without_links_or_lexicon(corpus):
    nlp = spacy.blank("en")
    component = nlp.add_pipe("herdner", config={"model": None, "spans_key": "sc", "annotate_ents": False})
    given = examples(nlp, corpus / "train.spacy")
    for example in given:
        example.reference.spans["sc"] = list(example.reference.ents)
    component.initialize(lambda: given, nlp=nlp, rules=[], lexicon="none", max_iterations=10)
    assert component.tagger.model_.link_tables == ()
    assert component.tagger.model_.lexicon.classes is None
    doc = nlp(given[0].reference.text)
    assert len(doc.spans["sc"]) > 0
    assert not doc.ents


def test_examples_that_would_change_nothing_are_refused(corpus):
    nlp = spacy.blank("en")
    component = nlp.add_pipe("herdner")
    before = component.tagger.model_
    with pytest.raises(
        ComponentError, match=r'the model \'en\'.*In \[initialize.components.herdner\], set base = "en"'
    ):
        nlp.initialize(lambda: examples(nlp, corpus / "train.spacy"))
    nlp.initialize()
    nlp.config["initialize"]["components"]["herdner"] = {"train": False}
    nlp.initialize(lambda: examples(nlp, corpus / "train.spacy"))
    assert component.tagger.model_ is before


def test_update_without_initialize_is_an_error(corpus):
    nlp = spacy.blank("en")
    nlp.add_pipe("herdner", name="my_ner")
    given = examples(nlp, corpus / "dev.spacy")[:2]
    with pytest.raises(ComponentError, match=r"^my_ner: update cannot train a CRF on single batches.* freeze this one"):
        nlp.update(given)
    with nlp.select_pipes(disable="my_ner"):
        assert nlp.update(given) == {}


def test_update_after_initialize_changes_nothing_and_reports_new_examples(corpus):
    nlp = spacy.blank("en")
    component = nlp.add_pipe("herdner", config={"model": None})
    given = examples(nlp, corpus / "train.spacy")[:10]
    component.initialize(lambda: given, nlp=nlp, rules=[], lexicon="none", max_iterations=3)
    before = component.tagger.model_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nlp.update(given[:3]) == {"herdner": 0.0}
    with pytest.warns(UserWarning, match=r"herdner: update does not train; examples that nlp\.initialize did not have"):
        nlp.update(examples(nlp, corpus / "dev.spacy")[:2])
    assert component.tagger.model_ is before


@pytest.mark.slow
def test_a_base_is_adapted_to_examples(corpus):
    """As the tagger adapts it. The entities of the examples have the labels of the component."""
    nlp = spacy.blank("en")
    component = nlp.add_pipe("herdner", config={"labels": {"PER": "PERSON"}})
    given = examples(nlp, corpus / "dev.spacy")
    for example in given:
        reference = example.reference
        new = {"PER": "PERSON", "LOC": "TOWN"}
        reference.ents = [Span(reference, e.start, e.end, new.get(e.label_, e.label_)) for e in reference.ents]
    nlp.config["initialize"]["components"]["herdner"] = {"base": "en", "max_iterations": 4}
    nlp.initialize(lambda: given)
    assert component.labels == ("LOC", "ORG", "PERSON", "TOWN")
    documents = list(read_documents(CORPUS / "herdner_news.dev.conll", "conll"))[:10]
    documents = [rename_labels(document, {"LOC": "TOWN"}) for document in documents]
    same = herdner.Tagger(max_iterations=4).fit(documents, base=herdner.load("en"))
    assert (component.tagger.model_.weights.transition == same.model_.weights.transition).all()
    with pytest.raises(ComponentError, match="lexicon cannot be combined with base"):
        component.initialize(lambda: given, nlp=nlp, base="en", lexicon="none")


@pytest.mark.slow
def test_a_new_model_is_trained_on_request(corpus):
    nlp = spacy.blank("en")
    component = nlp.add_pipe("herdner")
    before = component.tagger.model_
    component.initialize(lambda: examples(nlp, corpus / "train.spacy"), nlp=nlp, train=True, max_iterations=5)
    assert component.tagger.model_ is not before
    assert component.tagger.model_.lexicon is not None


def test_nothing_to_learn_from():
    nlp = spacy.blank("en")
    nlp.add_pipe("herdner", name="my_ner", config={"model": None})
    with pytest.raises(ComponentError, match=r"^my_ner: the examples contain no entity in doc\.ents"):
        nlp.initialize()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"rules": ["same-wrd"]}, ComponentError, r"^herdner: unknown link rule 'same-wrd'; expected one of same-word"),
        ({"lexicon": "xx"}, ComponentError, r"^herdner: there is no model 'xx': give a file, or one of da, de, en"),
        ({"c2": -1}, ComponentError, "^herdner: `c2` must be a finite number of at least 0, got -1"),
        ({"train": False, "base": "en"}, ComponentError, "^herdner: train = false keeps the model, but base = 'en'"),
        ({"max_iterations": "many"}, ConfigValidationError, "herdner -> max_iterations"),
        ({"iterations": 3}, ConfigValidationError, "herdner -> iterations"),
    ],
)
def test_wrong_settings(corpus, settings, error, message):
    with pytest.raises(error, match=message):
        trained(corpus, settings)


# --- spaCy's commands -----------------------------------------------------------------------------------------------


def run(*arguments: object) -> str:
    """A command of spaCy, in a process that finds herdner's component by its entry point."""
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ELSEWHERE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_fill_config_train_and_evaluate(corpus, tmp_path):
    run("init", "fill-config", CONFIGS / "train.cfg", tmp_path / "full.cfg")
    paths = ["--paths.train", corpus / "train.spacy", "--paths.dev", corpus / "dev.spacy"]
    quick = ["--initialize.components.herdner.max_iterations", 20]
    output = run("train", tmp_path / "full.cfg", "--output", tmp_path / "out", *paths, *quick)
    assert "ENTS_F" in output
    run("evaluate", tmp_path / "out" / "model-best", corpus / "dev.spacy", "--output", tmp_path / "scores.json")
    nlp = spacy.load(tmp_path / "out" / "model-best")
    scores = spacy.util.load_meta(tmp_path / "out" / "model-best" / "meta.json")["performance"]
    assert scores["ents_f"] == pytest.approx(nlp.evaluate(examples(nlp, corpus / "dev.spacy"))["ents_f"])
    assert scores["ents_f"] > 0.6
    assert nlp("Ada Lovelace met Charles Babbage in London.").ents


def test_the_tutorial_shows_the_file_that_is_tested():
    page = Path(REPOSITORY, "docs", "pages", "tutorials", "spacy.md").read_text(encoding="utf-8")
    config = (CONFIGS / "train.cfg").read_text(encoding="utf-8")
    assert f'```ini title="train.cfg"\n{config[config.index("[paths]") :]}```\n' in page


@pytest.mark.slow
def test_assemble_the_pipeline_that_needs_no_training(tmp_path):
    run("assemble", CONFIGS / "tag.cfg", tmp_path / "tagger")
    nlp = spacy.load(tmp_path / "tagger")
    doc = nlp("Ada Lovelace met Charles Babbage in London.")
    assert [span.label_ for span in doc.spans["herdner"]] == ["PER", "PER", "LOC"]
    assert nlp.config["components"]["herdner"]["backend"] == {"name": "herded-gibbs", "n_sweeps": 400}
