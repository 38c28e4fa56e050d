"""herdner as a recogniser of Presidio, where it is installed."""

from __future__ import annotations

import sys

import pytest

from herdner import Tagger

TEXT = "Ada Lovelace met Charles Babbage in London. Lovelace wrote; her number is 212-555-0123."


def test_what_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    monkeypatch.delitem(sys.modules, "herdner.integrations.presidio", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'herdner\[presidio\]'"):
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


def test_inside_an_analyzer_beside_its_own_recognisers(news_tagger: Tagger):
    presidio = pytest.importorskip("presidio_analyzer")
    import spacy
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    from herdner.integrations.presidio import HerdnerRecognizer

    class Blank(SpacyNlpEngine):
        def __init__(self) -> None:
            super().__init__()
            self.nlp = {"en": spacy.blank("en")}

    registry = presidio.RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"])
    registry.add_recognizer(HerdnerRecognizer(news_tagger))
    analyzer = presidio.AnalyzerEngine(registry=registry, nlp_engine=Blank())
    found = analyzer.analyze(TEXT, language="en", entities=["PERSON", "LOCATION", "PHONE_NUMBER"])
    kinds = {TEXT[each.start : each.end]: each.entity_type for each in found}
    names = {e.text: e.label for e in news_tagger.tag(TEXT).entities if e.label != "ORG"}
    assert {text: kinds[text] for text in names} == {
        t: {"PER": "PERSON", "LOC": "LOCATION"}[k] for t, k in names.items()
    }
    assert "PER" in names.values()
    assert kinds["212-555-0123"] == "PHONE_NUMBER"
