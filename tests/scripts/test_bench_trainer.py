"""The benchmark of the trainer: that it runs, whole, and that both trainings come to one objective."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from data import ELSEWHERE, REPOSITORY
from patience import PATIENCE


@pytest.mark.slow
def test_a_small_run_gives_every_measure() -> None:
    script, corpus = REPOSITORY / "scripts" / "benchmarks" / "bench_trainer.py", REPOSITORY / "corpora"
    options = ("--documents", "8", "--iterations", "15", "--lexicon", "none", "--json")
    command = [sys.executable, str(script), "--corpus", f"{corpus}/herdner_news.train.conll:conll", *options]
    done = subprocess.run(command, cwd=ELSEWHERE, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["reached"]
    assert report["herdner"]["objective"] <= report["objective"] < report["curves"]["herdner"]["losses"][0]
    assert report["crfsuite"]["iterations"] <= 15
    assert report["times_crfsuite"] > 0 < report["fit_seconds"]
