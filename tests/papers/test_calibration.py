"""The measures of calibration, by hand, and the script as a whole."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration import measured, resampled
from data import ELSEWHERE, REPOSITORY
from patience import PATIENCE

from herdner.corpora.formats import read_documents
from herdner.evaluation.calibration import (
    EntityConfidences,
    bin_indices,
    brier_score,
    ece,
    entity_confidences,
    expected_ece,
    log_loss,
    overconfidence,
)
from herdner.ner.tagger import Tagger
from herdner.text.document import Document

NEWS = REPOSITORY / "corpora" / "herdner_news.train.conll"
DEV = REPOSITORY / "corpora" / "herdner_news.dev.conll"
SCRIPT = REPOSITORY / "scripts" / "papers" / "calibration.py"


def found(confidence: list[float], right: list[int]) -> EntityConfidences:
    return EntityConfidences(np.array(confidence), np.array(right, float), np.arange(len(right)) // 2)


def test_measures_of_four_claims() -> None:
    four = found([0.9, 0.8, 0.2, 1.0], [1, 0, 0, 1])
    assert ece(four, "width", 2) == pytest.approx((abs(2.7 - 2) + abs(0.2)) / 4)
    assert ece(four, "mass", 2) == pytest.approx((abs(1.0 - 0) + abs(1.9 - 2)) / 4)
    assert brier_score(four) == pytest.approx((0.01 + 0.64 + 0.04 + 0) / 4)
    assert log_loss(four) == pytest.approx(-np.log(0.9 * 0.2 * 0.8) / 4, abs=1e-5)
    assert overconfidence(four) == pytest.approx(2.9 / 4 - 0.5)


def test_bins() -> None:
    confidence = np.random.default_rng(0).random(100)
    assert np.bincount(bin_indices(confidence, "mass", 10)).tolist() == [10] * 10
    assert bin_indices(np.array([0.0, 0.49, 0.5, 1.0]), "width", 2).tolist() == [0, 0, 1, 1]


def test_confidences_that_are_true_have_almost_no_error_and_others_do() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(40_000)
    true = EntityConfidences(confidence, (rng.random(40_000) < confidence).astype(float), np.arange(40_000) // 100)
    for equal in ("width", "mass"):
        assert ece(true, equal) < 0.01
        assert ece(true._replace(confidence=np.sqrt(confidence)), equal) > 0.1
    rows = measured({"links": true, "calibrated": true._replace(confidence=np.sqrt(confidence))}, 400, rng, 50)
    low, high = rows["calibrated"]["Brier"]["less links"]["interval"]
    assert 0 < low < rows["calibrated"]["Brier"]["less links"]["value"] < high


@pytest.mark.parametrize("equal", ["width", "mass"])
def test_what_chance_makes_of_the_error_is_what_true_confidences_have(equal: str) -> None:
    rng = np.random.default_rng(1)
    confidence = rng.beta(4, 1, 600)
    draws = [(rng.random(600) < confidence).astype(float) for _ in range(400)]
    errors = [ece(EntityConfidences(confidence, right, np.zeros(600, int)), equal) for right in draws]
    expected = expected_ece(EntityConfidences(confidence, draws[0], np.zeros(600, int)), equal)
    assert expected == pytest.approx(np.mean(errors), rel=0.05)
    assert expected > 0.02


def test_resampling_repeats_whole_documents() -> None:
    four = found([0.9, 0.8, 0.2, 1.0], [1, 0, 0, 1])
    assert resampled(four, np.array([1, 1, 0])).confidence.tolist() == [0.2, 1.0, 0.2, 1.0, 0.9, 0.8]
    assert resampled(four, np.array([0, 5])).confidence.tolist() == [0.9, 0.8]


def test_a_claim_is_right_when_borders_and_class_are() -> None:
    words, gold = [["Ada", "Reyes", "met", "Kenya", "Oslo"]], ["B-PER", "I-PER", "O", "B-LOC", "B-ORG"]
    right = Document.from_tokens(words, [gold])
    guess = Document.from_tokens(words, [["B-PER", "I-PER", "O", "B-ORG", "O"]])
    entities = guess.entities_from_spans(guess.spans or [], [0.75, 0.25])
    short = Document.from_tokens(words, [["O", "B-PER", "O", "O", "B-ORG"]])
    other = short.entities_from_spans(short.spans or [], [0.5, 1.0])
    result = entity_confidences([right, right], [replace(guess, entities=entities), replace(short, entities=other)])
    assert result.is_correct.tolist() == [1, 0, 0, 1]
    assert result.confidence.tolist() == [0.75, 0.25, 0.5, 1.0]
    assert result.document.tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="no entity was predicted"):
        entity_confidences([right], [Document.from_tokens(words, [["O"] * 5])])


@pytest.mark.slow
def test_the_script_measures_a_model(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    tagger = Tagger(max_iterations=10, n_folds=2)
    tagger.fit(list(read_documents(DEV, "conll"))).save(tmp_path / "m")
    command = [
        sys.executable,
        str(SCRIPT),
        "--quick",
        "--out",
        str(tmp_path),
    ]
    options = ["--model", str(tmp_path / "m"), "--test", f"{NEWS}:conll"]
    done = subprocess.run([*command, *options], cwd=ELSEWHERE, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "calibration.json").read_text())["results"]
    expected = ["chain", "links", "calibrated"]
    assert list(results["methods"]) == expected
    assert results["methods"]["links"]["entities"] > 50
    assert (tmp_path / "calibration.png").exists()
    assert (tmp_path / "calibration.md").read_text().count("\n| ") >= len(expected)


@pytest.mark.slow
def test_a_missing_corpus_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--out", str(tmp_path)]
    done = subprocess.run(
        [*command, "--test", "nowhere:conll"], cwd=ELSEWHERE, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 1
    assert done.stderr == "nowhere: no such file\n"
