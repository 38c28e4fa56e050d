"""The benchmark of the loops: that it runs, whole, and judges what it measures."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
import timing
from data import ELSEWHERE, REPOSITORY
from patience import PATIENCE

# How many rows of each group are held against a target.
WITH_TARGET = {"memory": 1, "chain": 1, "grid": 4, "csr": 4, "skip": 5, "scaling": 3, "count": 5, "denoise": 2}


def bench(*options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(REPOSITORY / "scripts" / "benchmarks" / "bench_kernels.py"), *options]
    return subprocess.run(command, cwd=ELSEWHERE, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.slow
def test_a_quick_run_gives_every_measure() -> None:
    pytest.importorskip("numba", reason="needs numba: pip install '.[dev]'")
    done = bench("--quick", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    with_target = [row for row in report["rows"] if row["target"] is not None]
    assert {group: sum(row["group"] == group for row in with_target) for group in WITH_TARGET} == WITH_TARGET
    assert all(row["verdict"] and math.isfinite(row["value"]) for row in with_target)
    assert report["calibration_exp_ns"] > 0


@pytest.mark.slow
def test_one_group_alone_is_a_table() -> None:
    done = bench("--quick", "--only", "skip")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("exps (at most") == WITH_TARGET["skip"]


def test_an_unknown_group_is_one_line() -> None:
    done = bench("--only", "lattice")
    assert done.returncode == 1
    assert done.stderr == (
        "there is no group 'lattice'; --only takes memory, chain, grid, csr, skip, scaling, count, denoise\n"
    )


@pytest.mark.parametrize(
    ("value", "wanted", "verdict"),
    [
        (7.9, "at least", "missed"), (8.0, "at least", "met"), (20.0, "at least", "met, and the stretch"),
        (8.0, "at most", "met"), (8.1, "at most", "missed"), (None, "at least", ""),
    ],
)  # fmt: skip
def test_verdicts(value, wanted, verdict) -> None:
    stretch = 20.0 if wanted == "at least" else None
    assert timing.Row("g", "w", value=value, target=8.0, stretch=stretch, wanted=wanted).verdict == verdict


def test_set_up_is_not_counted(monkeypatch) -> None:
    """Test a loop that takes 100 s once and 5 s for each update, by a clock that only this loop advances."""
    clock = [0.0]
    monkeypatch.setattr(timing.time, "process_time", lambda: clock[0])

    def run(sweeps: int) -> None:
        clock[0] += 100.0 + 5.0 * 20 * sweeps

    ns, _ = timing.update_times({"loop": timing.Loop(run, per_sweep=20, sweeps=3)}, repeats=2)
    assert ns == {"loop": pytest.approx(5e9)}
