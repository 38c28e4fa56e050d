"""The benchmark and the experiments of Stein sampling: that they run, whole, and what they print."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from data import ELSEWHERE, REPOSITORY, shared_data
from patience import PATIENCE


def run(script: str, *options: str) -> subprocess.CompletedProcess:
    command = [
        sys.executable,
        str(REPOSITORY / "scripts" / ("benchmarks" if script.startswith("bench") else "papers") / script),
        *options,
    ]
    return subprocess.run(command, cwd=ELSEWHERE, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.slow
def test_a_quick_benchmark_gives_every_measure_that_needs_no_data() -> None:
    done = run("bench_stein.py", "--quick", "--json", "--only", "toy", "--only", "iteration", "--only", "line")
    assert done.returncode == 0, done.stderr
    with_target = [row for row in json.loads(done.stdout)["rows"] if row["target"] is not None]
    assert [row["group"] for row in with_target] == ["toy", *3 * ["iteration"], *2 * ["line"]]
    assert all(row["verdict"] for row in with_target)


def test_an_unknown_group_is_one_line() -> None:
    done = run("bench_stein.py", "--only", "year")
    assert done.returncode == 1
    assert done.stderr == "there is no group 'year'; --only takes toy, iteration, line\n"


@pytest.mark.slow
def test_the_mixture_prints_the_rates_beside_the_claims(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    done = run("fwss_toy.py", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("by 50 moves of Adam; ") == 3, "a verdict on each step rule"
    assert "J is below both the gap and the bound" in done.stdout
    found = json.loads((tmp_path / "fwss_toy.json").read_text())["results"]
    for step, values in found["mmd2"].items():
        assert values[-1] < values[0], step
    assert np.all(np.array(found["mmd2"]["fully-corrective"]) <= np.array(found["mmd2"]["constant"]) + 1e-12)
    for step in ("constant", "fully-corrective"):
        by_moves, exact = (found["theory"][f"{step}{oracle}"]["exponent of N"] for oracle in ("", ", exact oracle"))
        assert exact < by_moves, "the points of an exact oracle are better"


@pytest.mark.slow
@pytest.mark.parametrize(("script", "data"), [("fwss_logistic.py", "protein"), ("fwss_blocks.py", "protein")])
def test_experiments_with_data_run(script, data, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    shared_data("uci")
    options = ["--data", data] if script == "fwss_logistic.py" else []
    done = run(script, "--quick", "--out", str(tmp_path), *options)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_regression_is_held_against_the_paper(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    shared_data("uci")
    done = run("fwss_neural.py", "--quick", "--data", "naval", "--splits", "1", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("Table 2, naval, ")]
    assert [line.split(",")[2].split(":")[0] for line in lines] == [" FWSS", " SVGD", " order"]
    assert lines[0].endswith("departs (the paper: RMSE 4.2e-4, LL 6.00)")
    found = json.loads((tmp_path / "fwss_neural_naval.json").read_text())["results"]["naval"]
    assert {name: len(rows) for name, rows in found.items()} == dict.fromkeys(found, 1)


@pytest.mark.slow
def test_curves_from_initial_weights_have_the_same_time(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    shared_data("uci")
    done = run("fwss_initial.py", "--quick", "--splits", "1", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for splits in json.loads((tmp_path / "fwss_initial.json").read_text())["results"].values():
        for curves in splits:
            (seconds, ours), (times, theirs) = curves["FWSS"], curves["SVGD"]
            assert len(seconds) == len(ours) == 4
            assert len(times) == len(theirs) > 1
            assert seconds == sorted(seconds)
            assert times[-1] >= seconds[-1]


def test_what_data_are_missing_is_told(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HERDNER_DATA", str(tmp_path))
    done = run("fwss_blocks.py", "--quick", "--out", str(tmp_path))
    assert done.returncode == 1
    assert "is missing; set HERDNER_DATA to the folder with uci/" in done.stderr
