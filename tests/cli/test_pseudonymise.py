"""`herdner pseudonymise` and `herdner restore`: files, folders, maps, reports, and one line for bad input."""

from __future__ import annotations

import json
import stat
from importlib import import_module
from pathlib import Path

import pytest
from commands import Call, one_line

command = import_module("herdner.cli.pseudonymise")  # the package has a function of this name

TEXT = (
    "Ana Rivera met Bo Lim of Winam Ferries Ltd. in London.\r\n"
    "Ana Rivera (ana@x.org) left London. Person 7 may call +44 20 7031 3000 at the Bank of Oslo, a bank"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(command.KEY_VARIABLE, raising=False)
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    (tmp_path / "b.txt").write_text("Bo Lim wrote to Ana Rivera.", encoding="utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("style", ["numbered", "hash", "realistic"])
def test_files_are_restored_exactly(call: Call, folder: Path, style: str) -> None:
    (folder / "key").write_text("a secret key of many bytes\n")
    made = call(
        "pseudonymise", "a.txt", "b.txt", "--map", "m.json", "--style", style, "--key-file", "key", "-o", "out/"
    )
    assert made.code == 0
    assert stat.S_IMODE((folder / "m.json").stat().st_mode) == 0o600
    written = (folder / "out" / "a.txt").read_text() + (folder / "out" / "b.txt").read_text()
    for word in ("Rivera", "Lim", "Winam", "x.org", "7031", "Oslo"):
        assert word not in written
    assert call("restore", "out", "--map", "m.json", "-o", "back/").code == 0
    for name in ("a.txt", "b.txt"):
        assert (folder / "back" / name).read_bytes() == (folder / name).read_bytes()


def test_pseudonyms_agree_across_documents_and_runs(call: Call, folder: Path) -> None:
    first = call("pseudonymise", "a.txt", "--map", "m.json")
    second = call("pseudonymise", "b.txt", "--map", "m.json")
    assert first.out.startswith("Person 1 met Person 2 of Organisation 1 in Place 1.")
    assert second.out == "Person 2 wrote to Person 1."


def test_standoff_report_and_message(call: Call, folder: Path) -> None:
    made = call("pseudonymise", "a.txt", "--map", "m.json", "--standoff", "s.jsonl", "--report", "r.jsonl")
    record = json.loads((folder / "s.jsonl").read_text())
    assert record["id"] == "a.txt"
    for each in record["replacements"]:
        assert made.out[each["start"] : each["end"]] == each["pseudonym"]
    first = record["replacements"][0]
    assert TEXT[first["source_start"] : first["source_end"]] == "Ana Rivera"
    assert "Rivera" not in (folder / "s.jsonl").read_text()
    (report,) = map(json.loads, (folder / "r.jsonl").read_text().splitlines() or ["{}"])
    assert set(report) <= {"id", "words"}
    assert call("restore", "a.txt", "--map", "m.json", "--standoff", "s.jsonl").code == 1  # Person 7 is not in the map
    call("pseudonymise", "b.txt", "--map", "other.json")
    assert "set --map to the file of the map" in one_line(
        call("restore", "a.txt", "--map", "other.json", "--standoff", "s.jsonl"), 1
    )
    assert "has written" in one_line(call("restore", "a.txt", "--map", "m.json", "--standoff", "a.txt"), 1)


def test_json_lines_have_entities_that_are_moved_back(call: Call, folder: Path) -> None:
    assert call("pseudonymise", "a.txt", "--map", "m.json", "-o", "out.jsonl").code == 0
    record = json.loads((folder / "out.jsonl").read_text())
    assert [record["text"][e["start"] : e["end"]] for e in record["entities"]] == [
        e["text"] for e in record["entities"]
    ]
    restored = call("restore", "out.jsonl", "--map", "m.json")
    back = json.loads(restored.out)
    assert back["text"] == TEXT
    assert [TEXT[e["start"] : e["end"]] for e in back["entities"]] == [e["text"] for e in back["entities"]]


def test_edited_texts_are_restored(call: Call, folder: Path) -> None:
    call("pseudonymise", "a.txt", "--map", "m.json")
    edited = b"**Person 1**'s friend, Person\n2 (PERSON 1; the person 2s), not Person 12."
    restored = call("restore", "--map", "m.json", stdin=edited)
    assert restored.out == "**Ana Rivera**'s friend, Bo\nLim (Ana Rivera; the Bo Lims), not Person 12."
    assert "Person 12: not in the map" in one_line(restored, 1)


def test_blank_files_and_a_new_folder_as_output(call: Call, folder: Path) -> None:
    (folder / "in" / "sub").mkdir(parents=True)
    files = {"a.txt": TEXT, "empty.txt": "", "sub/blank.txt": "\n \n", "sub/b.txt": "Bo Lim"}
    for name, text in files.items():
        (folder / "in" / name).write_bytes(text.encode())
    assert call("pseudonymise", "in", "--map", "m.json", "-o", "new").code == 0
    assert (folder / "new" / "empty.txt").read_bytes() == b""
    assert call("restore", "new", "--map", "m.json", "-o", "back").code == 0
    for name, text in files.items():
        assert (folder / "back" / name).read_bytes() == text.encode()
    assert call("pseudonymise", "in", "--map", "m.json", "-o", "all.txt").code == 0
    assert (folder / "all.txt").is_file()


def test_rows_of_a_table_stay_apart(call: Call, folder: Path) -> None:
    texts = ["Bo Lim\nmet Ana Rivera.", "Ana Rivera left."]
    (folder / "t.csv").write_text('text\n"{}"\n"{}"\n'.format(*texts))
    made = call("pseudonymise", "t.csv", "--map", "m.json")
    assert [json.loads(line)["text"] for line in made.out.splitlines()] == [
        "Person 1\nmet Person 2.", "Person 2 left.",
    ]  # fmt: skip
    for arguments in (["--format", "text"], ["-o", "t.txt"]):
        message = one_line(call("pseudonymise", "t.csv", "--map", "m.json", *arguments), 2)
        assert "t.csv: a text file as output cannot separate the documents of this input" in message


def test_text_without_pseudonyms_is_unchanged(call: Call, folder: Path) -> None:
    call("pseudonymise", "a.txt", "--map", "m.json")
    restored = call("restore", "b.txt", "--map", "m.json")
    assert restored.out == (folder / "b.txt").read_text()
    assert "contains no pseudonym of the map" in one_line(restored, 0)


@pytest.mark.slow
def test_recall_and_identifiers(call: Call, folder: Path) -> None:
    plain = call("pseudonymise", "a.txt", "--map", "m.json", "--no-identifiers").out
    assert "ana@x.org" not in plain  # "ana" is a word of a replaced name
    assert "7031 3000" in plain
    counts = {}
    for option in ((), ("--recall",)):
        call("pseudonymise", "a.txt", "--map", f"m{len(option)}.json", "--standoff", "s.jsonl", *option)
        counts[option] = len(json.loads((folder / "s.jsonl").read_text())["replacements"])
    assert counts["--recall",] >= counts[()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["a.txt"], 2, "--map"),
        (["a.txt", "--map", "a.txt"], 2, "is also an input"),
        (["a.txt", "--map", "m.json", "-o", "a.txt"], 2, "is also an input"),
        (["a.txt", "--map", "m.json", "-o", "b.txt", "--report", "./b.txt"], 2, "--report names the same file"),
        (["a.txt", "--map", "no/m.json"], 2, "--map no/m.json"),
        (["a.txt", "--map", "m.json", "--style", "hash"], 2, "HERDNER_KEY"),
        (["a.txt", "--map", "m.json", "--style", "hash", "--key-file", "b.txt"], 1, ""),
        (["a.txt", "--map", "m.json", "--style", "loud"], 2, "loud"),
        (["a.txt", "--map", "b.json"], 1, "b.json: "),
        (["none.txt", "--map", "m.json"], 1, "none.txt"),
        (["x.jsonl", "--map", "m.json", "-o", "out/"], 2, "an output folder requires text files as inputs"),
    ],
)
def test_bad_input_is_one_line(call: Call, folder: Path, arguments: list[str], code: int, message: str) -> None:
    (folder / "b.txt").write_text("short")
    (folder / "b.json").write_text("{}")
    (folder / "x.jsonl").write_text('{"text": "Ana"}\n')
    assert message in one_line(call("pseudonymise", *arguments), code)
    assert (folder / "a.txt").read_bytes() == TEXT.encode()


