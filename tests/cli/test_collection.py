"""``herdner tag --collection``: two passes over all input files."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Call, one_line

import herdner
from herdner import Tagger
from herdner.text.io.write import entity_records

TEXTS = {
    "a.txt": "Ada Reyes met Bo Lim in Lima. Reyes left with Lim, who works at the Bank of Peru.",
    "b.txt": "Odero and Winam Ferries will meet in Kisumu, Akinyi said. Odero is glad.",
    "c.txt": "off to Odero with Akinyi",
    "d.txt": "Lim of the Bank of Peru left Odero.",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def records(output: str) -> dict[str, list]:
    return {each["id"]: each["entities"] for each in map(json.loads, output.splitlines())}


def test_files_are_tagged_as_by_pipe_in_any_order(call: Call, news_model: Path, folder: Path) -> None:
    tagger = herdner.load(news_model)
    documents = tagger.pipe(TEXTS.values(), collection=True)
    expected = {name: entity_records(document) for name, document in zip(TEXTS, documents, strict=True)}
    arguments = ["tag", "-m", news_model, "-f", "jsonl", "--collection"]
    result = call(*arguments, *TEXTS)
    assert (result.code, result.err) == (0, "")
    assert records(result.out) == expected
    assert records(call(*arguments, *reversed(TEXTS)).out) == expected
    assert records(call(*arguments, *TEXTS, "--jobs", 3).out) == expected
    assert records(call(*arguments[:-1], *TEXTS).out) != expected


def test_inputs_that_can_be_read_only_once_are_refused(call: Call, news_model: Path, folder: Path) -> None:
    message = "--collection reads the input twice"
    assert message in one_line(call("tag", "-m", news_model, "--collection", "-", stdin=b"In Kenya."), 2)
    os.mkfifo(folder / "pipe.txt")
    writer = threading.Thread(target=lambda: (folder / "pipe.txt").write_text("In Kenya."), daemon=True)
    writer.start()
    assert message in one_line(call("tag", "-m", news_model, "--collection", "pipe.txt"), 2)
    (folder / "pipe.txt").read_text()  # ends the writer


def test_failures_and_warnings_are_reported_once(
    call: Call, news_model: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "e.jsonl").write_text('{"text": "In Kenya."}\n{\n')
    result = call("tag", "-m", news_model, "--collection", *TEXTS, "e.jsonl", "-o", "out.jsonl")
    assert "e.jsonl:2" in one_line(result, 1)
    assert len((folder / "out.jsonl").read_text().splitlines()) == len(TEXTS) + 1
    (folder / "f.conll").write_text("Lima\tB-LOC\n\tO\n")
    result = call("tag", "-m", news_model, "--collection", "f.conll", "-f", "jsonl")
    assert result.code == 0
    assert caplog.text.count("a line without a token is skipped") == 1


def test_an_empty_collection(call: Call, news_model: Path, folder: Path) -> None:
    (folder / "empty.txt").write_text("")
    plain, result = (call("tag", "-m", news_model, "empty.txt", *more) for more in ([], ["--collection"]))
    assert result == plain


@pytest.mark.parametrize("interrupted_pass", [1, 2])
def test_an_interrupted_run_leaves_no_output_and_can_be_resumed(
    call: Call, news_model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, interrupted_pass: int
) -> None:
    arguments = ["tag", "-m", news_model, "--collection", *TEXTS, "-o"]
    assert call(*arguments, "whole.jsonl").code == 0
    outcomes, n_calls = Tagger.outcomes, 0

    def interrupted(self: Tagger, *rest: Any, **options: Any) -> Iterator[Any]:
        nonlocal n_calls
        n_calls += 1
        for i, result in enumerate(outcomes(self, *rest, **options)):
            if n_calls == interrupted_pass and i == 2:
                raise KeyboardInterrupt
            yield result

    for more in ([], ["--resume"]):
        n_calls = 0
        monkeypatch.setattr(Tagger, "outcomes", interrupted)
        assert call(*arguments, "out.jsonl", *more).code == 130
        assert not (folder / "out.jsonl").exists()
        monkeypatch.setattr(Tagger, "outcomes", outcomes)
    assert call(*arguments, "out.jsonl", "--resume").code == 0
    assert (folder / "out.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    refused = call("tag", "-m", news_model, *TEXTS, "-o", "out.jsonl", "--resume")
    assert refused.code == 0  # the run is complete, so that nothing is left to resume
