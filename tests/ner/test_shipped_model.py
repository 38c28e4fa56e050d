"""The model that comes with herdner."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from data import shared_data

import herdner
from herdner.corpora.reading import read
from herdner.ner.model_file import shipped_models
from herdner.text.tokenize import Tokenizer

OPEN_LICENCES = {"ODC-By-1.0", "CC-BY-4.0", "CC0-1.0", "MIT"}


@pytest.fixture(scope="module")
def tagger() -> herdner.Tagger:
    return herdner.load("en")


def test_its_classes_size_and_card(tagger):
    assert {tag.partition("-")[2] for tag in tagger.labels} == {"", "PER", "LOC", "ORG"}
    assert len(shipped_models()["en"].read_bytes()) < 10_000_000
    assert tagger.card["corpora"]
    assert {corpus["licence"] for corpus in tagger.card["corpora"].values()} <= OPEN_LICENCES
    assert tagger.card["f1"]["ieer"] > 74


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
    assert tagger.score(gold) >= 0.74
