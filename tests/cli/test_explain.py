"""Tests of ``herdner explain``: its output, and its messages about unknown names and labels."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from commands import Call, one_line
from data import REPOSITORY

import herdner

ARTICLE = REPOSITORY / "corpora" / "article.txt"
VALUE = re.compile(r"^ +([+-]\d+\.\d\d)  ", re.M)


def blocks(text: str) -> list[list[str]]:
    return [block.splitlines() for block in text.strip("\n").split("\n\n")]


def test_each_name_has_its_largest_parts_and_the_sum_of_the_rest(call: Call) -> None:
    outcome = call("explain", ARTICLE)
    assert (outcome.code, outcome.err) == (0, "")
    found = blocks(outcome.out)
    entities = herdner.load("en").tag(ARTICLE.read_text(encoding="utf-8")).entities
    assert len(found) == len(entities) > 20
    for lines, entity in zip(found, entities, strict=True):
        assert lines[0].startswith(f"{entity.text} {entity.label} in sentence ")
        assert f"confidence {100 * entity.confidence:.1f} %" in lines[2]
        assert len(lines) == 12
        steps = re.findall(r"^    (\w+) +([+-][\d.]+) +([\d.]+) %$", "\n".join(lines), re.M)
        assert [name for name, _, _ in steps] == ["model", "links", "calibration"]
        odds = sum(float(value) for _, value, _ in steps)
        assert odds == pytest.approx(math.log(entity.confidence / (1 - entity.confidence)), abs=0.02)
        assert re.search(r"\d+ smaller (features|parts)$", lines[-1])
        shown = [float(value) for value in VALUE.findall("\n".join(lines))]
        assert sum(shown) == pytest.approx(float(re.findall(r"log-odds (\S+)", lines[1])[0]), abs=0.05)


def test_a_name_of_all_parts_has_its_links(call: Call) -> None:
    outcome = call("explain", ARTICLE, "--name", "winam", "--all")
    first, *others = blocks(outcome.out)
    assert first[0] == "Winam Ferries Ltd. ORG in sentence 3"
    assert len(others) == 3
    assert "smaller" not in outcome.out
    for lines in others:
        assert lines[0].startswith("Winam ORG in sentence ")
        assert sum("link to 'Winam' in sentence" in line for line in lines) == 2
        assert any("link to 'Winam Ferries Ltd.' in sentence 3, tagged ORG (same-word)" in line for line in lines)
        assert float(lines[4].split()[1]) > 0  # links


def test_json_is_what_the_library_says(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "a", "text": "Nairobi is in Kenya."}\n{"id": "b", "text": "no."}\n')
    outcome = call("explain", tmp_path / "a.jsonl", "--json", "--against", "best", "--set", "links=false")
    first, second = map(json.loads, outcome.out.splitlines())
    expected = herdner.load("en").explain("Nairobi is in Kenya.", against="best", links=False)
    assert first == {"id": "a", "mentions": [each.to_dict() for each in expected]}
    assert len(expected) == 2
    assert second == {"id": "b", "mentions": []}


def test_standard_input_and_a_text_without_names(call: Call) -> None:
    assert call("explain", stdin=b"Nairobi is in Kenya.\n").out.startswith("Nairobi LOC in sentence 1\n")
    assert call("explain", "-", stdin=b"nothing is here.\n").out == "no names to explain\n"


def test_samplers_explain_what_they_tag(call: Call, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("Winam Ferries Ltd. lost. Winam will pay Akinyi.", encoding="utf-8")
    options = [tmp_path, "--backend", "gibbs", "--set", "n_sweeps=3", "--seed", 4]
    tagged = [json.loads(line)["entities"] for line in call("tag", *options, "--format", "jsonl").out.splitlines()]
    explained = [json.loads(line)["mentions"] for line in call("explain", *options, "--json").out.splitlines()]
    names = [[[(e["start"], e["label"]) for e in each] for each in several] for several in (tagged, explained)]
    assert names[0] == names[1]
    assert len(names[0]) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--name", "Zanzibar"], 1, "'Zanzibar' is not in the text"),
        (["--name", "pier"], 1, "'pier' is in the text, but not tagged as a name"),
        (["--name", " "], 2, "--name: the name is empty"),
        (["--against", "Town"], 2, "--against: the model has no label 'Town'; expected best or one of LOC, ORG, PER"),
        (["--backend", "viterbi"], 1, "tag without links"),
        (["--backend", "none"], 2, "none"),
    ],
)
def test_what_cannot_be_explained_is_one_line(call: Call, options: list[str], code: int, message: str) -> None:
    assert message in one_line(call("explain", ARTICLE, *options), code)


def test_a_name_in_empty_input_is_a_failure(call: Call, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    outcome = call("explain", tmp_path / "empty.txt", "--name", "Nairobi")
    assert one_line(outcome, 1) == "herdner: --name 'Nairobi': the input has no text\n"
    assert call("explain", tmp_path / "empty.txt").code == 0


def test_known_names_are_shown(call: Call, tmp_path: Path) -> None:
    (tmp_path / "names.tsv").write_text("pier\tLOC\n", encoding="utf-8")
    text = b"The pier is long.\n"
    options = ["--names", tmp_path / "names.tsv"]
    hard = call("explain", *options, "--names-hard", stdin=text).out
    assert hard.startswith("pier LOC in sentence 1\n  log-odds +inf against no name: ")
    assert "+inf  known names forbid the alternative" in hard
    strong = call("explain", *options, "--names-strength", 20, stdin=text).out
    assert "known names +20.00" in strong
    assert "--names-hard requires a list of names; add --names" in one_line(
        call("explain", "--names-hard", stdin=text), 2
    )


def test_of_several_documents_those_with_the_name_are_explained(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Nairobi is in Kenya.", encoding="utf-8")
    (tmp_path / "b.txt").write_text("Kenya is here.", encoding="utf-8")
    outcome = call("explain", tmp_path / "a.txt", tmp_path / "missing.txt", tmp_path / "b.txt", "--name", "Nairobi")
    assert outcome.out.count("==") == 2
    assert "a.txt ==" in outcome.out
    assert "missing.txt" in one_line(outcome, 1)


def test_text_drives_no_terminal_and_is_no_markup(call: Call) -> None:
    text = "Ada \x1b[31mLovelace met [red]Charles Babbage[/red] in \x9bLondon."
    outcome = call("explain", stdin=text.encode())
    assert outcome.code == 0
    assert not re.search(r"[\x1b\x9b]", outcome.out)
