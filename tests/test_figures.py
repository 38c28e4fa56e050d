"""Figures that several pages show agree with their one source (docs/figures.py)."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
from data import REPOSITORY


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures", REPOSITORY / "docs" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules["figures"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_pages_show_the_figures_of_their_source(figures: ModuleType) -> None:
    values = figures.figures()
    for page in figures.USES:
        assert figures.written(page, values) == (REPOSITORY / page).read_text(encoding="utf-8"), (
            f"{page} has other figures than their source: run python docs/figures.py"
        )


@pytest.mark.slow
def test_another_figure_changes_the_page(figures: ModuleType) -> None:
    values = {**figures.figures(), "en.ieer": 12.34}
    page = "docs/pages/limits.md"
    assert "| IE-ER (56 articles) | 12.3 |" in figures.written(page, values)


@pytest.mark.slow
def test_text_that_a_page_does_not_have_is_an_error(figures: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(figures.USES, "README.md", ["no page says {en.ieer:.1f} like this"])
    with pytest.raises(ValueError, match="has 0 places like"):
        figures.written("README.md", figures.figures())


def test_halves_are_rounded_up(figures: ModuleType) -> None:
    assert [figures.formatted(value, ".1f") for value in (86.75, 72.25, 0.86)] == ["86.8", "72.3", "0.9"]


@pytest.mark.slow
def test_the_readme_shows_the_measured_speed_and_sizes(figures: ModuleType) -> None:
    values = {**figures.figures(), "speed.en": 1234.0, "speed.ratio": 70.0, "size.en": 3.21, "install.all": 99.0}
    page = figures.written("README.md", values)
    assert all(text in page for text in ("| **1,234** | 3.2 MB |", "over 70 times as fast", "takes 99 MB"))
