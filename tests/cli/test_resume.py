"""`herdner tag --resume`: an interrupted run continues, and its output equals that of a run without interruption."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Call, one_line
from data import ELSEWHERE

from herdner import Tagger
from herdner.base.messages import format_count

TEXT = "Ada Lovelace met Charles Babbage in Kenya. Lovelace left Kenya. "


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": str(i), "text": f"{TEXT}{i}"}) for i in range(200)]
    lines[7] = "{"  # a document that cannot be read
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def interrupted_after(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """Interrupt the next run after n results."""
    outcomes = Tagger.outcomes

    def first(self: Tagger, *arguments: Any, **options: Any) -> Iterator[Any]:
        monkeypatch.setattr(Tagger, "outcomes", outcomes)
        for i, result in enumerate(outcomes(self, *arguments, **options)):
            if i == n:
                raise KeyboardInterrupt
            yield result

    monkeypatch.setattr(Tagger, "outcomes", first)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sum-product", "gibbs"])
@pytest.mark.parametrize(
    "output", ["out.jsonl", "out.jsonl.gz", "out.csv", "out.conll", "out.html", "out.parquet", "out.spacy", "out.txt"]
)
def test_the_output_equals_that_of_one_run(
    call: Call, news_model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, output: str, backend: str
) -> None:
    arguments = ["tag", "in.jsonl", "-m", news_model, "-b", backend, "--seed", 3]
    (folder / "whole").mkdir()
    assert call(*arguments, "-o", f"whole/{output.removesuffix('.gz')}").code == 1
    for n in (5, 20, 0):
        interrupted_after(monkeypatch, n)
        assert call(*arguments, "-o", output, "--resume").code == 130
        assert not (folder / output).exists()
    last = call(*arguments, "-o", output, "--resume")
    assert last.code == 1
    assert "has 25 finished documents" in last.err
    written = (folder / output).read_bytes()
    written = gzip.decompress(written) if output.endswith(".gz") else written
    assert written == (folder / "whole" / output.removesuffix(".gz")).read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl", output, "whole"]


def test_warnings_about_the_input_and_the_output_are_printed_once(
    call: Call, news_model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    surrogate = json.dumps({"text": TEXT + "\ud800"})
    (folder / "in.jsonl").write_text(f"{surrogate}\n" + json.dumps({"id": "b", "text": TEXT, "year": 3}) + "\n")
    interrupted_after(monkeypatch, 1)
    call("tag", "in.jsonl", "-m", news_model, "-o", "out.spacy", "--resume")
    caplog.clear()
    assert call("tag", "in.jsonl", "-m", news_model, "-o", "out.spacy", "--resume").code == 0
    assert caplog.text.count("lone surrogates are replaced") == 1
    assert caplog.text.count("cannot represent the fields") == 1


def test_an_input_that_changes_during_the_run_is_refused(
    call: Call, news_model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = Tagger.outcomes

    def shorten_afterwards(self: Tagger, *arguments: Any, **options: Any) -> Iterator[Any]:
        yield from outcomes(self, *arguments, **options)
        (folder / "in.jsonl").write_text(json.dumps({"text": TEXT + "0"}) + "\n")

    monkeypatch.setattr(Tagger, "outcomes", shorten_afterwards)
    outcome = call("tag", "in.jsonl", "-m", news_model, "-o", "out.csv", "--resume")
    assert outcome.code == 1
    assert "the input files have changed during the run" in outcome.err
    assert not (folder / "out.csv").exists()


def test_a_half_written_line_is_tagged_again(
    call: Call, news_model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["tag", "in.jsonl", "-m", news_model, "-o", "out.jsonl"]
    call(*arguments)
    whole = (folder / "out.jsonl").read_bytes()
    interrupted_after(monkeypatch, 30)
    call(*arguments, "--resume")
    journal = folder / "out.jsonl.unfinished"
    for cut in (5, 100, 4000):
        journal.write_bytes(journal.read_bytes()[:-cut])
        interrupted_after(monkeypatch, 0)
        assert call(*arguments, "--resume").code == 130
    call(*arguments, "--resume")
    assert (folder / "out.jsonl").read_bytes() == whole


def test_other_settings_and_other_inputs_are_refused(
    call: Call, news_model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["tag", "in.jsonl", "-m", news_model, "-o", "out.jsonl"]
    interrupted_after(monkeypatch, 9)
    call(*arguments, "--resume")
    assert "add --resume to continue it" in call(*arguments, "--errors", "fail").err
    assert "(seed)" in one_line(call(*arguments, "--resume", "--seed", 1), 1)
    assert "(inference)" in one_line(call(*arguments, "--resume", "--set", "links=false"), 1)
    (folder / "in.jsonl").write_text(json.dumps({"text": "In Kenya."}) + "\n")
    assert "(inputs)" in one_line(call(*arguments, "--resume"), 1)
    (folder / "out.jsonl.unfinished").write_text("notes\n")
    assert "is not a journal that `herdner tag` has written" in one_line(call(*arguments, "--resume"), 1)
    assert (folder / "out.jsonl.unfinished").read_text() == "notes\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["in.jsonl"], "--resume continues an interrupted output file"),
        (["-", "-o", "a.jsonl"], "--resume reads the input twice and cannot read standard input"),
    ],
)
def test_usage_errors(call: Call, folder: Path, arguments: list[str], message: str) -> None:
    assert message in one_line(call("tag", *arguments, "--resume"), 2)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_process_leaves_a_run_that_continues(call: Call, news_model: Path, folder: Path) -> None:
    (folder / "in.jsonl").write_text("".join(json.dumps({"text": TEXT * 80 + str(i)}) + "\n" for i in range(150)))
    arguments = ["tag", str(folder / "in.jsonl"), "-m", str(news_model), "-o", str(folder / "out.jsonl"), "--resume"]
    process = subprocess.Popen([sys.executable, "-m", "herdner", *arguments], cwd=ELSEWHERE)
    journal = folder / "out.jsonl.unfinished"
    while not journal.exists() or journal.stat().st_size < 5_000:
        assert process.poll() is None, "it has ended before it could be killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "out.jsonl").exists()
    n_done = journal.read_bytes().count(b"\n") - 1
    assert 0 < n_done < 150
    outcome = call(*arguments)
    assert outcome.code == 0
    assert f"has {format_count(n_done, 'finished document')}" in outcome.err
    call(*arguments[:-2], str(folder / "whole.jsonl"))
    assert (folder / "out.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl", "out.jsonl", "whole.jsonl"]
