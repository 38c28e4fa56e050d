"""The recipes of the documentation for Spark and Ray: at most 20 lines, and their functions do what they say."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from data import REPOSITORY

import herdner

TEXTS = ["Ada Lovelace met Charles Babbage in London.", "In Kenya.", ""]


def recipe(heading: str) -> str:
    page = (REPOSITORY / "docs" / "pages" / "distributed.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {heading}\n\n[^\n]+\n\n```py\n(.*?)```$", page, re.M | re.S)
    assert found
    assert sum(bool(line.strip()) for line in found[1].splitlines()) <= 20
    return found[1]


@pytest.mark.slow
def test_spark_s_function() -> None:
    names: dict = {}
    exec(recipe("Spark"), names)
    frames = [
        pd.DataFrame({"id": ["a"], "text": TEXTS[:1], "more": [1]}),
        pd.DataFrame({"id": list("bc"), "text": TEXTS[1:]}),
    ]
    tagged = pd.concat(names["tag"](iter(frames)))
    assert tagged.columns.tolist() == ["id", "text", "entities"]
    expected = herdner.load("en").tag(TEXTS[0]).entities
    assert [entity[:4] for entity in tagged["entities"].iloc[0]] == [
        (e.start, e.end, e.label, e.text) for e in expected
    ]
    assert [len(found) for found in tagged["entities"]] == [3, 1, 0]


def test_ray_s_class() -> None:
    names: dict = {}
    exec(recipe("Ray Data"), names)
    tagged = names["Names"]()(pd.DataFrame({"key": [1, 2, 3], "text": TEXTS}))
    assert tagged.columns.tolist() == ["key", "text", "entities"]
    assert [[entity["text"] for entity in found] for found in tagged["entities"]] == [
        ["Ada Lovelace", "Charles Babbage", "London"], ["Kenya"], [],
    ]  # fmt: skip
