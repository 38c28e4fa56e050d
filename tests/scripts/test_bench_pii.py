"""The measures of pseudonyms: recall of personal data, and leaks that are there are counted."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import bench_pii
import measure_pseudonyms
import pytest
from bench_pii import Range, is_covered

from herdner import Document, Entity
from herdner.ner.pseudonyms.common_words import CommonWords
from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
from herdner.ner.pseudonyms.replacing import Pseudonymiser
from herdner.ner.pseudonyms.styles import NumberedStyle


def test_a_value_is_covered_by_ranges_that_contain_its_letters() -> None:
    value = Range(0, 10, "PERSON")
    assert is_covered("Ana Rivera", value, [Range(0, 3, "PERSON"), Range(4, 10, "PERSON")])
    assert not is_covered("Ana Rivera", value, [Range(0, 3, "PERSON"), Range(5, 10, "PERSON")])


def test_table_of_a_small_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    text = "Write to ana@x.org or call +44 20 7031 3000."
    spans = [
        {"entity_type": "EMAIL_ADDRESS", "start_position": 9, "end_position": 18},
        {"entity_type": "PHONE_NUMBER", "start_position": 27, "end_position": 43},
        {"entity_type": "IBAN_CODE", "start_position": 0, "end_position": 5},
    ]
    (tmp_path / "corpus.json").write_text(json.dumps([{"full_text": text, "spans": spans}]))
    monkeypatch.setattr(bench_pii, "GOLD", {"EMAIL_ADDRESS": "EMAIL", "PHONE_NUMBER": "PHONE", "IBAN_CODE": "IBAN"})
    monkeypatch.setattr(sys, "argv", ["bench_pii.py", str(tmp_path / "corpus.json")])
    bench_pii.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["EMAIL", "1", "100.0", "100.0", "100.0"] in rows
    assert ["PHONE", "1", "100.0", "100.0", "100.0"] in rows
    assert ["IBAN", "1", "0.0", "0.0", "-"] in rows


def test_leaks_and_missed_names_are_counted() -> None:
    text = "Ana Rivera met Bo. The bank of Rivera."
    mentions = (Entity(0, 10, "PER", "Ana Rivera", None, 0), Entity(15, 17, "PER", "Bo", None, 1))
    gold = replace(Document.from_text(text), entities=mentions)
    names = PseudonymMap()
    result = Pseudonymiser(names, NumberedStyle(names))(replace(gold, entities=mentions[:1]))
    assert measure_pseudonyms.leaked_words(gold, result, CommonWords()) == set()
    assert list(measure_pseudonyms.missed_names(gold, result)) == [("person", False), ("person", True)]
    leaky = replace(result, document=replace(result.document, text=result.text + " rivera", entities=()))
    assert measure_pseudonyms.leaked_words(gold, leaky, CommonWords()) == {"rivera"}
    assert measure_pseudonyms.leaked_words(gold, leaky, CommonWords({"rivera"})) == set()
