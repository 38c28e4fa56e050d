"""Tests of ``herdner evaluate`` with files of predictions and with repeated texts."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Call, one_line
from data import REPOSITORY

import herdner

DEV = REPOSITORY / "corpora" / "herdner_news.dev.conll"


@pytest.fixture
def predictions(call: Call, tmp_path: Path) -> Path:
    """Return a file of predictions of the shipped model for `DEV`."""
    path = tmp_path / "predictions.jsonl"
    assert call("tag", DEV, "-o", path).code == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize("names", [(0, 1), (0, 0), (1, 0)])
def test_predictions_among_the_gold_files_are_refused(call: Call, predictions: Path, names: tuple[int, int]) -> None:
    """The refused command would count each prediction as gold; the command in the message scores the predictions."""
    files = [(f"{DEV}:conll", f"{predictions}:jsonl")[i] for i in names]
    message = one_line(call("evaluate", *files), 2)
    advice = message.rpartition("use: herdner ")[2].rpartition(" (see")[0]
    assert "20 of 20 documents also occur in the gold files before this file" in message
    assert advice == f"evaluate {files[0]} --predictions {files[1]}"
    if names == (0, 1):
        assert call(*shlex.split(advice)).code == 0


def test_a_part_of_the_predictions_is_refused_and_single_repeated_texts_are_reported(
    call: Call, predictions: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = predictions.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "part.jsonl").write_text("".join(lines[:3]), encoding="utf-8")
    assert "3 of 3 documents" in one_line(call("evaluate", f"{DEV}:conll", f"{tmp_path / 'part.jsonl'}:jsonl"), 2)
    (tmp_path / "more.jsonl").write_text("".join([*lines[:5], lines[0]]), encoding="utf-8")
    one_more = ["evaluate", tmp_path / "more.jsonl", "--resamples", 0]
    assert call(*one_more).code == 0
    assert "repeats the text of an earlier document; each is scored" in caplog.text
    assert "error in strict mode" in one_line(call(*one_more, "--strict"), 1)


def test_predictions_have_the_scores_of_the_model_that_wrote_them(call: Call, predictions: Path) -> None:
    asked = ["evaluate", f"{DEV}:conll", "--json", "--consistency"]
    model = json.loads(call(*asked).out)
    outcome = call(*asked, "--predictions", predictions)
    found = json.loads(outcome.out)
    for key in ("micro", "macro", "per_label", "interval", "n_tokens", "tokens_per_second"):
        assert found[key] == model[key]
    assert found["micro"]["f1"] < 1
    by_name = {name: model["consistency"]["repeated_names"][name] for name in ("gold", "with links")}
    assert list(found["consistency"]["repeated_names"].values()) == list(by_name.values())


def test_predictions_are_matched_by_id_and_renamed(call: Call, tmp_path: Path) -> None:
    gold = [replace(document, id=f"d{i}") for i, document in enumerate(herdner.read_documents(DEV, "conll"))]
    renamed = [
        document.with_entities(replace(entity, label=entity.label.lower()) for entity in document.entities)
        for document in reversed(gold)
    ]
    for name, documents in (("gold", gold), ("predicted", renamed)):
        with (tmp_path / f"{name}.jsonl").open("w", encoding="utf-8") as stream:
            herdner.write_documents(documents, stream, "jsonl")
    asked = ["evaluate", tmp_path / "gold.jsonl", "--predictions", tmp_path / "predicted.jsonl", "--resamples", 0]
    assert "predicted.jsonl has none of the labels LOC, ORG, PER" in one_line(call(*asked), 2)
    scores = json.loads(call(*asked, "--json", *(f"--rename={x}={x.upper()}" for x in ("per", "org", "loc"))).out)
    assert scores["micro"]["f1"] == 1


def test_names_of_predictions_are_scored(call: Call, tmp_path: Path) -> None:
    mentions = [(0, 10), (15, 21), (23, 29)]
    for name, ids in (("gold", (0, 1, 0)), ("right", (5, 6, 5)), ("wrong", (0, 1, 2))):
        entities = [
            {"start": s, "end": e, "label": "PER", "name_id": i} for (s, e), i in zip(mentions, ids, strict=True)
        ]
        record = {"text": "Ana Rivera met Bo Lim. Rivera left.", "entities": entities}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(record) + "\n")

    def mean_f1(name: str) -> float:
        outcome = call("evaluate", tmp_path / "gold.jsonl", "--predictions", tmp_path / name, "--names", "--json")
        (scores,) = json.loads(outcome.out)["names"]
        return scores["mean_f1"]

    assert mean_f1("right.jsonl") == 1
    assert mean_f1("wrong.jsonl") < 1


@pytest.mark.slow
@pytest.mark.parametrize("option", [["-m", "en"], ["-b", "icm"], ["--compare", "en", "en"], ["--case", "lower"]])
def test_options_of_models_are_refused_with_predictions(call: Call, predictions: Path, option: list[str]) -> None:
    asked = ["evaluate", f"{DEV}:conll", "--predictions", predictions, *option]
    assert "cannot be combined with --predictions, which scores a file" in one_line(call(*asked), 2)


def test_documents_without_predictions_are_refused(call: Call, predictions: Path) -> None:
    lines = predictions.read_text(encoding="utf-8").splitlines(keepends=True)
    predictions.write_text("".join(lines[1:]), encoding="utf-8")
    message = one_line(call("evaluate", f"{DEV}:conll", "--predictions", predictions), 1)
    assert "expected 20 documents, as in the gold file, got 19" in message


def test_development_texts_that_are_training_texts_are_reported(call: Call, tmp_path: Path) -> None:
    lines = "Ada\tB-PER\nsang\tO\nin\tO\nKenya\tB-LOC\n.\tO\n\n"
    (tmp_path / "a.conll").write_text("-DOCSTART-\tO\n\n" + lines + "-DOCSTART-\tO\n\n" + lines.replace("Ada", "Bo"))
    source = f"{tmp_path / 'a.conll'}:conll"
    asked = ["train", "--train", source, "--lexicon", "none", "--min-freq", 1, "--link", "none", "--iterations", 3]
    trained = call(*asked, "--dev", source, "-o", tmp_path / "m")
    assert trained.code == 0
    assert "--dev: 2 of 2 documents have the text of a training document" in trained.err


@pytest.mark.parametrize("options", [[], ["--predictions", "a.conll"], ["--compare", "a.conll", "a.conll"]])
def test_gold_documents_without_entities_are_refused(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.conll").write_text("She\tO\nleft\tO\n", encoding="utf-8")
    outcome = call("evaluate", "a.conll", *options)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("herdner: a.conll: the gold documents have no entity")
