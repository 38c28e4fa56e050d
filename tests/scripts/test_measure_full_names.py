"""The table of results without and with the rule that a full name decides the label of its short forms."""

from __future__ import annotations

import typer
from data import REPOSITORY
from measure_full_names import main
from typer.testing import CliRunner


def test_the_rule_labels_short_forms_of_invented_companies() -> None:
    app = typer.Typer()
    app.command()(main)
    corpus = f"{REPOSITORY / 'corpora' / 'herdner_news.dev.conll'}:conll"
    result = CliRunner().invoke(app, ["--test", corpus, "--names", "4"])
    assert result.exit_code == 0, result.output
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in result.output.splitlines()]
    table = {name: (float(without), float(with_rule)) for name, without, with_rule in lines[2:]}
    companies = table["invented companies without designator (40)"]
    assert 50 < companies[0] <= companies[1]
    assert [name for name in table if name.startswith("F1 on")] == ["F1 on herdner_news.dev.conll:conll"]
