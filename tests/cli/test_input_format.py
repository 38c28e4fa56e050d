"""FILE:FORMAT and --input mean the same in every command that reads documents."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import Call, one_line

LINE = json.dumps({"text": "In Kenya.", "entities": [{"start": 3, "end": 8, "label": "LOC"}]}) + "\n"
READERS = {
    "tag": ["--format", "jsonl"], "names": ["--format", "json"], "suggest": ["--format", "jsonl"],
    "explain": ["--json"], "pseudonymise": ["--map", "MAP"],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.any").write_text(json.dumps({"text": "In Kenya."}) + "\n")
    (tmp_path / "gold.any").write_text(LINE)
    return tmp_path


@pytest.mark.parametrize("name", list(READERS))
def test_both_forms_read_the_same(call: Call, news_model: Path, folder: Path, name: str) -> None:
    arguments = [*READERS[name], "-m", news_model]
    colon, option, text = (
        call(name, *files, *[f"{i}.json" if each == "MAP" else each for each in arguments])
        for i, files in enumerate((["a.any:jsonl"], ["a.any", "--input", "jsonl"], ["a.any"]))
    )
    assert colon == option
    assert colon.code == 0
    assert text.out != colon.out


def test_restore_has_both_forms(call: Call, news_model: Path, folder: Path) -> None:
    made = call("pseudonymise", "gold.any:jsonl", "-m", news_model, "--map", "m.json", "-o", "out.any", "-f", "jsonl")
    assert made.code == 0
    assert "Kenya" not in (folder / "out.any").read_text()
    colon, option, text = (
        call("restore", *files, "--map", "m.json")
        for files in (["out.any:jsonl"], ["out.any", "--input", "jsonl"], ["out.any"])
    )
    assert colon == option
    assert json.loads(option.out)["text"] == "In Kenya."
    assert text.out != option.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "GOLD", "-m", "MODEL", "--resamples", "0", "--json"],
        ["evaluate", "GOLD", "--predictions", "GOLD", "--resamples", "0", "--json"],
        ["report", "GOLD", "--predictions", "GOLD", "--format", "json", "--resamples", "10"],
        ["corpora", "convert", "GOLD"],
    ],
)
def test_annotated_files_have_both_forms(call: Call, news_model: Path, folder: Path, arguments: list[str]) -> None:
    arguments = [str(news_model) if each == "MODEL" else each for each in arguments]
    outputs = [
        call(*[gold if each == "GOLD" else each for each in arguments], *more)
        for gold, more in (("gold.any:jsonl", []), ("gold.any", ["--input", "jsonl"]))
    ]
    assert [outcome.code for outcome in outputs] == [0, 0]
    plain = [re.sub(r"gold.any(:jsonl)?|[\d.]+ tokens per second", "", outcome.out) for outcome in outputs]
    assert plain[0] == plain[1] != ""


def test_the_format_of_a_file_precedes_the_option(call: Call, news_model: Path, folder: Path) -> None:
    (folder / "b.log").write_text("In Kenya.")
    both = call("tag", "a.any:jsonl", "b.log", "-i", "text", "-m", news_model, "-f", "jsonl")
    assert [json.loads(line)["text"] for line in both.out.splitlines()] == ["In Kenya.", "In Kenya."]


def test_colons_in_names_and_unknown_formats(call: Call, news_model: Path, folder: Path) -> None:
    (folder / "a.any:jsonl").write_text("In Uganda.")
    (folder / "a.any").unlink()
    assert "Uganda" in call("tag", "a.any:jsonl", "-m", news_model).out
    message = one_line(call("tag", "gold.any:jsnl", "-m", news_model), 2)
    assert "unknown format 'jsnl' (did you mean jsonl?)" in message
    for arguments in (["evaluate", "gold.any"], ["tag", "gold.any"], ["corpora", "convert", "gold.any"]):
        assert "--input 'x': unknown format" in one_line(call(*arguments, "--input", "x"), 2)


def test_a_folder_with_a_format(call: Call, news_model: Path, folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "x.jsonl").write_text(LINE)
    (folder / "in" / "y.txt").write_text("In Uganda.")
    assert "Uganda" not in call("tag", "in:jsonl", "-m", news_model).out
