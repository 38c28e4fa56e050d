"""Short forms of names that models get right: counts and intervals over documents."""

from __future__ import annotations

import numpy as np
import pytest
import typer
from data import REPOSITORY
from measure_short_forms import main, predict_short_forms, rows, share
from typer.testing import CliRunner

from herdner.evaluation.consistency import count_short_forms
from herdner.text.document import Document

WORDS = ["Winam", "Ferries", "met", "Winam", "and", "Winam", "Port"]
GOLD = ["B-ORG", "I-ORG", "O", "B-ORG", "O", "B-ORG", "O"]


def documents(*tags: list[str]) -> list[Document]:
    return [Document.from_tokens([WORDS], [each]) for each in tags]


def test_what_is_made_of_each_short_form_is_said_and_counted() -> None:
    gold = documents(GOLD, GOLD)
    predicted = documents(GOLD, ["O", "O", "O", "O", "O", "B-LOC", "I-LOC"])
    each = predict_short_forms("x", gold, predicted, "ORG")
    assert each.labels == ["ORG", "ORG", "-", "LOC+1"]
    assert each.right.sum() == count_short_forms(gold, predicted)["ORG"].n_correct == 2


def test_intervals_resample_documents() -> None:
    right = np.array([True] * 8 + [False] * 2 + [True, False])
    document = np.array([0] * 8 + [3] * 2 + [4] * 2)
    interval, rng = share(right, document), np.random.default_rng(1)
    drawn = [np.concatenate([right[document == i] for i in rng.choice([0, 3, 4], 3)]).mean() for _ in range(4000)]
    assert (interval.low, interval.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.03)
    nothing = share(right, document, right)
    assert (nothing.low, nothing.high) == (0, 0)


def test_others_are_held_against_the_first() -> None:
    gold = documents(GOLD)
    none = predict_short_forms("none", gold, documents(["O"] * 7), "ORG")
    lines = rows([none, predict_short_forms("all", gold, gold, "ORG")], np.array([0, 0]))
    assert lines == [
        ["none", "0 of 2", "0.00 (0.00 to 0.00)", ""],
        ["all", "2 of 2", "100.00 (100.00 to 100.00)", "+100.00 (+100.00 to +100.00)"],
    ]


def run(*options: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, ["--test", f"{REPOSITORY / 'corpora' / 'herdner_news.dev.conll'}:conll", *options])
    return result.exit_code, result.output


def test_it_prints_a_row_for_each_model_with_links_and_without() -> None:
    code, output = run("--label", "PER", "--wrong")
    assert code == 0, output
    counts, _, wrong = output.strip().partition("\n\n")
    first, second = (line.split("|") for line in counts.splitlines()[2:])
    assert (first[1].strip(), second[1].strip()) == ("en", "en, chain alone")
    right, n = map(int, first[2].split("of"))
    assert 0 < right < n
    assert len(wrong.splitlines()[2:]) == n - right


def test_a_label_without_a_rule_is_refused() -> None:
    code, _ = run("--label", "LOC")
    assert code == 2
