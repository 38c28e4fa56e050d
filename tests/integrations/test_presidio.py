"""herdner as a recogniser of Presidio, where it is installed."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path

import pytest
from data import REPOSITORY

from herdner import Tagger

TEXT = "Ada Lovelace met Charles Babbage in London. Lovelace wrote; her number is 212-555-0123."


def test_what_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    monkeypatch.delitem(sys.modules, "herdner.integrations.presidio", raising=False)
    with pytest.raises(ImportError, match=r"pip install '.*\[presidio\]'"):
        import herdner.integrations.presidio  # noqa: F401


def test_a_recogniser_finds_what_the_tagger_finds(news_tagger: Tagger):
    pytest.importorskip("presidio_analyzer")
    from herdner.integrations.presidio import HerdnerRecognizer

    recognizer = HerdnerRecognizer(news_tagger)
    assert recognizer.supported_entities == ["LOCATION", "ORGANIZATION", "PERSON"]
    names = {"PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION"}
    right = [(names[e.label], e.start, e.end, e.confidence) for e in news_tagger.tag(TEXT).entities]
    found = [(r.entity_type, r.start, r.end, r.score) for r in recognizer.analyze(TEXT, [])]
    assert found == right
    assert found
    ids = [r.recognition_metadata["name_id"] for r in recognizer.analyze(TEXT)]
    assert ids == [e.name_id for e in news_tagger.tag(TEXT).entities]
    (place,) = recognizer.analyze(TEXT, ["LOCATION"])
    assert TEXT[place.start : place.end] == "London"
    other = HerdnerRecognizer(news_tagger, entities={"PER": "NAME"}, names=None)
    assert other.supported_entities == ["LOC", "NAME", "ORG"]


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
def test_the_code_of_the_page_runs_without_a_network(capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("presidio_analyzer")
    page = (REPOSITORY / "docs" / "pages" / "tutorials" / "presidio.md").read_text(encoding="utf-8")
    code = re.search(r"```py\n(.*?)```", page, re.DOTALL)
    assert code is not None
    exec(code[1], {})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert sorted((kind, *words[:-1]) for kind, *words in lines) == [
        ("LOCATION", "London"), ("PERSON", "Ada", "Lovelace"), ("PERSON", "Charles", "Babbage"),
        ("PERSON", "Lovelace"), ("PHONE_NUMBER", "212-555-0123"),
    ]  # fmt: skip


@pytest.mark.usefixtures("no_network")
def test_context_words_count_without_a_model(news_tagger: Tagger):
    presidio = pytest.importorskip("presidio_analyzer")
    from herdner.integrations.presidio import BlankNlpEngine, HerdnerRecognizer

    analyzer = presidio.AnalyzerEngine(nlp_engine=BlankNlpEngine())
    analyzer.registry.add_recognizer(HerdnerRecognizer(news_tagger))
    scores = [
        analyzer.analyze(text, language="en", entities=["PHONE_NUMBER"])[0].score
        for text in ("Take 212-555-0123.", "Phone 212-555-0123.")
    ]
    assert scores[0] < scores[1]


def test_recognizers_share_one_model(news_tagger: Tagger, tmp_path: Path):
    pytest.importorskip("presidio_analyzer")
    from herdner.integrations.presidio import HerdnerRecognizer

    news_tagger.save(tmp_path / "x.herdner")
    first, second = (
        HerdnerRecognizer(str(tmp_path / "x.herdner"), entities=entities) for entities in ({"PER": "NAME"}, {})
    )
    assert first.tagger is second.tagger
    news_tagger.save(tmp_path / "x.herdner")
    os.utime(tmp_path / "x.herdner", (1, 1))
    assert HerdnerRecognizer(str(tmp_path / "x.herdner")).tagger is not first.tagger


@pytest.mark.usefixtures("no_network")
def test_inside_an_analyzer_beside_its_own_recognisers(news_tagger: Tagger):
    presidio = pytest.importorskip("presidio_analyzer")
    from herdner.integrations.presidio import BlankNlpEngine, HerdnerRecognizer

    registry = presidio.RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"])
    registry.add_recognizer(HerdnerRecognizer(news_tagger))
    analyzer = presidio.AnalyzerEngine(registry=registry, nlp_engine=BlankNlpEngine())
    found = analyzer.analyze(TEXT, language="en", entities=["PERSON", "LOCATION", "PHONE_NUMBER"])
    kinds = {TEXT[each.start : each.end]: each.entity_type for each in found}
    names = {e.text: e.label for e in news_tagger.tag(TEXT).entities if e.label != "ORG"}
    assert {text: kinds[text] for text in names} == {
        t: {"PER": "PERSON", "LOC": "LOCATION"}[k] for t, k in names.items()
    }
    assert "PER" in names.values()
    assert kinds["212-555-0123"] == "PHONE_NUMBER"