def test_map_is_saved_before_the_output_appears(call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = []
    write = command.write_all

    def interrupted(*arguments: object) -> None:
        write(*arguments)
        raise OSError(28, "No space left on device", "out.txt")

    monkeypatch.setattr(command, "write_all", interrupted)
    one_line(call("pseudonymise", "b.txt", "--map", "m.json", "-o", "out.txt"), 1)
    saved = json.loads((folder / "m.json").read_text())["names"]
    assert [name["text"] for name in saved] == ["Bo Lim", "Ana Rivera"]
    assert not (folder / "out.txt").exists()


def test_markdown_keeps_its_markup(call: Call, folder: Path) -> None:
    (folder / "n.md").write_text("# Notes\n\n**Ana Rivera** met *Bo Lim*.\n")
    made = call("pseudonymise", "n.md", "--map", "m.json", "-o", "out/")
    assert made.code == 0
    assert (folder / "out" / "n.md").read_text() == "# Notes\n\n**Person 1** met *Person 2*.\n"
    assert call("restore", "out/n.md", "--map", "m.json").out == (folder / "n.md").read_text()


def test_a_folder_as_output_never_overwrites_the_inputs(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("Ana Rivera met Bo Lim.")
    for command in (["pseudonymise"], ["restore"]):
        if command == ["restore"]:
            assert call("pseudonymise", folder, "--map", tmp_path / "map.json", "-o", tmp_path / "new").code == 0
        for arguments in ([folder, "-o", folder], [folder / "a.txt", "-o", f"{folder}/"]):
            message = one_line(call(*command, *arguments, "--map", tmp_path / "map.json"), 2)
            assert f"the file {folder / 'a.txt'} is also an input; name another folder" in message
            assert (folder / "a.txt").read_text() == "Ana Rivera met Bo Lim."
