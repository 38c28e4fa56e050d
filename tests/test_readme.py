"""The README's Python examples run as they stand."""

from __future__ import annotations

import re

import pytest
from data import REPOSITORY

BLOCKS = re.findall(r"^```python\n(.*?)^```$", (REPOSITORY / "README.md").read_text(encoding="utf-8"), re.M | re.S)


def test_there_are_examples() -> None:
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1][:40])
def test_example_runs(block: str, capsys, tmp_path, monkeypatch) -> None:
    if "train.conll" in block:
        pytest.skip("needs a corpus of the reader's own")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out
