"""Consistency of repeated names, by hand and by counting; scores of labels that a tagger does not know."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.evaluation.consistency import count_repeated_names, find_inconsistent_names, measure_consistency
from herdner.evaluation.scores import KNOWN_LABELS, evaluate
from herdner.text.document import Document

WORDS = [["Rio", "and", "Rio", "met", "Oslo"], ["Oslo", "saw", "Rio", ",", "Kibo", "and", "Kibo"]]
GOLD = Document.from_tokens(
    WORDS, [["B-PER", "O", "B-PER", "O", "B-LOC"], ["B-LOC", "O", "B-PER", "O", "B-ORG", "O", "B-ORG"]], id="g"
)
GUESS = Document.from_tokens(
    WORDS, [["B-PER", "O", "B-LOC", "O", "B-LOC"], ["B-LOC", "O", "B-PER", "O", "B-PER", "O", "B-PER"]], id="p"
)


def test_consistent_names_may_be_wrong():
    """Rio is inconsistent, Oslo is correct, and Kibo is wrong at both occurrences."""
    found = measure_consistency([GOLD], {"links": [GUESS], "chain": [GOLD]})
    assert (found.repeated_names["links"].n_repeated, found.repeated_names["links"].n_differing) == (3, 1)
    assert found.repeated_names["links"].n_correct == 1
    assert found.repeated_names["links"].share_correct == pytest.approx(1 / 3)
    assert found.repeated_names["chain"].n_correct == found.repeated_names["chain"].n_repeated == 3
    assert found.repeated_names["gold"].n_correct is None
    (rio,) = found.inconsistent_names.names
    assert (rio.name, rio.labels, rio.gold_labels, rio.n_correct, rio.n_mentions) == (
        "Rio", {"PER": 2, "LOC": 1}, {"PER": 3}, 2, 3
    )  # fmt: skip
    assert found.rows()[0][:4] == ("gold", "3", "0", "")
    assert found.rows()[1][:5] == ("links", "3", "1", "1", "33.33")
    assert found.inconsistent_names.rows() == [("Rio", "g", "PER\N{NO-BREAK SPACE}2, LOC\N{NO-BREAK SPACE}1",
                                       "PER\N{NO-BREAK SPACE}3", "2 of 3")]  # fmt: skip
    values = json.loads(json.dumps(found.to_dict()))
    assert values["repeated_names"]["links"]["n_correct"] == 1
    assert values["short_forms"]["links"]["ORG"] == {"label": "ORG", "n": 0, "n_correct": 0, "share_correct": 0}
    assert "| links | 3 | 1 | 1 | 33.33 |" in found.to_markdown()
    assert (
        "No name has several labels" in measure_consistency([GOLD], {"same": [GOLD]}).inconsistent_names.to_markdown()
    )


TAGS = ["O", "O", "B-PER", "I-PER", "B-LOC"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(TAGS), st.sampled_from(TAGS)), max_size=12))
def test_names_whose_mentions_are_all_correct(rows):
    words = [[word for word, _, _ in rows]]
    gold, guess = (Document.from_tokens(words, [[row[i] for row in rows]]) for i in (1, 2))
    names: dict[tuple, list[bool]] = {}
    for span in guess.spans or ():
        names.setdefault(tuple(guess.tokens[span.start : span.end]), []).append(span in (gold.spans or ()))
    repeated = [found for found in names.values() if len(found) > 1]
    assert count_repeated_names([guess], [gold]).n_correct == sum(map(all, repeated))
    for each in find_inconsistent_names([gold], [guess], 9):
        assert names[tuple(each.name.split())].count(True) == each.n_correct


# --- labels that a tagger does not know


def test_unknown_labels_are_scored_separately():
    scores = evaluate([GOLD], [GUESS], known_labels={"PER", "LOC"})
    strict = evaluate([GOLD], [GUESS])
    assert (scores.micro, scores.macro, scores.per_label) == (strict.micro, strict.macro, strict.per_label)
    assert scores.unknown_labels == {"ORG": 2}
    # Four of seven predicted entities are correct; five gold entities have known labels.
    assert scores.micro_known is not None
    assert (scores.micro_known.precision, scores.micro_known.recall) == (pytest.approx(4 / 7), pytest.approx(4 / 5))
    rows = {row[0]: row for row in scores.rows()}
    assert rows["ORG"] == ("ORG", "-", "-", "-", "2")
    assert list(rows)[-2:] == [KNOWN_LABELS, "micro"]
    assert "gold entities with a label that the model does not know: 2 ORG" in scores.summary()
    assert scores.to_dict()["unknown_labels"] == {"ORG": 2}


@pytest.mark.parametrize("known", [None, {"PER", "LOC", "ORG"}, {"PER", "LOC", "ORG", "MISC"}])
def test_no_unknown_labels(known):
    scores = evaluate([GOLD], [GUESS], known_labels=known)
    assert scores == evaluate([GOLD], [GUESS])
    assert scores.micro_known is None
    assert "know" not in scores.summary()


def test_summary_says_that_the_gold_documents_have_no_entity():
    plain = GOLD.with_tags(["O"] * GOLD.n_tokens)
    assert evaluate([plain], [plain]).summary().startswith("the gold documents have no entity; ")
