"""The model cards of the documentation (docs/generated.py)."""

from __future__ import annotations

import importlib.util

import pytest
from data import REPOSITORY

import herdner
from herdner.ner.model_file import shipped_models


@pytest.fixture(scope="module")
def cards() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("generated", REPOSITORY / "docs" / "generated.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: "\n".join(module.card(name)) for name in shipped_models()}


@pytest.mark.slow
def test_every_card_states_conventions_limits_and_network(cards: dict[str, str]) -> None:
    for name, card in cards.items():
        assert "| conventions |" in card
        assert "| limits |" in card
        assert ("neural network" in card) == (herdner.load(name).model_.network is not None)


def test_labels_have_intervals_and_cross_validated_weaknesses_are_listed(cards: dict[str, str]) -> None:
    scores = herdner.load("en").card["cross_validated"]["litbank"]
    low, high = scores["label_intervals"]["ORG"]
    assert f"| {scores['labels']['ORG']:.1f} ({low} to {high}) |" in cards["en"]
    assert f"ORG in LitBank ({scores['labels']['ORG']:.1f})" in cards["en"]
    assert "tagged by a chain and a network that were trained without this half" in cards["en"]
