"""Tests of ``herdner scan``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import Call, one_line

import herdner
from herdner.dobrushin import dobrushin_variation, tightest_influence
from herdner.dobrushin.plots import grid_distances
from herdner.graph.scan import random_scan, systematic_scan

GRID = ("--ising", "5x6", "--coupling", "0.2", "--field", "0.1")


def test_the_guarantees_are_those_of_the_library(call: Call, tmp_path: Path) -> None:
    outcome = call("scan", *GRID, "--target", "0", "--steps", 90, "--json", "--output", tmp_path / "scan.txt")
    assert outcome.code == 0, outcome.err
    rows = {row["scan"]: row for row in json.loads(outcome.out)["scans"]}
    influence = tightest_influence(herdner.ising(0.2, 0.1, (5, 6)))
    for name, scan in (("systematic", systematic_scan()), ("uniform random", random_scan())):
        assert rows[name]["guarantee"] == pytest.approx(dobrushin_variation(influence, scan, {0: 1.0}, 90))
    order = [int(line) for line in (tmp_path / "scan.txt").read_text().split()]
    assert len(order) == rows["dogs"]["updates"] == 90
    assert rows["dogs"]["guarantee"] == pytest.approx(dobrushin_variation(influence, order, {0: 1.0}))
    assert rows["dogs"]["guarantee"] < rows["systematic"]["guarantee"]
    again = call("scan", *GRID, "--target", "0", "--certify", tmp_path / "scan.txt", "--json")
    rows = {row["scan"]: row for row in json.loads(again.out)["scans"]}
    assert rows["scan.txt"]["guarantee"] == pytest.approx(dobrushin_variation(influence, order, {0: 1.0}))


def test_a_saved_graph_and_a_goal(call: Call, tmp_path: Path) -> None:
    herdner.save_graph(tmp_path / "g.npz", herdner.ising(0.1, 0.0, (4, 4)))
    outcome = call("scan", "--graph", tmp_path / "g.npz", "--target", "5,6", "--epsilon", "0.05")
    assert outcome.code == 0, outcome.err
    assert "total influence is below 1" in outcome.out
    line = next(line.split() for line in outcome.out.splitlines() if line.startswith("dogs"))
    assert float(line[2]) <= 0.05
    assert int(line[1]) < 48
    assert "trivial" not in outcome.out
    none = call("scan", "--graph", tmp_path / "g.npz", "--epsilon", "1e-9", "--steps", 16)
    assert "no scan of 16 updates with a guarantee of 1e-09 was found" in none.out


def test_trivial_guarantees_are_marked(call: Call) -> None:
    assert "trivial" in call("scan", "--ising", "4x4", "--coupling", "2").out


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_figure(call: Call, tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"f.{ending}"
    outcome = call("scan", *GRID, "--wrap", "--target", "7", "--figure", path)
    assert outcome.code == 0, outcome.err
    assert path.stat().st_size > 5000


def test_usage_errors_are_one_line(call: Call, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("0\n1\nx\n")
    (tmp_path / "far.txt").write_text("0\n99\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "no.npz").write_text("nothing")
    for arguments, code, words in (
        ((), 2, "there is no graph: give either --ising ROWSxCOLUMNS or --graph FILE"),
        (("--ising", "5"), 2, "expected ROWSxCOLUMNS"),
        ((*GRID, "--target", "a"), 2, "expected indices of variables"),
        ((*GRID, "--target", "30"), 1, "no variable 30"),
        ((*GRID, "--certify", tmp_path / "bad.txt"), 1, "line 3: expected the index"),
        ((*GRID, "--certify", tmp_path / "far.txt"), 1, "names variable 99"),
        ((*GRID, "--certify", tmp_path / "empty.txt"), 1, "the scan is empty"),
        ((*GRID, "--certify", tmp_path / "none.txt"), 1, "no such file"),
        (("--graph", tmp_path / "no.npz"), 1, "not a graph file"),
        ((*GRID, "--figure", tmp_path / "f.gif"), 2, "expected the file extension"),
        ((*GRID, "--coupling", "nan"), 2, "--coupling must be a finite number"),
        ((*GRID, "--field", "inf"), 2, "--field must be a finite number"),
        (("--ising", "0x4"), 2, "at least one row and one column"),
        (("--ising", "99999x99999"), 1, "GB of memory, but only"),
        ((*GRID, "--output", tmp_path / "no" / "scan.txt"), 2, "there is no folder"),
    ):
        assert words in one_line(call("scan", *arguments), code)


def test_distances_on_grids() -> None:
    np.testing.assert_array_equal(grid_distances((2, 3), 0), [0, 1, 2, 1, 2, 3])
    np.testing.assert_array_equal(grid_distances((3, 4), 0, wrap=True), [0, 1, 2, 1, 1, 2, 3, 2, 1, 2, 3, 2])
