"""The scripts of theorems and of what the authors ask for next, and the numbers of HGW19's authors."""

from __future__ import annotations

import importlib
import json

import dogs17_theorems
import hg16_theory
import hgw19_authors
import hgw19_bounds
import hgw19_choices
import hgw19_raw
import hgw19_weights
import papers_items
import pytest
from typer.testing import CliRunner


@pytest.mark.slow
def test_theorems_hold(tmp_path) -> None:
    hg16_theory.main(quick=True, out=tmp_path)
    found = json.loads((tmp_path / "hg16_theory.json").read_text())["results"]
    assert found["rationally independent"]["last"] < 1e-3 < found["dependent"]["last"]
    assert found["theorem 3"]["above"] == found["equation 34"]["below"] == 0
    assert found["theorem 3"]["nearest"] > 0.005, "the bound says something"
    assert 0.9 < found["lemma 1"]["largest"] <= 1 + 1e-9
    assert found["burn-in"]["above"] == 0
    assert found["burn-in"]["checks"] > 20


@pytest.mark.slow
def test_theorems_on_scans_hold(tmp_path) -> None:
    dogs17_theorems.main(quick=True, out=tmp_path)
    found = json.loads((tmp_path / "dogs17_theorems.json").read_text())["results"]
    assert found["Lemma 5"]["below"] == found["Theorem 8"]["above"] == 0
    assert papers_items.proposition9(found)[1]
    assert all(found[f"Theorem {n}"]["below"] == 0 for n in (10, 11, 12))
    assert found["Theorem 11"]["exact"] > 0.5


@pytest.mark.slow
def test_bounds_partitions_and_the_choice_of_bins_agree_with_the_paper(tmp_path) -> None:
    hgw19_bounds.main(quick=True, out=tmp_path)
    hgw19_choices.main(quick=True, out=tmp_path)
    bounds, choices = (
        json.loads((tmp_path / f"{name}.json").read_text())["results"] for name in ("hgw19_bounds", "hgw19_choices")
    )
    assert papers_items.bounds19(bounds)[1]
    assert papers_items.partitions19(choices)[1]
    assert papers_items.bin_numbers19(choices)[1]
    choices["partitions"]["equal width, B=4"]["all"][-1] *= 2
    assert not papers_items.partitions19(choices)[1]


def test_weights_that_start_at_zero_are_biased(tmp_path) -> None:
    hgw19_weights.main(quick=True, out=tmp_path)
    found = json.loads((tmp_path / "hgw19_weights.json").read_text())["results"]
    assert papers_items.weights19(found)[1]


@pytest.mark.slow
def test_the_authors_numbers_are_met(tmp_path) -> None:
    hgw19_authors.main(quick=True, out=tmp_path)
    found = json.loads((tmp_path / "hgw19_authors.json").read_text())["results"]
    assert found["compared"] == 108
    assert found["far"] <= 6, "of columns that are means of ten runs each"
    means = found["means"]
    assert means["compared"] == 48
    words, agrees = papers_items.authors_means(found)
    assert agrees, words
    odd = means["rows"]["G3-small, DHG(32)"]["labels"]["standard errors apart"]
    assert all(abs(apart) > 3 for apart in odd), "their file of 32 bins is of 8"
    for name, value in found["table1"].items():
        assert found["estimates"][name] == pytest.approx(value, rel=0.01)


def test_ours_are_printed_beside_theirs(tmp_path) -> None:
    import typer

    app = typer.Typer()
    app.command()(hgw19_raw.main)
    graph, results = tmp_path / "g.txt", tmp_path / "r.txt"
    graph.write_text("3 2\n0.5 -0.1 0.2\n0 1 0.3\n1 2 0.4\n")
    options = ["--powers", "6", "--runs", "2", "--method", "dhg", "--bins", "4"]
    plain = CliRunner().invoke(app, [str(graph), *options])
    assert plain.exit_code == 0
    assert plain.stdout.startswith("2^2\t")
    results.write_text(plain.stdout)
    beside = CliRunner().invoke(app, [str(graph), *options, "--beside", str(results)])
    assert beside.exit_code == 0
    assert beside.stdout.count("(") == 6 * 6
    options += ["--expectation", "labels"]
    results.write_text(CliRunner().invoke(app, [str(graph), *options]).stdout)
    beside = CliRunner().invoke(app, [str(graph), *options, "--beside", str(results)])
    assert beside.stdout.count("(+0.0)") + beside.stdout.count("(same)") == 6
    graph.write_text("3 2\n0.5")
    wrong = CliRunner().invoke(app, [str(graph), *options])
    assert wrong.exit_code == 1
    assert "the file ends early" in wrong.output


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", ["fwss_theorems", "fwss_dimensions", "hgw19_labels", "hg16_parallel", "dogs17_estimated"]
)
def test_a_quick_run_makes_its_lines_of_the_page(script, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    importlib.import_module(script).main(quick=True, out=tmp_path)
    items = [item for item in papers_items.load()[1] if item.command == script]
    assert items
    for item in items:
        found = json.loads((tmp_path / f"{item.experiment}.json").read_text())["results"]
        words, agrees = item.reading(found)
        assert agrees, f"{item.name}: {words}"
    assert (tmp_path / f"{script}.png").stat().st_size > 10_000
