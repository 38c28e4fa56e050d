"""`herdner names`: tables of a corpus, and one line for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Call, one_line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("Ana Rivera met Bo Lim in London. Ana Rivera left.")
    (tmp_path / "b.txt").write_text("Ana Rivera wrote to London.")
    return tmp_path


def test_names_of_two_files(call: Call, folder: Path) -> None:
    assert call("names", "a.txt", "b.txt", "-o", "n.json").code == 0
    rows = json.loads((folder / "n.json").read_text())
    assert {(row["name"], row["mentions"], row["documents"], row["first_document"]) for row in rows} == {
        ("Ana Rivera", 3, 2, "a.txt"), ("London", 2, 2, "a.txt"), ("Bo Lim", 1, 1, "a.txt"),
    }  # fmt: skip
    assert call("names", "a.txt", "b.txt", "-n", "1", "-f", "csv").out.splitlines()[1].startswith("Ana Rivera,PER,3,2")
    assert len(call("names", "a.txt", "b.txt", "--min-mentions", "2").out.splitlines()) == 3
    assert "<td" in call("names", "a.txt", "-f", "html").out


def test_bad_input_is_one_line(call: Call, folder: Path) -> None:
    assert "none.txt" in one_line(call("names", "none.txt"), 1)
    assert "pdf" in one_line(call("names", "a.txt", "-f", "pdf"), 2)
    assert "is also an input" in one_line(call("names", "a.txt", "-o", "a.txt"), 2)
