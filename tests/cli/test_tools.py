"""Files of annotation tools on the command line: writing them, training and scoring on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Call, one_line

from herdner import read_documents

TEXT = "Ada Lovelace, an analyst, wrote to Charles Babbage, an engineer. Babbage wrote back from London.\n"


@pytest.fixture(scope="module")
def model(news_model: Path) -> str:
    return str(news_model)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["label-studio", "doccano", "prodigy", "brat"])
def test_tagged_for_a_tool_and_read_back(call: Call, model: str, tmp_path: Path, format: str) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    out = tmp_path / "tasks"
    assert call("tag", tmp_path / "a.txt", "-m", model, "-f", format, "-o", out).code == 0
    (plain,) = [json.loads(call("tag", tmp_path / "a.txt", "-m", model, "-f", "jsonl").out)]
    back = call("corpora", "convert", f"{out}:{format}", "--format", "jsonl")
    found = json.loads(back.out)
    places = [(e["start"], e["end"], e["label"]) for e in found["entities"]]
    assert places == [(e["start"], e["end"], e["label"]) for e in plain["entities"]]
    assert len(places) >= 3
    assert found["text"] == TEXT


@pytest.mark.slow
def test_training_and_scoring_leave_out_unannotated_documents(call: Call, tmp_path: Path) -> None:
    job = TEXT.index("analyst")
    done = {"id": 1, "text": TEXT, "label": [[0, 12, "PER"], [job, job + 7, "Job title"]]}
    lines = [done, {"id": 2, "text": "Rain in Wales."}, {**done, "id": 3}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    source, out = f"{tmp_path / 'a.jsonl'}:doccano", tmp_path / "m"
    trained = call("train", "--train", source, "-o", out, "--lexicon", "none", "--min-freq", "1", "--link", "none")
    assert trained.code == 0
    assert "1 of 3 documents are not annotated and are left out (first: 2)" in trained.err
    scores = json.loads(call("evaluate", source, "-m", out, "--json").out)
    assert {each["label"]: each["recall"] for each in scores["per_label"]} == {"Job title": 1.0, "PER": 1.0}
    (tmp_path / "b.jsonl").write_text(json.dumps({"id": 2, "text": "Rain."}))
    assert "has no annotation" in one_line(call("evaluate", f"{tmp_path / 'b.jsonl'}:doccano", "-m", out), 1)


@pytest.mark.parametrize(
    ("record", "advice"),
    [
        ({"text": "Ada met", "label": [[0, 3, "PER"]]}, "if its key 'label' is one, read it as FILE:doccano"),
        ({"text": "Ada met", "spans": [{"start": 0, "end": 3, "label": "PER"}]}, "read it as FILE:prodigy"),
        ({"tokens": ["Ada", "met"], "ner_tags": [1, 0]}, "write the tokens and the names of their tags as columns"),
        ({"text": "Ada met", "label": "positive"}, "has no annotation; use an annotated file"),
    ],
)
def test_a_file_without_annotation_gets_advice_for_the_format_of_its_keys(
    call: Call, tmp_path: Path, record: dict, advice: str
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    assert advice in one_line(call("train", "--train", tmp_path / "a.jsonl", "-o", tmp_path / "m"), 1)


@pytest.mark.parametrize("format", ["label-studio", "prodigy"])
def test_converted_documents_are_annotated(call: Call, tmp_path: Path, format: str) -> None:
    gold = tmp_path / "gold.jsonl"
    marks = [{"start": 0, "end": 3, "label": "PER"}]
    gold.write_text(
        "\n".join(json.dumps(each) for each in [{"id": "a", "text": "Ada.", "entities": marks}, {"text": "Bo."}])
    )
    out = tmp_path / "out.json"
    assert call("corpora", "convert", f"{gold}:jsonl", "--format", format, "-o", out).code == 0
    first, second = read_documents(out, format)
    assert ([e.label for e in first.entities], first.tags) == (["PER"], [])
    assert second.tags is None


def test_a_wrong_file_writes_nothing(call: Call, model: str, tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text('[{"data": {"text": "Ada"')
    out = tmp_path / "out.jsonl"
    failed = call("tag", tmp_path / "half.json", "-i", "label-studio", "-m", model, "-f", "doccano", "-o", out)
    assert "half.json: not JSON" in one_line(failed, 1)
    assert not out.exists()


def test_suggestions_are_written_in_a_tools_format_without_annotated_documents(
    call: Call, model: str, tmp_path: Path
) -> None:
    texts = ["Rain.", TEXT, "Ms Okoth met Mr Lim of Winam Ferries in Oslo."]
    lines = [{"id": i, "text": text} for i, text in enumerate(texts)] + [
        {"id": 9, "text": "Ada.", "label": [[0, 3, "PER"]]}
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    asked = ["suggest", tmp_path / "a.jsonl", "-i", "doccano", "-m", model]
    shown = call(*asked)
    rows = [line.split("\t") for line in shown.out.splitlines()]
    assert sorted(row[1] for row in rows) == ["0", "1", "2"]
    assert rows[-1][1] == "0"
    assert "documents that are already annotated are left out: 1" in shown.err
    tasks = json.loads(call(*asked, "-f", "label-studio", "-n", "2").out)
    assert [task["data"]["id"] for task in tasks] == [row[1] for row in rows[:2]]
    assert tasks[0]["data"]["suggested"]["rank"] == 1
    assert tasks[0]["predictions"][0]["result"]
    assert "expected one of" in one_line(call(*asked, "-f", "excel"), 2)
