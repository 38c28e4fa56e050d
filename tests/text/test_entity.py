"""Names are collected from the name ids of entities."""

from __future__ import annotations

import pytest

from herdner.text.document import Document
from herdner.text.entity import Entity, Name, names_of


def test_a_name_has_the_fullest_form_its_label_and_the_mean_confidence() -> None:
    entities = (
        Entity(0, 5, "PER", "Reyes", 0.5, 7),
        Entity(6, 12, "LOC", "Berlin", 0.9, 3),
        Entity(13, 22, "ORG", "Ada Reyes", 1.0, 7),
        Entity(23, 27, "MISC", "none", 0.9),
    )
    names = names_of(entities)
    assert names == (
        Name(7, "ORG", "Ada Reyes", (0, 2), pytest.approx(0.75)),
        Name(3, "LOC", "Berlin", (1,), 0.9),
    )


def test_the_label_of_a_name_has_the_largest_sum_of_confidences_among_the_fullest_forms() -> None:
    labels = [("PER", 0.4), ("ORG", 0.9), ("PER", 0.4)]
    entities = [Entity(i, i + 1, label, "X", confidence, 0) for i, (label, confidence) in enumerate(labels)]
    assert names_of(entities)[0].label == "ORG"


def test_a_line_break_in_a_name_becomes_a_space_and_unknown_confidences_stay_unknown() -> None:
    (name,) = names_of([Entity(0, 9, "PER", "Ada\nReyes", None, 0), Entity(10, 15, "PER", "Reyes", 0.5, 0)])
    assert name == Name(0, "PER", "Ada Reyes", (0, 1), None)


def test_names_survive_json() -> None:
    document = Document.from_text("Ada met Bo.").with_proposals(
        [Entity(0, 3, "PER", "Ada", 0.5, 0), Entity(8, 10, "PER", "Bo", 0.5, 1)]
    )
    assert Document.from_json(document.to_json()).names == document.names != ()


def test_a_name_id_that_is_no_integer_is_an_error() -> None:
    values = Document.from_text("Ada").with_proposals([Entity(0, 3, "PER", "Ada")]).to_dict()
    values["entities"][0]["name_id"] = "0"
    with pytest.raises(ValueError, match="`name_id` must be an integer or None, got '0'"):
        Document.from_dict(values)


def test_name_ids_are_given_to_a_copy() -> None:
    document = Document.from_text("Ada met Bo.", id="x").with_proposals(
        [Entity(0, 3, "PER", "Ada", 0.5), Entity(8, 10, "PER", "Bo", 0.5)]
    )
    assert document.names == ()
    named = document.with_name_ids([4, 2])
    assert [(name.id, name.text) for name in named.names] == [(4, "Ada"), (2, "Bo")]
    assert named.without_annotation() == document.without_annotation()
    assert document.names == ()
    with pytest.raises(ValueError, match="there are 2 entities and 1 ids"):
        document.with_name_ids([0])
