"""Tests of ``--strict``: dubious input is refused instead of causing a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Call, one_line

DUBIOUS = "Ada\tI-PER\nmet\tO\nBob\tB-PER\nLee\tB-PER\n.\tO\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "a.conll").write_text(DUBIOUS)
    (tmp_path / "b.conll").write_text(DUBIOUS.replace("I-", "B-"))
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["tag", "-i", "conll", "FOLDER/a.conll", "-f", "conll"],
        ["evaluate", "FOLDER/a.conll:conll", "--resamples", 0],
        ["report", "FOLDER/a.conll:conll", "--predictions", "FOLDER/b.conll:conll", "--resamples", 1],
        ["report", "FOLDER/b.conll:conll", "--predictions", "FOLDER/a.conll:conll", "--resamples", 1],
        ["train", "--train", "FOLDER/a.conll:conll", "-o", "FOLDER/m"],
        ["train", "--train", "FOLDER/b.conll:conll", "--dev", "FOLDER/a.conll:conll", "-o", "FOLDER/m"],
    ],
)  # fmt: skip
def test_dubious_input_is_a_warning_or_refused(
    call: Call, files: Path, news_model: Path, arguments: list, caplog
) -> None:
    given = [str(each).replace("FOLDER", str(files)) for each in arguments]
    given += ["-m", str(news_model)] if given[0] in ("tag", "evaluate") else []
    given += (
        ["--lexicon", "none", "--iterations", "3", "--link", "none", "--min-freq", "1"] if given[0] == "train" else []
    )
    outcome = call(*given)
    assert outcome.code == 0, outcome.err
    warning = f"{files / 'a.conll'}:1: a name begins with I-"
    assert sum(line.startswith(warning) for line in caplog.messages) == 1
    (files / "m").unlink(missing_ok=True)
    line = one_line(call(*given, "--strict"), 1)
    assert warning in line
    assert "this is an error in strict mode" in line
    assert not (files / "m").exists()


def test_names_that_end_within_a_token(call: Call, tmp_path: Path, news_model: Path, caplog) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Kenyans sing.", "entities": [{"start": 0, "end": 5, "label": "LOC"}]}\n')
    outcome = call("evaluate", path, "-m", news_model, "--resamples", 0)
    assert outcome.code == 0, outcome.err
    assert caplog.messages == [f"{path}: an entity that begins or ends within a token is widened to the token"]
    assert "widened to the token; this is an error" in one_line(call("evaluate", path, "-m", news_model, "--strict"), 1)
