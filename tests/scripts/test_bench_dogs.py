"""The benchmark of scans: that it runs, whole, and judges what it measures."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from data import ELSEWHERE, REPOSITORY
from patience import PATIENCE


@pytest.mark.slow
def test_a_quick_run_gives_every_measure() -> None:
    command = [sys.executable, str(REPOSITORY / "scripts" / "benchmarks" / "bench_dogs.py"), "--quick", "--json"]
    done = subprocess.run(command, cwd=ELSEWHERE, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    with_target = [row for row in json.loads(done.stdout)["rows"] if row["target"] is not None]
    assert [row["group"] for row in with_target] == ["million", "step", "aspect"]
    assert all(row["verdict"] and math.isfinite(row["value"]) for row in with_target)
