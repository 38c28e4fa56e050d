"""The experiments of DoGS17 run, in their quick sizes, and show what they are to show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from data import ELSEWHERE, REPOSITORY
from patience import PATIENCE

pytest.importorskip("matplotlib")


def results(script: str, out: Path, *options: str) -> dict:
    command = [
        sys.executable,
        str(REPOSITORY / "scripts" / "papers" / f"{script}.py"),
        "--quick",
        "--out",
        str(out),
        *options,
    ]
    done = subprocess.run(command, cwd=ELSEWHERE, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    (written,) = out.glob("*.json")
    assert (out / f"{written.stem}.png").exists()
    return json.loads(written.read_text())["results"]


@pytest.mark.slow
def test_fig_1_dogs_is_below_systematic_is_below_random(tmp_path) -> None:
    for replicate in results("dogs17_fig1", tmp_path)["replicates"]:
        last = {name: values[-1] for name, values in replicate["guarantees"].items()}
        assert last["iterated DoGS"] <= last["DoGS"] < last["systematic"] < last["uniform random"]


@pytest.mark.slow
def test_fig_2_a_short_scan_has_the_guarantee_of_two_sweeps(tmp_path) -> None:
    found = results("dogs17_fig2", tmp_path)
    assert found["guarantee"]["DoGS"] <= found["guarantee"]["systematic"]
    assert max(found["n_steps"]["DoGS"], found["n_steps"]["DoGS, fields"]) <= 16
    assert found["n_steps"]["systematic"] > 10 * found["n_steps"]["DoGS"]
    assert min(found["seconds_a_sample"].values()) > 0


@pytest.mark.slow
def test_fig_3_runs(tmp_path) -> None:
    for grid in results("dogs17_fig3", tmp_path)["grids"].values():
        assert grid["dogs"][0]["updates"][-1] < grid["uniform"][0]["updates"][-1]


@pytest.mark.slow
def test_fig_4_the_bias_falls_faster(tmp_path) -> None:
    for grid in results("dogs17_fig4", tmp_path)["grids"].values():
        assert grid["guarantees"]["DoGS"][-1] < grid["guarantees"]["systematic"][-1]
        assert sum(grid["bias"]["DoGS"]["bias"][:3]) < sum(grid["bias"]["systematic"]["bias"][:3])


@pytest.mark.slow
def test_fig_8_loose_bounds_loosen_the_guarantee(tmp_path) -> None:
    found = results("dogs17_fig8", tmp_path)["factors"]
    last = [found[factor]["guarantees"]["DoGS"][-1] for factor in ("1.0", "1.1", "1.3", "1.5")]
    assert last == sorted(last)
