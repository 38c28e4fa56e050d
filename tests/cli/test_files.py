"""Input and output files of `herdner tag`: folders, formats by file extension, errors, and lossless output."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path

import pytest
from commands import Call, one_line


@pytest.fixture(scope="module")
def model(news_model: Path) -> str:
    return str(news_model)


def records(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def put(folder: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_a_folder_by_file_extensions_and_by_pattern(call: Call, model: str, tmp_path: Path) -> None:
    put(
        tmp_path, a_md="In Kenya.", b__a_txt="In Uganda.", _git__a_txt="x", c_py="In Kenya.", d_py="", e_log="In Kenya."
    )
    outcome = call("tag", tmp_path, "-m", model)
    said = f"herdner: {tmp_path}: 3 files are ignored (2 .py, 1 .log); to read such files, add --pattern '*.py'\n"
    assert (outcome.code, outcome.err) == (0, said)
    assert outcome.out == "== a.md ==\nIn [Kenya LOC].\n\n== b/a.txt ==\nIn [Uganda LOC].\n"
    chosen = call("tag", tmp_path, "-m", model, "-f", "jsonl", "--pattern", "*.log", "--pattern", "b/*")
    assert ([record["id"] for record in records(chosen.out)], chosen.err) == (["b/a.txt", "e.log"], "")
    assert "no file in" in one_line(call("tag", tmp_path, "-m", model, "--pattern", "*.pdf"), 2)


def test_advice_names_no_extension_of_files_that_are_not_text(call: Call, model: str, tmp_path: Path) -> None:
    put(tmp_path, a_txt="In Kenya.", b_pdf="%PDF-1.4", c_jpg=b"\xff\xd8\xff", d_bin=b"\0\1")
    (tmp_path / "~$minutes.docx").write_bytes(b"lock file of Word")
    said = f"herdner: {tmp_path}: 3 files are ignored (1 .pdf, 1 .jpg, 1 .bin)"
    assert call("tag", tmp_path, "-m", model).err == f"{said}\n"
    put(tmp_path, e_log="In Uganda.")
    assert call("tag", tmp_path, "-m", model).err.endswith("; to read such files, add --pattern '*.log'\n")


def test_no_two_files_have_one_id(call: Call, model: str, tmp_path: Path) -> None:
    put(tmp_path, a__x_txt="In Kenya.", b__x_txt="In Uganda.")
    files = tmp_path / "a" / "x.txt", tmp_path / "b" / "x.txt"
    for given in (files, (tmp_path / "a", tmp_path / "b"), (tmp_path / "*" / "x.txt",)):
        outcome = call("tag", *given, "-m", model, "-f", "jsonl")
        assert [record["id"] for record in records(outcome.out)] == ["a/x.txt", "b/x.txt"], given
    twice = call("tag", files[0], files[0], "-m", model, "-f", "jsonl")
    assert [record["id"] for record in records(twice.out)] == ["x.txt"]
    assert "named more than once, but read only once" in one_line(twice, 0)


@pytest.mark.slow
def test_the_extension_of_the_output_chooses_its_format(call: Call, model: str, tmp_path: Path) -> None:
    put(tmp_path, a_txt="In Kenya.")
    heads = {"o.jsonl": b'{"id": "a.txt"', "o.csv": b"id,text,entities\n", "o.tsv": b"id\ttext\tentities\n"}
    heads |= {"o.html": b"<!DOC", "o.conll": b"In\tO\n", "o.md": b"In [Kenya", "o": b"In [Kenya"}
    for name, head in heads.items():
        assert call("tag", tmp_path / "a.txt", "-m", model, "-o", tmp_path / name).code == 0
        assert (tmp_path / name).read_bytes().startswith(head)
    call("tag", tmp_path / "a.txt", "-m", model, "-o", tmp_path / "o.jsonl.gz")
    assert gzip.decompress((tmp_path / "o.jsonl.gz").read_bytes()) == (tmp_path / "o.jsonl").read_bytes()
    assert call("tag", tmp_path / "a.txt", "-m", model, "-f", "conll", "-o", tmp_path / "o.jsonl").code == 0
    assert (tmp_path / "o.jsonl").read_bytes().startswith(b"In\tO\n")


def test_a_table_keeps_its_columns(call: Call, model: str, tmp_path: Path) -> None:
    put(tmp_path, a_csv='no,body,id\n007,"In Kenya.\nThe ""end"", in Uganda.",x\n,,y\n')
    outcome = call("tag", tmp_path / "a.csv", "--column", "body", "-m", model, "-f", "csv")
    first, second = csv.DictReader(io.StringIO(outcome.out))
    assert (first["id"], first["no"], first["body"]) == ("x", "007", 'In Kenya.\nThe "end", in Uganda.')
    assert [entity["text"] for entity in json.loads(first["entities"])] == ["Kenya", "Uganda"]
    assert (second["id"], second["entities"]) == ("y", "[]")
    assert "by --column" in one_line(call("tag", tmp_path / "a.csv", "-m", model), 1)


def test_json_lines_lose_nothing(call: Call, model: str, tmp_path: Path) -> None:
    given = [
        {"id": 7, "text": "In Kenya.", "meta": {"a": [1]}, "label": None},
        {"id": "b", "tokens": ["In", "Kenya", "."]},
    ]
    put(tmp_path, a_jsonl="".join(json.dumps(record) + "\n" for record in given))
    kept = records(call("tag", tmp_path / "a.jsonl", "-m", model, "-f", "jsonl").out)
    for before, after in zip(given, kept, strict=True):
        assert after | before == after
        assert [entity["text"] for entity in after["entities"]] == ["Kenya"]


# --- errors


GOOD = "In Kenya.\n\n"


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv"])
def test_errors_are_skipped_replaced_or_fatal(
    call: Call, model: str, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad = {
        "a.txt": b"In K\xf6ln.",
        "a.jsonl": b'{"text": "In K\xf6ln."}\n{"text": "In Uganda."}\n',
        "a.csv": b"text\nIn K\xf6ln.\n",
    }[name]
    (tmp_path / name).write_bytes(bad)
    put(tmp_path, good_txt=GOOD)
    output = tmp_path / "out.jsonl"
    arguments = ["tag", tmp_path / name, tmp_path / "good.txt", "-m", model, "-o", output]
    assert "byte 0xf6" in one_line(call(*arguments, "--errors", "fail"), 1)
    assert not output.exists()
    assert "byte 0xf6" in one_line(call(*arguments, "--errors", "skip"), 1)
    skipped = [record["text"] for record in records(output.read_text())]
    assert skipped == (["In Uganda.", GOOD] if name == "a.jsonl" else [GOOD])
    assert call(*arguments, "--errors", "replace").code == 0
    assert "U+FFFD" in caplog.text
    replaced = [record["text"] for record in records(output.read_text(encoding="utf-8"))]
    assert (replaced[0], replaced[-1]) == ("In K\ufffdln.", GOOD)


def test_a_truncated_file_is_skipped_or_read_up_to_its_end(call: Call, model: str, tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "In Kenya."}\n' * 3, mtime=0)[:-4])
    put(tmp_path, good_txt=GOOD)
    output = tmp_path / "out.jsonl"
    arguments = ["tag", tmp_path / "cut.jsonl.gz", tmp_path / "good.txt", "-m", model, "-o", output]
    assert "nothing is written (see --errors)" in one_line(call(*arguments), 1)
    assert not output.exists()
    assert "damaged gzip file" in one_line(call(*arguments, "--errors", "skip"), 1)
    assert len(records(output.read_text())) == 4
    assert "'ignore' is not one of 'skip', 'replace', 'fail'" in one_line(call(*arguments, "--errors", "ignore"), 2)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.pdf", "a.csv"])
def test_a_pdf_is_refused_by_name(call: Call, model: str, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + bytes(range(256)) * 40)
    assert f"{name}: the file is a PDF" in one_line(call("tag", tmp_path / name, "-m", model), 1)


# --- confidence and offsets


def test_an_empty_file_name_is_a_usage_error(call: Call) -> None:
    assert "FILE is an empty string" in one_line(call("tag", ""), 2)


def test_json_that_is_read_as_text_says_so(call: Call, model: str, tmp_path: Path) -> None:
    put(tmp_path, tasks_json='[{"data": {"text": "In Kenya."}}]')
    outcome = call("tag", tmp_path / "tasks.json", "-m", model)
    assert (outcome.code, "is read as text; to read annotations" in outcome.err) == (0, True)
    assert "to read an array of objects, write one object on each line" in outcome.err
    assert call("tag", tmp_path / "tasks.json", "-m", model, "-i", "label-studio").err == ""
    put(tmp_path, a_xml="<p>In Kenya.</p>")
    assert "is read as text with its tags" in call("tag", tmp_path / "a.xml", "-m", model).err


def test_names_below_a_confidence_are_left_out(call: Call, model: str, tmp_path: Path) -> None:
    put(tmp_path, a_txt="Ada Lovelace met Kibo in Kenya. Ostrava said no. " * 5)
    all_ = records(call("tag", tmp_path / "a.txt", "-m", model, "-f", "jsonl").out)[0]["entities"]
    confidences = sorted(entity["confidence"] for entity in all_)
    least = confidences[len(confidences) // 2]
    asked = ["tag", tmp_path / "a.txt", "-m", model, "-f", "jsonl", "--min-confidence"]
    kept = records(call(*asked, least - 1e-6, "--min-confidence-of", "mention").out)
    assert kept[0]["entities"] == [entity for entity in all_ if entity["confidence"] >= least]
    assert 0 < len(kept[0]["entities"]) < len(all_)
    names = records(call(*asked, least).out)
    counts = Counter(entity["name_id"] for entity in all_)
    assert all(count == counts[id] for id, count in Counter(e["name_id"] for e in names[0]["entities"]).items())
    assert "--min-confidence" in one_line(call("tag", tmp_path / "a.txt", "-m", model, "--min-confidence", 1.5), 2)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.html"])
def test_text_of_both_directions_keeps_its_offsets(call: Call, model: str, tmp_path: Path, name: str) -> None:
    text = (
        "\u200f\u05d0\u05ea\u05de\u05d5\u05dc John Smith \u05d1. "
        "\u202b\u0642\u0627\u0644 Peter Jones\u202c \u0641\u064a Kenya \U0001f600 . "
        "Zoe\u0308 is in Kenya."
    )
    content = {
        "a.txt": text,
        "a.jsonl": json.dumps({"text": text}),
        "a.csv": f"text\n{text}\n",
        "a.html": f"<p dir=rtl>{text}</p>",
    }[name]
    if name == "a.html":
        pytest.importorskip("turbohtml")
    (tmp_path / name).write_text(content, encoding="utf-8")
    (record,) = records(call("tag", tmp_path / name, "-m", model, "-f", "jsonl").out)
    assert record["text"] == text
    assert record["entities"]
    for entity in record["entities"]:
        assert text[entity["start"] : entity["end"]] == entity["text"]
        if name == "a.html":
            assert content[entity["source_start"] : entity["source_end"]] == entity["text"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("Ada Lovelace met Charles Babbage.", "no such file; pipe the text to the command instead"),
        ("Ada met Bob. She left", "no such file; pipe the text to the command instead"),
        ("Ada met Bob. " * 30, "no such file; pipe the text to the command instead"),
        ("https://example.org/a.txt", "addresses are read only by `herdner tag --cluster`; download the file first"),
        ("s3://bucket/a.txt", "addresses are read only by `herdner tag --cluster`; download the file first"),
    ],
)
def test_a_text_or_an_address_in_place_of_a_file_gets_advice(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("tag", "names", "suggest"):
        assert message in one_line(call(command, argument), 2)
    (tmp_path / "minutes of the meeting").write_text("In Kenya.")
    assert call("tag", "minutes of the meeting").code == 0


def test_patterns_and_paths_with_spaces_are_no_texts(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "My field notes 2020").mkdir()
    (tmp_path / "My field notes 2020" / "a.txt").write_text("In Kenya.")
    assert call("tag", "My field notes 2020/*").code == 0
    assert call("tag", "My field notes *").code == 1  # a folder that matches a pattern is not read
    assert "pipe the text" not in one_line(call("tag", "My field notes 2020/minutes"), 1)
