"""Tables on the command line: options of columns, and file extensions that herdner cannot write."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from commands import Call, one_line

ROWS = "No;Letter;Pages\n007;Gideon Odera sailed to Kisumu.;2\n008;;3\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "letters.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.mark.parametrize("more", [[], ["-j", 2]])
def test_a_table_comes_out_with_its_rows_and_columns(call: Call, table: Path, more: list[object]) -> None:
    output = table.parent / "out.csv"
    asked = ["tag", table, "--column", "Letter", "--id-column", "No", "-o", output]
    assert call(*asked, *more).code == 0
    rows = list(csv.reader(output.open(encoding="utf-8", newline=""), delimiter=";"))
    assert [row[:-1] for row in rows] == list(csv.reader(ROWS.splitlines(), delimiter=";"))
    assert [entity["text"] for entity in json.loads(rows[1][-1])] == ["Gideon Odera", "Kisumu"]


@pytest.mark.slow
@pytest.mark.parametrize("command", [["tag", "-f", "jsonl"], ["names"], ["explain", "--json"], ["suggest"]])
def test_the_options_of_tables_are_those_of_all_commands(call: Call, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "t.csv").write_text("no:body\n007:Gideon Odera sailed to Kisumu.\n")
    asked = [*command, tmp_path / "t.csv", "--column", "body", "--id-column", "no", "--delimiter", ":"]
    outcome = call(*asked)
    assert (outcome.code, "Kisumu" in outcome.out or "007" in outcome.out) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "GOLD"],
        ["corpora", "convert", "GOLD"],
        ["evaluate", "GOLD", "--predictions", "GOLD"],
        ["evaluate", "GOLD", "--compare", "GOLD", "GOLD", "--resamples", 10],
        ["report", "GOLD", "--predictions", "GOLD", "--resamples", 10],
        [
            "train",
            "--train",
            "GOLD",
            "--dev",
            "GOLD",
            "--output",
            "a.model",
            "--lexicon",
            "none",
            "--iterations",
            2,
            "--link",
            "none",
        ],
    ],
)
def test_annotated_tables_are_read_with_the_same_options(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[object]
) -> None:
    """The output of `herdner tag letters.csv --column body` is an annotated table with the same columns."""
    monkeypatch.chdir(tmp_path)
    entities = json.dumps([{"start": 21, "end": 27, "label": "LOC"}]).replace('"', '""')
    (tmp_path / "gold.csv").write_text(
        "no:body:entities\n" + "".join(f'{n}:Gideon sails now to Kisumu.:"{entities}"\n' for n in range(4))
    )
    arguments = ["gold.csv" if each == "GOLD" else each for each in command]
    assert "no column 'text'" in call(*arguments).err
    outcome = call(*arguments, "--column", "body", "--id-column", "no", "--delimiter", ":")
    assert (outcome.code, "LOC" in outcome.out) == (0, True)


@pytest.mark.parametrize("delimiter", ["", "ab", "x", '"', " "])
def test_a_delimiter_that_cannot_separate_columns_is_refused(call: Call, table: Path, delimiter: str) -> None:
    assert "expected one character such as ;" in one_line(call("tag", table, "--delimiter", delimiter), 2)


@pytest.mark.slow
def test_tabs_are_delimiters_too(call: Call, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\ttext\n1\tKisumu, Kenya.\n")
    for word in ("tab", "\\t", "\t"):
        (record,) = call("tag", tmp_path / "t.csv", "--delimiter", word, "-f", "jsonl").out.splitlines()
        assert json.loads(record)["a"] == "1"


@pytest.mark.parametrize("command", ["tag", "names", "suggest", "pseudonymise"])
@pytest.mark.parametrize("name", ["out.xlsx", "out.rtf.gz", "out.json5"])
def test_outputs_with_unknown_extensions_are_refused(call: Call, table: Path, command: str, name: str) -> None:
    """Otherwise the file would have the content of a text file and the name of another format."""
    output = table.parent / name
    more = ["--map", table.parent / "map"] if command == "pseudonymise" else []
    message = one_line(call(command, table, "--column", "Letter", "-o", output, *more), 2)
    assert f"cannot write {name.removesuffix('.gz')[3:]} files" in message
    assert ("save a CSV file" in message) == (name == "out.xlsx")
    assert not output.exists()


def test_spreadsheets_are_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04\x14\x00")
    assert "save a table as CSV" in one_line(call("tag", tmp_path / "a.xlsx"), 1)
