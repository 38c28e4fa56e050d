"""Tests of ``herdner evaluate --compare A B``."""

from __future__ import annotations

import importlib.resources
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import Call, one_line
from data import REPOSITORY

import herdner
from herdner.cli.compare import ComparisonSide, parse_side

DEV = REPOSITORY / "corpora" / "herdner_news.dev.conll"


@pytest.fixture
def odd_model(tmp_path: Path) -> Path:
    """Return the path of the shipped model, with a colon and an @ in it."""
    path = tmp_path / ("me@home" if os.name == "nt" else "me@home:1") / "b@gibbs.model"
    path.parent.mkdir()
    with importlib.resources.as_file(importlib.resources.files("herdner") / "data" / "en.herdner") as shipped:
        shutil.copy(shipped, path)
    return path


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """Return the gold file without the last person of each document, as predictions."""
    documents = []
    for document in herdner.read_documents(DEV, "conll"):
        persons = [entity for entity in document.entities if entity.label == "PER"]
        documents.append(document.with_entities(entity for entity in document.entities if entity not in persons[-1:]))
    path = tmp_path / "cut.conll"
    with path.open("w", encoding="utf-8") as stream:
        herdner.write_documents(documents, stream, "conll")
    return path


@pytest.fixture(autouse=True)
def timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the speed on small files too."""
    monkeypatch.setattr("herdner.cli.gold.MIN_TIMED_TOKENS", 1)


def compared(call: Call, *arguments: object) -> dict:
    outcome = call("evaluate", f"{DEV}:conll", "--json", "--compare", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


def test_two_backends_as_the_library_compares_them(call: Call) -> None:
    gold = list(herdner.read_documents(DEV, "conll"))
    tagger, plain = herdner.load("en"), [document.without_annotation() for document in gold]
    a = list(tagger.pipe(plain, seed=3))
    b = list(tagger.pipe(plain, seed=3, backend="gibbs", n_sweeps=5, record="nothing"))
    expected = herdner.compare(
        gold, a, b, rng=np.random.default_rng(3), n_resamples=400, names=("en", "en@gibbs:n_sweeps=5:record=nothing")
    )
    found = compared(call, expected.name_a, expected.name_b, "--seed", 3, "--resamples", 400)
    speeds = {key: found[key] for key in ("tokens_per_second_a", "tokens_per_second_b")}
    assert min(speeds.values()) > 0
    assert found == json.loads(replace(expected, **speeds).to_json())
    assert found["micro"]["difference"] != 0


@pytest.mark.slow
def test_predictions_in_a_file_count_as_the_tagger_that_wrote_them(call: Call, tmp_path: Path) -> None:
    for format in ("conll", "jsonl"):
        path = tmp_path / f"predictions.{format}"
        assert call("tag", DEV, "-i", "conll", "-f", format, "-o", path).code == 0
        for side in (path, f"{path}:{format}"):
            found = compared(call, "en", side)
            assert found["tokens_per_second_a"] > 0
            assert found["tokens_per_second_b"] is None
            assert (found["randomisation_p"], found["micro"]["only_a"], found["micro"]["only_b"]) == (1, 0, 0)
            assert 0.5 < found["micro"]["f1_a"] == found["micro"]["f1_b"] < 1


def test_two_files_need_no_model(call: Call, cut: Path) -> None:
    found = compared(call, cut, f"{DEV}:conll", "--unit", "sentence")
    assert found["micro"]["f1_a"] < found["micro"]["f1_b"] == 1
    assert (found["micro"]["only_a"], found["interval"]["unit"]) == (0, "sentence")
    by_label = {row["label"]: row["only_b"] for row in found["per_label"]}
    assert by_label["PER"] == found["micro"]["only_b"] > 5
    assert found["randomisation_p"] < 0.01
    markdown = call("evaluate", f"{DEV}:conll", "--compare", cut, f"{DEV}:conll").out
    assert markdown.startswith("| label | F1 of A | F1 of B | B - A |")
    assert f"A is {cut}, B is {DEV}:conll; B - A is +" in markdown


def test_running_text_is_split_once_for_both(call: Call, tmp_path: Path) -> None:
    article = REPOSITORY / "corpora" / "article.txt"
    gold = tmp_path / "gold.jsonl"
    assert call("tag", article, "-f", "jsonl", "-o", gold).code == 0
    outcome = call("evaluate", gold, "--compare", gold, "en@viterbi:links=false", "--json")
    found = json.loads(outcome.out)
    assert found["interval"]["unit"] == "sentence"
    assert 0.5 < found["micro"]["f1_b"] <= found["micro"]["f1_a"] == 1
    assert found["n_units"] > 5


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("en", ComparisonSide("en", "en")),
        ("en@dhg", ComparisonSide("en@dhg", "en", "dhg")),
        ("my.model@dhg", ComparisonSide("my.model@dhg", "my.model", "dhg")),
        ("en@x:a=1:b=f(0.1, 4)", ComparisonSide("en@x:a=1:b=f(0.1, 4)", "en", "x", ("a=1", "b=f(0.1, 4)"))),
        ("C:\\me@home\\a.model", ComparisonSide("C:\\me@home\\a.model", "C:\\me@home\\a.model")),
        ("C:\\me@home\\a@dhg:a=1", ComparisonSide("C:\\me@home\\a@dhg:a=1", "C:\\me@home\\a", "dhg", ("a=1",))),
        ("me@home/a.model", ComparisonSide("me@home/a.model", "me@home/a.model")),
        ("./me@home.model@icm", ComparisonSide("./me@home.model@icm", "./me@home.model", "icm")),
    ],
)
def test_forms_of_a_side(text: str, side: ComparisonSide) -> None:
    assert parse_side(text) == side


@pytest.mark.parametrize(
    "text", ["p.conll", "p:conll", "me@home/p.jsonl.gz", "a@dhg:jsonl", "C:\\me@home\\p.txt:conll"]
)
def test_predictions_are_known_by_extension_or_format(text: str) -> None:
    side = parse_side(text)
    assert side.predictions is not None
    assert (side.name, side.model, side.backend) == (text, "", None)


def test_a_file_that_exists_is_taken_as_it_is(call: Call, odd_model: Path) -> None:
    assert parse_side(str(odd_model)) == ComparisonSide(str(odd_model), str(odd_model))
    side = parse_side(f"{odd_model}@icm")
    assert (side.model, side.backend) == (str(odd_model), "icm")
    assert compared(call, "en", odd_model, "--resamples", 10)["micro"]["difference"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--compare", "en"], 2, "2 arguments"),
        (["--compare", "en", ""], 2, "MODEL@BACKEND:KEY=VALUE"),
        (["--compare", "en", "en@"], 2, "MODEL@BACKEND:KEY=VALUE"),
        (["--compare", "@dhg", "en"], 2, "MODEL@BACKEND:KEY=VALUE"),
        (["--compare", "en", "en@gibs"], 2, "there is no backend 'gibs'"),
        (["--compare", "en", "en@gibbs:n_sweeps"], 2, "--compare en@gibbs:n_sweeps: 'n_sweeps': expected KEY=VALUE"),
        (["--compare", "en", "en@gibbs:colour=red"], 2, "(see herdner backends gibbs)"),
        (["--compare", "en", "en@gibbs:n_sweeps=x"], 2, "a whole number"),
        (["--compare", "en", "en", "--model", "en"], 2, "--model: cannot be combined with --compare"),
        (["--compare", "en", "en", "--backend", "dhg"], 2, "--backend: cannot be combined with --compare"),
        (["--compare", "en", "en", "--set", "n_sweeps=3"], 2, "--set: cannot be combined with --compare"),
        (["--compare", "en", "en", "--resamples", "0"], 2, "needs at least 1 bootstrap sample"),
        (["--compare", "en", "en", "--resamples", "99999999999"], 2, "10000000"),
        (["--compare", "en", "en", "--unit", "token"], 2, "'token' is not one of 'document', 'sentence'"),
        (["--unit", "document"], 2, "--unit requires --compare"),
        (["--compare", "en", "nowhere.model"], 1, "FILE:FORMAT"),
        (["--compare", "en", "en:gibbs"], 1, "MODEL@BACKEND"),
        (["--compare", "en", "nowhere.conll"], 1, "nowhere.conll"),
        (["--compare", "en", "en@exact:max_log2_cells=1"], 1, "en@exact:max_log2_cells=1: "),
    ],
)
def test_usage_errors_are_one_line(call: Call, arguments: list[str], code: int, message: str) -> None:
    assert message in one_line(call("evaluate", f"{DEV}:conll", *arguments), code)


def test_predictions_that_do_not_fit(call: Call, cut: Path, tmp_path: Path) -> None:
    def message(text: str, name: str = "other.conll") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return one_line(call("evaluate", cut, "--compare", cut, tmp_path / name), 1)

    text = cut.read_text(encoding="utf-8")
    assert "20 gold documents but 1 predicted" in message("Ada\tB-PER\n")
    assert "other.conll: document" in message(text.replace("Kenya", "Uganda"))
    assert "no document" in message("")
    assert "other.conll:1: " in message("Ada\tPERSON\n")
    assert "no annotation" in message("Ada", "other.txt")
    one = tmp_path / "one.conll"
    one.write_text("Ada\tB-PER\n", encoding="utf-8")
    assert "at least two sentences" in one_line(call("evaluate", one, "--compare", one, "en"), 1)


def test_input_is_also_the_format_of_predictions(call: Call, tmp_path: Path, odd_model: Path) -> None:
    gold, predictions = tmp_path / "gold.txt", tmp_path / "predictions.jsonl"
    for path in (gold, predictions):
        path.write_text("Ada\tB-PER\nwrote\tO\n\nAda\tB-PER\nleft\tO\n", encoding="utf-8")
    outcome = call("evaluate", gold, "--compare", gold, predictions, "--input", "conll", "--resamples", 10, "--json")
    assert json.loads(outcome.out)["micro"]["f1_b"] == 1
    assert parse_side(str(odd_model), "conll") == ComparisonSide(str(odd_model), str(odd_model))
