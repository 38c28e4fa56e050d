"""The models that come with herdner."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest
from commands import Call
from data import shared_data
from train_core7 import CLASSES

import herdner
from herdner.corpora.reading import read
from herdner.ner.model_file import shipped_models
from herdner.text.labels import rename_labels
from herdner.text.tokenize import Tokenizer

OPEN_LICENCES = {"ODC-By-1.0", "CC-BY-4.0", "CC0-1.0", "MIT", "Apache-2.0"}
# The cards of the models state these licences.
OTHER_LICENCES = {
    "CC-BY-SA-4.0",
    "annotation CC-BY-4.0; texts CC-BY-2.5, CC-BY-4.0 and CC-BY-SA-3.0",
    "annotation CC0-1.0; the texts of the Norwegian Dependency Treebank are not to be republished with it",
}


@pytest.fixture(scope="module")
def tagger() -> herdner.Tagger:
    return herdner.load("en")


@pytest.fixture(scope="module")
def core7() -> herdner.Tagger:
    return herdner.load("en_core7")


def test_its_classes_size_and_card(tagger):
    assert {tag.partition("-")[2] for tag in tagger.classes_} == {"", "PER", "LOC", "ORG"}
    assert len(shipped_models()["en"].read_bytes()) < 10_500_000
    assert tagger.card["corpora"]
    assert {corpus["licence"] for corpus in tagger.card["corpora"].values()} <= OPEN_LICENCES | OTHER_LICENCES
    assert tagger.card["f1"]["ieer"] > 85
    measured, cross_validated = tagger.card["scores"], tagger.card["cross_validated"]
    assert {name: each["f1"] for name, each in measured.items()} == tagger.card["f1"]
    assert {"wikigold", "uner_ewt", "litbank", "gum news", "gum court"} <= set(cross_validated)
    assert not set(measured) & set(cross_validated)
    for each in (*measured.values(), *cross_validated.values()):
        low, high = each["interval"]
        assert low < each["f1"] < high
        for label, f1 in each["labels"].items():
            low, high = each["label_intervals"][label]
            assert low < f1 < high


def test_the_example_of_the_package(tagger):
    assert doctest.testmod(herdner).attempted >= 3
    assert doctest.testmod(herdner).failed == 0


def test_names_of_the_demonstration_article(tagger):
    article = Path(__file__).parents[2] / "corpora" / "article.txt"
    found = {(e.text, e.label) for e in tagger.tag(article.read_text(encoding="utf-8")).entities}
    assert found >= {("Charlotte Akinyi", "PER"), ("Kisumu", "LOC"), ("Winam Ferries Ltd.", "ORG"), ("Uganda", "LOC")}


def test_score_on_our_own_unseen_stories(tagger):
    gold = list(read(str(Path(__file__).parents[2] / "corpora" / "herdner_news.dev.conll") + ":conll"))
    assert tagger.score(gold) > 0.75


def test_score_on_ieer(tagger):
    gold = list(read(f"{shared_data('ner/ieer')}:ieer", tokenizer=Tokenizer()))
    assert tagger.score(gold) >= 0.86


SEVEN = {"PER", "LOC", "ORG", "NORP", "DATE", "MONEY", "MISC"}


def test_the_second_model_has_seven_labels_and_the_same_licences(core7):
    assert {tag.partition("-")[2] for tag in core7.classes_} == {"", *SEVEN}
    assert set(core7.card["labels"]) == SEVEN
    assert {corpus["licence"] for corpus in core7.card["corpora"].values()} <= OPEN_LICENCES | OTHER_LICENCES
    assert core7.model_.calibration is not None
    assert {*SEVEN, "micro"} <= set(core7.card["f1"])


def test_models_leave_room_in_the_wheel():
    """The other models share word classes with `en`."""
    sizes = {name: len(file.read_bytes()) for name, file in shipped_models().items()}
    assert set(sizes) == {"en", "en_core7", *LANGUAGES}
    assert sizes["en"] <= 10_500_000
    assert sizes["en_core7"] <= 4_500_000
    assert all(sizes[name] <= 3_000_000 for name in LANGUAGES)


# Parts of the development files, with the least F1; the cards have the F1 on the whole files.
LANGUAGES = {
    "da": ("uner/da_ddt-dev.iob2", "uner", 0.72),
    "de": ("mobie/dev.conll2003", "mobie", 0.82),
    "nb": ("norne/nob.dev", "norne", 0.80),
    "pt": ("uner/pt_bosque-dev.iob2", "uner", 0.75),
    "sv": ("uner/sv_talbanken-dev.iob2", "uner", 0.45),
}
SENTENCES = {
    "da": "Mette Frederiksen mødte Lars Larsen i Aarhus, da DONG holdt møde.",
    "de": "Angela Merkel traf die Deutsche Bahn in Frankfurt.",
    "nb": "Jens Stoltenberg møtte Kari Hansen i Bergen, da Telenor holdt møte.",
    "pt": "António Costa encontrou Maria Silva em Lisboa, quando a Petrobras reuniu.",
    "sv": "Göran Persson träffade Anna Larsson i Göteborg, när Volvo höll möte.",
}
DEFAULT = ["PER", "PER", "LOC"]
EXPECTED = {"de": ["PER", "ORG", "LOC"]}  # its corpora have few persons


@pytest.mark.slow
@pytest.mark.parametrize("name", LANGUAGES)
def test_models_of_other_languages(name: str) -> None:
    tagger = herdner.load(name)
    assert tagger.model_.tokenizer.language == name
    assert set(tagger.labels) == {"PER", "LOC", "ORG"}
    licences = {corpus["licence"] for corpus in tagger.card["corpora"].values()}
    assert licences <= OPEN_LICENCES | OTHER_LICENCES
    assert [entity.label for entity in tagger.tag(SENTENCES[name]).entities][:3] == EXPECTED.get(name, DEFAULT)
    path, format, least = LANGUAGES[name]
    documents = list(read(f"{shared_data('ner') / path}:{format}", core_labels=True))
    assert tagger.score(documents[:50]) > least


@pytest.mark.parametrize("name", ["Ericsson", "Volvo", "Siemens"])
def test_a_swedish_company_that_is_also_a_surname(name: str) -> None:
    tagger = herdner.load("sv")
    for text in (f"{name} varslar 500 anställda i Kista.", f"Hon äger aktier i {name}."):
        entities = tagger.tag(text).entities
        assert [entity.label for entity in entities if entity.text == name] == ["ORG"]
    assert [entity.label for entity in tagger.tag(f"Stefan {name} bor i Lund.").entities] == ["PER", "LOC"]


def test_dates_sums_of_money_and_nations_are_names_too(core7):
    text = "On Tuesday Charlotte Akinyi of the Kenyan bank said in Nairobi that it had lost $5 million in March 2019."
    found = {(e.text, e.label) for e in core7.tag(text).entities}
    assert found >= {
        ("Kenyan", "NORP"), ("Nairobi", "LOC"), ("$5 million", "MONEY"), ("Charlotte Akinyi", "PER"),
        ("March 2019", "DATE"),
    }  # fmt: skip


def test_the_command_line_knows_the_second_model(call: Call):
    found = json.loads(
        call("tag", "-", "--model", "en_core7", "--format", "jsonl", stdin=b"They met in March 2019.").out
    )
    assert [(e["text"], e["label"]) for e in found["entities"]] == [("March 2019", "DATE")]


def test_scores_of_the_second_model_on_unseen_articles(core7):
    gold = [
        rename_labels(document, CLASSES, "iob2")
        for document in read(f"{shared_data('ner/worldwide/dev')}:worldwide", tokenizer=Tokenizer())
    ]
    assert core7.score(gold) > 0.83
