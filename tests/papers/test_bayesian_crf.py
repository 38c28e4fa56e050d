"""The script of the Bayesian CRF: its scores on marginals that are known, and a quick run."""

from __future__ import annotations

import bayesian_crf
import numpy as np
import pytest
from bayesian_crf import Data, score

from herdner import Document

TAGS = ("O", "S-PER", "S-LOC")


def test_scores_are_those_computed_by_hand() -> None:
    document = Document.from_tokens([["Ada", "saw", "Oslo", "."]])
    states = np.array([1, 0, 2, 0], np.int32)
    marginals = np.array([[0.1, 0.8, 0.1], [0.9, 0.05, 0.05], [0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    found = score([marginals], Data([document], [marginals], [states]), TAGS)
    assert found.f1 == pytest.approx(2 * 1 / (2 + 2))
    assert found.log_loss == pytest.approx(-np.log([0.8, 0.9, 0.3, 1.0]).mean())
    # Bins of 0.8, of 0.9 and 1.0, and of 0.5, which is wrong.
    assert found.calibration_error == pytest.approx((0.2 + 0.1 + 0.5) / 4)


def test_a_quick_run_compares_both(capsys) -> None:
    bayesian_crf.main(quick=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["F1", "log", "loss", "calibration", "error"]
    rows = {line[:16].strip(): list(map(float, line[16:].split())) for line in lines[1:]}
    assert list(rows) == ["point estimate", "posterior mean"]
    for f1, log_loss, error in rows.values():
        assert 0 < f1 <= 1
        assert 0 < log_loss < 1
        assert 0 <= error < 0.2
    assert rows["point estimate"][1] != rows["posterior mean"][1]
