"""The comparison of the estimator with CRFsuite: a small run, in which nothing differs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from data import ELSEWHERE, REPOSITORY
from patience import PATIENCE

pytest.importorskip("sklearn_crfsuite", reason="needs the extra train")


@pytest.mark.slow
def test_a_small_run_shows_equal_results() -> None:
    script = REPOSITORY / "scripts" / "benchmarks" / "compare_crfsuite.py"
    corpus = f"{REPOSITORY}/corpora/herdner_news.dev.conll:conll"
    command = [sys.executable, str(script), "--corpus", corpus, "--sentences", "30", "--chains", "50"]
    done = subprocess.run(command, cwd=ELSEWHERE, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    optima, _, rows = done.stdout.partition("\n\n")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in optima.splitlines()[2:]]
    assert len(cells) == 9
    assert all(float(row[4]) < 1e-6 for row in cells)
    measures = dict([cell.strip() for cell in line.split("|")[1:-1]] for line in rows.splitlines()[2:])
    assert measures["different labels"] == "0"
    assert float(measures["largest difference of a marginal"]) < 1e-9
    assert measures["chains whose 10 best labellings differ"] == "0"
