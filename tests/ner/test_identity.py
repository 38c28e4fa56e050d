"""Mentions of one name in a document get one name id."""

from __future__ import annotations

import herdner


def test_mentions_of_one_name_have_one_id() -> None:
    document = herdner.load("en").tag("Ada Reyes met Bo Lim. Ada Reyes left. Bo Lim stayed.")
    assert [entity.name_id for entity in document.entities] == [0, 1, 0, 1]
    assert [(name.id, name.label, name.text, name.mentions) for name in document.names] == [
        (0, "PER", "Ada Reyes", (0, 2)),
        (1, "PER", "Bo Lim", (1, 3)),
    ]
