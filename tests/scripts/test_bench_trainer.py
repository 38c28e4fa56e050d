"""The benchmark of the trainer: that it runs, whole, and that both trainings come to one objective."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from data import ELSEWHERE, REPOSITORY
from patience import PATIENCE

PROGRAMS = ("CRFsuite", "herdner")


@pytest.mark.slow
def test_a_small_run_gives_every_measure() -> None:
    script, corpus = REPOSITORY / "scripts" / "benchmarks" / "bench_trainer.py", REPOSITORY / "corpora"
    options = ("--documents", "8", "--iterations", "15", "--lexicon", "none", "--json")
    command = [sys.executable, str(script), "--corpus", f"{corpus}/herdner_news.train.conll:conll", *options]
    done = subprocess.run(command, cwd=ELSEWHERE, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    rows = {row["what"]: row for row in json.loads(done.stdout)["rows"]}
    objective = {name: float(rows[name]["unit"].rpartition(" ")[2].rstrip(")").replace(",", "")) for name in PROGRAMS}
    assert objective["herdner"] <= objective["CRFsuite"], "the training went on until it was"
    assert int(rows["CRFsuite"]["unit"].partition(" iterations")[0].rpartition(" ")[2]) <= 15
    assert rows["to CRFsuite's objective"]["value"] > 0 < rows["Tagger.fit, four folds and links"]["value"]
