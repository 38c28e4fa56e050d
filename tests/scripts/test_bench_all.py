"""The table of all benchmarks: what a figure is, and what a script that fails says."""

from __future__ import annotations

import bench_all
import pytest
from bench_all import Figure, commands, figures, recorded, row, run


def test_a_figure_is_the_median_ratio_beside_the_lowest_and_the_highest():
    pairs = ((2, 10), (1, 9), (4, 12))
    runs = [{"rows": [{"what": "ours", "ns": ours}, {"what": "theirs", "ns": theirs}]} for ours, theirs in pairs]
    figure = Figure("work", "script", row("ours"), "ns", "peer", row("theirs"))
    assert figure.cells(runs) == ("work", "2 ns", "10, peer", "**5 times**", "3 to 9")
    alone = Figure("work", "script", row("ours"), "s")
    assert alone.cells(runs) == ("work", "**2** s", "", "", "1 to 4")


def test_rows_are_found_by_their_names():
    found = {"rows": [{"what": "x", "ns": 4.0, "recorded_ns": 6.0}, {"what": "y", "ns": 1.0}]}
    assert (row("x")(found), recorded("x")(found), row("y")(found)) == (4.0, 1.5, 1.0)


def test_every_figure_is_of_a_script_that_is_run():
    assert {figure.script for figure in figures()} == set(commands("a:conll", "b:conll"))
    assert len({figure.what for figure in figures()}) == len(list(figures()))


def test_a_script_that_fails_ends_it_with_one_line():
    with pytest.raises(SystemExit, match=r"bench_start.py --none: .*No such option"):
        run(["bench_start.py", "--none"])


def test_the_page_states_the_speed_of_short_texts(monkeypatch, capsys):
    values = {"one text of 36 tokens": 0.3, "1,000 texts of 36 tokens": 359.4}
    rows = [{"what": what, "value": value} for what, value in values.items()]
    monkeypatch.setattr(bench_all, "figures", lambda: [each for each in figures() if "36 tokens" in each.what])
    monkeypatch.setattr(bench_all, "run", lambda command: {"rows": rows, "calibration_exp_ns": 5.0})
    bench_all.main("a:conll", rounds=1)
    assert "359,000 tokens a second by `pipe`, and 120,000 by `tag`" in capsys.readouterr().out
