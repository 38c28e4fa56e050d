"""The page of the papers: every item has a script that is there and a reading of its results, and the page has all."""

from __future__ import annotations

import json
import re

import all as page_of
import numpy as np
import papers_items as items
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
        claims = item.reading is not None or (item.verdict or "").startswith(("agrees", "departs"))
        assert bool(item.condition) == claims, item.name
    assert len({(item.of, item.name) for item in ITEMS}) == len(ITEMS)


def test_the_page_has_a_line_for_every_item() -> None:
    text = (REPOSITORY / "docs" / "pages" / "papers.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| item")]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [item.name for item in ITEMS]
    assert all(row.count(" | ") == 5 for row in rows)
    assert "did not run" not in text
    verdicts = [re.split("[,:]", row.strip("| ").split(" | ")[-1])[0] for row in rows]
    n, agree, depart, not_decided, beyond, not_done, other = map(
        int, re.findall(r"\d+", re.search(r"^Of \d+ items, .*$", text, re.M)[0])
    )
    counts = [agree, depart, not_decided, beyond, not_done]
    assert counts == [verdicts.count(kind) for kind in page_of.VERDICTS]
    assert n == len(rows) == agree + depart + not_decided + beyond + not_done + other


def test_what_is_found_decides_the_verdict_and_a_missing_result_is_told(tmp_path) -> None:
    def written(theirs: float, far: int) -> str:
        rows = {"G1": [{"ours": {"all": 0.5}, "theirs": {"all": theirs}}]}
        results = {"rows": rows, "far": far, "compared": 20, "lengths": [512], "estimates": {}, "table1": {}}
        results["means"] = {"lengths": [8], "rows": {}, "far": 0, "compared": 0}
        held = {"experiment": "hgw19_authors", "quick": True, "results": results}
        (tmp_path / "hgw19_authors.json").write_text(json.dumps(held))
        return page_of.page(page_of.results(tmp_path), {"hg16_fig5": "no matplotlib"})

    tolerance = (
        "3 standard errors of 10 runs apart (quick) | in at most 5 % of the columns, our result and the authors' differ"
        " by more than 3 standard errors"
    )
    assert f"G1: 0.5 / 0.25; 0 of 20 columns more than {tolerance} | agrees" in written(0.25, 0)
    assert f"{tolerance} | departs" in written(0.25, 2)
    assert "did not run: no matplotlib" in written(0.25, 0)
    (tmp_path / "hgw19_authors.json").write_text(
        json.dumps({"experiment": "hgw19_authors", "quick": True, "results": {}})
    )
    with pytest.raises(SystemExit, match="does not hold what Table 1"):
        page_of.page(page_of.results(tmp_path), {})


def test_items_that_are_not_run_keep_their_results_under_the_same_condition() -> None:
    text = (REPOSITORY / "docs" / "pages" / "papers.md").read_text(encoding="utf-8")
    assert page_of.page({}, {}, text) == text
    failed = page_of.page({}, {"hg16_fig7": "no time"}, text)
    assert failed.count("did not run: no time") == 1
    row = next(line for line in text.splitlines() if line.startswith("| HG16 Fig. 6, 7"))
    other = text.replace(row, row.replace("is more than 10 times", "is more than 2 times"))
    assert page_of.page({}, {}, other).count("did not run: no results") == 1


