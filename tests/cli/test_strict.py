"""``--strict``: a file that leaves something in doubt is told, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Call, one_line

DOUBTFUL = "Ada\tI-PER\nmet\tO\nBob\tB-PER\nLee\tB-PER\n.\tO\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "a.conll").write_text(DOUBTFUL)
    (tmp_path / "b.conll").write_text(DOUBTFUL.replace("I-", "B-"))
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["tag", "-i", "conll", "FOLDER/a.conll", "-f", "conll"],
        ["evaluate", "FOLDER/a.conll:conll", "--resamples", 0],
        ["report", "FOLDER/a.conll:conll", "FOLDER/b.conll:conll", "--resamples", 1],
        ["report", "FOLDER/b.conll:conll", "FOLDER/a.conll:conll", "--resamples", 1],
        ["train", "--train", "FOLDER/a.conll:conll", "-o", "FOLDER/m"],
        ["train", "--train", "FOLDER/b.conll:conll", "--dev", "FOLDER/a.conll:conll", "-o", "FOLDER/m"],
    ],
)  # fmt: skip
def test_doubts_are_told_or_refused(call: Call, files: Path, news_model: Path, arguments: list, caplog) -> None:
    given = [str(each).replace("FOLDER", str(files)) for each in arguments]
    given += ["-m", str(news_model)] if given[0] in ("tag", "evaluate") else []
    given += (
        ["--lexicon", "none", "--iterations", "3", "--link", "none", "--min-freq", "1"] if given[0] == "train" else []
    )
    told = call(*given)
    assert told.code == 0, told.err
    doubt = f"{files / 'a.conll'}:1: an I- that continues no name"
    assert sum(line.startswith(doubt) for line in caplog.messages) == 1
    (files / "m").unlink(missing_ok=True)
    line = one_line(call(*given, "--strict"), 1)
    assert doubt in line
    assert "refused, because reading is strict" in line
    assert not (files / "m").exists()


def test_names_that_end_within_a_token(call: Call, tmp_path: Path, news_model: Path, caplog) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Kenyans sing.", "entities": [{"start": 0, "end": 5, "label": "LOC"}]}\n')
    told = call("evaluate", path, "-m", news_model, "--resamples", 0)
    assert told.code == 0, told.err
    assert caplog.messages == [f"{path}: an entity that ends within a token is widened to the token"]
    assert "widened to the token; refused" in one_line(call("evaluate", path, "-m", news_model, "--strict"), 1)
