"""`herdner names`: tables of a corpus, and one line for bad input."""

from __future__ import annotations

import gzip
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["names"], ["pseudonymise", "--map", "map.json"], ["suggest"], ["explain"], ["tag"]],
    ids=lambda command: command[0],
)
def test_all_commands_that_read_texts_have_the_option_errors(call: Call, folder: Path, command: list[str]) -> None:
    (folder / "bad.txt").write_bytes(b"Ana Rivera met Bo in K\xf6ln.")
    arguments = [*command, "bad.txt", "a.txt"]
    assert "byte 0xf6" in one_line(call(*arguments, "--errors", "fail"), 1)
    skipped = call(*arguments, "--errors", "skip")
    assert "byte 0xf6" in one_line(skipped, 1)
    assert skipped.out
    replaced = call(*arguments, "--errors", "replace")
    assert replaced.code == 0
    assert len(replaced.out.splitlines()) >= len(skipped.out.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("command", [["names"], ["pseudonymise", "--map", "map.json"], ["suggest"]])
def test_a_truncated_file_prevents_the_output(call: Call, folder: Path, command: list[str]) -> None:
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "Ana Rivera left."}\n' * 3, mtime=0)[:-4])
    arguments = [*command, "cut.jsonl.gz", "-o", "out.txt" if command == ["names"] else "out.jsonl"]
    assert "nothing is written (see --errors)" in one_line(call(*arguments), 1)
    assert not list(folder.glob("out.*"))
    assert "damaged gzip file" in one_line(call(*arguments, "--errors", "skip"), 1)
    assert list(folder.glob("out.*"))