def test_conditions_can_fail() -> None:
    """Readings of results in the paper's order agree, and depart once the order is another."""
    runs = {"2 blocks, 1 worker": [[2.0, 8.0], [4.5, 4.0]], "2 blocks, 2 workers": [[1.0, 5.0], [4.5, 4.0]]}
    for first, agrees in ((4.6, True), (4.4, False)):
        found = {**runs, "FWSS": [[0.5, 5.0], [first, 4.0]]}
        assert items.blocks({k: {"seconds": s, "RMSE": e} for k, (s, e) in found.items()})[1] == agrees
    sizes = [1, 2, 4]
    for by_svgd, agrees in ((0.1, True), (0.3, False)):
        curves = {"SVGD, prior": by_svgd} | dict.fromkeys(items.FWSS_WEIGHTS, 0.2)
        assert items.svgd_smaller({"mmd2": {m: [sizes, [1.0, 0.5, v]] for m, v in curves.items()}})[1] == agrees
    bins = [4, 6, 8, 12, 16]
    for values, agrees in (([np.exp(-0.3 * b) for b in bins], True), ([b**-1.5 for b in bins], False)):
        assert items.fig6({"bins": bins, "threshold": values})[1] == agrees
    for exponential, power, agrees in ((0.99, 0.9, True), (0.9, 0.99, False), (0.981, 0.979, None)):
        decay = {"exponent of N": -1.5, "rate per particle": -0.02, "R^2, exponent of N": power}
        decay["R^2, rate per particle"] = exponential
        theory = dict.fromkeys(("fully-corrective", "fully-corrective, exact oracle"), decay)
        assert items.toy("fully-corrective")({"theory": theory})[1] is agrees
    for longer, f1, agrees in ((3.0, 85.0, True), (3.0, 83.0, False), (1.05, 85.0, None)):
        seconds = {("herded Gibbs", 100): 1.0, ("herded Gibbs", 400): longer, ("herded Gibbs", 800): 8.0}
        seconds |= {("annealed Gibbs", 100): 2.0, ("annealed Gibbs", 400): 4.0, ("annealed Gibbs", 800): 8.0}
        seconds["Viterbi", None] = 0.5
        table = [
            {"method": m, "sweeps": n, "seconds": [s], "f1": [f1 if m == "herded Gibbs" else 84.0]}
            for (m, n), s in seconds.items()
        ]
        found = {"ieer": {"tables": {"chain of a sentence, random start": {"rows": table}}}}
        assert items.table3_seconds(found)[1] is agrees
    for evaluations, agrees in (([9.0, 9.0, 36.0], True), ([9.0, 1.0, 21.0], False)):
        keys = zip(("SVGD", "FWSS", "SP"), evaluations, strict=True)
        assert items.evaluations18({"costs": {k: {"scores at the largest N": v} for k, v in keys}})[1] == agrees
    for first, agrees in ((7.0, True), (3.0, False)):
        rings = {"0 to 1": first, "-1 to 1": 5.0}
        assert items.table1({k: {"total": v, "exact total": v} for k, v in rings.items()})[1] == agrees
    accuracy = {"FWSS, MAP start": [[0.1, 1.0], [0.6, 0.7]], "SVGD": [[1.0, 2.0], [0.5, 0.65]]}
    assert items.accuracy({"accuracy": accuracy})[1]
    assert not items.accuracy({"accuracy": accuracy | {"SVGD": [[0.1, 0.2], [0.5, 0.65]]}})[1]
    later = {"FWSS": [[1.0, 3.0], [0.5, 0.4]], "SVGD": [[0.5, 2.0, 4.0], [0.7, 0.6, 0.3]]}
    assert items.initial18({"naval": [later]})[1]
    assert not items.initial18({"naval": [later | {"SVGD": [[0.5, 2.0, 4.0], [0.7, 0.3, 0.3]]}]})[1]
    one, more = {"systematic": [1.0], "DoGS": [0.01]}, {"iterated DoGS": [0.005]}
    for other, agrees in ((0.005, True), (1e-5, False)):
        assert items.iterated({"replicates": [{"guarantees": one | more | {"iterated DoGS": [other]}}]})[1] == agrees


def test_a_script_says_what_the_page_will_say_and_nothing_of_other_results() -> None:
    errors = {"herded Gibbs": [1.0, 0.5], "complete herded Gibbs": [1.0, 0.01], "Gibbs": [1.0, 0.02]}
    (line,) = verdicts("hg16_fig7", {name: {"error": values} for name, values in errors.items()})
    assert line.startswith(
        "HG16 Fig. 6, 7: herded Gibbs 0.5, complete herded Gibbs 0.01, Gibbs 0.02; agrees (the paper:"
    )
    assert list(verdicts("hg16_fig7", {})) == list(verdicts("nothing", {})) == []
