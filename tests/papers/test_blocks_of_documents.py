"""The scripts about blocks of whole documents: certificates, and herded blocks."""

from __future__ import annotations

import json
from pathlib import Path

import block_certificates
import herded_blocks
import numpy as np
import pytest

SPORTS = f"{Path(__file__).parents[2] / 'corpora' / 'herdner_sports.conll'}:conll"


@pytest.mark.slow
def test_certificates_of_linked_mentions(tmp_path) -> None:
    block_certificates.main(test=SPORTS, sweeps=20, optimised=True, quick=True, out=tmp_path)
    rows = json.loads((tmp_path / "block_certificates.json").read_text())["results"]["rows"]
    assert 0 < rows["systematic"]["mentions"] <= rows["optimised"]["mentions"] < 1
    assert rows["single tags"]["mentions"] == 0, "forbidden tags leave single tags without a certificate"
    assert rows["sum-product, linked tokens"]["mean"] < rows["systematic"]["mean"]


@pytest.mark.slow
def test_herded_blocks(tmp_path) -> None:
    herded_blocks.main(test=SPORTS, documents=2, runs=1, quick=True, out=tmp_path)
    found = json.loads((tmp_path / "herded_blocks.json").read_text())["results"]
    assert set(found["errors"]) == set(herded_blocks.METHODS)
    assert max(max(errors) for errors in found["errors"].values()) < 0.2


def test_herded_draws_come_as_often_as_they_should() -> None:
    draw, p = herded_blocks.herded_draw(np.random.default_rng(1)), np.array([0.5, 0.0, 0.3, 0.2])
    counts = np.bincount([draw((0,), p) for _ in range(1000)], minlength=4)
    assert np.abs(counts - 1000 * p).max() <= 2
    assert counts[1] == 0
