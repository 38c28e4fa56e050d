"""Table of the F1 of documents as collections, on herdner's own stories."""

from __future__ import annotations

from pathlib import Path

import pytest
from data import REPOSITORY
from learn_collection import Part, f1, pooled
from measure_collection import main, split_sentences, tag_collections

from herdner import Tagger
from herdner.corpora.formats import read_documents
from herdner.evaluation.scores import evaluate

STORIES = REPOSITORY / "corpora" / "herdner_news.dev.conll"


def test_the_table(news_model: Path, news_tagger: Tagger, capsys: pytest.CaptureFixture[str]) -> None:
    main([f"{STORIES}:conll"], str(news_model), None, False)
    cells = capsys.readouterr().out.splitlines()[-1].split(" | ")
    gold = list(read_documents(STORIES, "conll"))
    found = news_tagger.pipe([document.without_annotation() for document in gold], collection=True)
    assert cells[1] == str(len(gold))
    assert float(cells[3]) == pytest.approx(100 * evaluate(gold, list(found)).micro.f1, abs=0.005)


def test_a_block_of_one_document_is_tagged_alone(news_tagger: Tagger) -> None:
    documents = [document.without_annotation() for document in read_documents(STORIES, "conll")]
    assert list(tag_collections(news_tagger, documents, 1)) == list(news_tagger.pipe(documents))
    assert len(list(split_sentences(documents[0].with_spans([])))) == documents[0].n_sentences


def test_parts_of_a_collection_give_each_other_evidence(news_tagger: Tagger) -> None:
    gold = list(read_documents(STORIES, "conll"))
    parts = [Part(news_tagger, gold[::2]), Part(news_tagger, gold[1::2])]
    names = pooled(parts)
    assert names.checksum() == news_tagger.gather(gold).checksum()
    expected = evaluate(gold, list(news_tagger.pipe(gold, collection=True))).micro.f1
    assert f1(parts, names) == pytest.approx(100 * expected)
    assert f1(parts) == pytest.approx(100 * evaluate(gold, list(news_tagger.pipe(gold))).micro.f1)
