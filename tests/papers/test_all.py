"""The page of the papers: every item has a script that is there and a reading of its results, and the page has all."""

from __future__ import annotations

import json

import all as page_of
import pytest
from data import REPOSITORY
from papers_items import PAPERS, load, verdicts

COMMANDS, ITEMS = load()
PAPERS_FOLDER = REPOSITORY / "scripts" / "papers"


def test_every_item_is_made_by_a_script_or_is_said_not_to_be() -> None:
    for key, command in COMMANDS.items():
        assert (PAPERS_FOLDER / command.split()[0]).exists(), key
    assert {item.command for item in ITEMS} - {None} == set(COMMANDS)
    for item in ITEMS:
        assert item.of in PAPERS
        assert item.paper
        if item.command is None:
            assert item.verdict or item.why, item.name
        else:
            assert item.reading is not None, item.name
    assert len({(item.of, item.name) for item in ITEMS}) == len(ITEMS)


def test_the_page_has_a_line_for_every_item() -> None:
    text = (REPOSITORY / "docs" / "pages" / "papers.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| item")]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [item.name for item in ITEMS]
    assert all(row.count(" | ") == 4 for row in rows)
    assert "did not run" not in text


def test_what_is_found_decides_the_verdict_and_a_missing_result_is_told(tmp_path) -> None:
    def written(theirs: float, far: int) -> str:
        rows = {"G1": [{"ours": {"all": 0.5}, "theirs": {"all": theirs}}]}
        results = {"rows": rows, "far": far, "compared": 20, "lengths": [512], "estimates": {}, "table1": {}}
        results["means"] = {"lengths": [8], "rows": {}, "far": 0, "compared": 0}
        held = {"experiment": "hgw19_authors", "quick": True, "results": results}
        (tmp_path / "hgw19_authors.json").write_text(json.dumps(held))
        return page_of.page(page_of.results(tmp_path), {"hg16_fig5": "no matplotlib"})

    assert "G1: 0.5 / 0.25; 0 of 20 columns more than 3 standard errors of 10 runs apart (quick) | agrees" in written(
        0.25, 0
    )
    assert "(quick) | departs" in written(0.25, 2)
    assert "did not run: no matplotlib" in written(0.25, 0)
    (tmp_path / "hgw19_authors.json").write_text(
        json.dumps({"experiment": "hgw19_authors", "quick": True, "results": {}})
    )
    with pytest.raises(SystemExit, match="does not hold what Table 1"):
        page_of.page(page_of.results(tmp_path), {})


def test_a_script_says_what_the_page_will_say_and_nothing_of_other_results() -> None:
    errors = {"herded Gibbs": [1.0, 0.5], "complete herded Gibbs": [1.0, 0.01], "Gibbs": [1.0, 0.02]}
    (line,) = verdicts("hg16_fig7", {name: {"error": values} for name, values in errors.items()})
    assert line.startswith(
        "HG16 Fig. 6, 7: herded Gibbs 0.5, complete herded Gibbs 0.01, Gibbs 0.02; agrees (the paper:"
    )
    assert list(verdicts("hg16_fig7", {})) == list(verdicts("nothing", {})) == []
