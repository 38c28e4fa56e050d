"""The scripts about blocks of whole documents: certificates, and herded blocks."""

from __future__ import annotations

import json
from pathlib import Path

import block_certificates
import herded_blocks
import numpy as np
import pytest

CORPORA = Path(__file__).parents[2] / "corpora"
SPORTS, NEWS = (f"{CORPORA / name}.conll:conll" for name in ("herdner_sports", "herdner_news.dev"))


@pytest.mark.slow
def test_certificates_of_linked_mentions(tmp_path) -> None:
    block_certificates.main(test=SPORTS, sweeps=20, optimised=True, quick=True, out=tmp_path)
    rows = json.loads((tmp_path / "block_certificates.json").read_text())["results"]["rows"]
    assert 0 < rows["systematic"]["mentions"] <= rows["optimised"]["mentions"] < 1
    assert rows["single tags"]["mentions"] == 0, "forbidden tags leave single tags without a certificate"
    assert rows["sum-product, linked tokens"]["mean"] < rows["systematic"]["mean"]


@pytest.mark.slow
def test_herded_blocks(tmp_path) -> None:
    herded_blocks.main(test=NEWS, documents=3, runs=1, quick=True, out=tmp_path)
    found = json.loads((tmp_path / "herded_blocks.json").read_text())["results"]
    assert set(found["errors"]) == set(herded_blocks.METHODS)
    drawn, herded = (np.mean(found["errors"][name], axis=0) for name in herded_blocks.METHODS)
    assert max(*drawn, *herded) < 0.2
    assert herded[-1] < drawn[-1]
    assert np.shape(found["equal time"]) == (3, 3)
