"""MUC, B-cubed, CEAF-e and LEA agree with published examples and with the scorer scorch."""

from __future__ import annotations

import json
import random
from collections.abc import Hashable, Sequence

import pytest

from herdner.evaluation.coreference import MEASURES, b_cubed, ceaf_e, evaluate_names, lea, muc
from herdner.text.document import Document
from herdner.text.entity import Entity


def sets(*texts: str) -> list[frozenset[Hashable]]:
    return [frozenset(text) for text in texts]


# Luo 2005, Table 1: a key of three entities and four responses. Figures of MUC and of CEAF with phi 4.
KEY = sets("12345", "67", "89ABC")
RESPONSES = [
    (sets("12345", "6789ABC"), 0.947, 0.733),
    (sets("1234589ABC", "67"), 0.947, 0.667),
    (sets("123456789ABC"), 0.900, 0.294),
    (sets(*"123456789ABC"), 0.0, 0.178),
]


@pytest.mark.parametrize(("response", "expected_muc", "expected_ceaf"), RESPONSES)
def test_luos_example(response: list[frozenset[Hashable]], expected_muc: float, expected_ceaf: float) -> None:
    assert muc(KEY, response).f1 == pytest.approx(expected_muc, abs=6e-4)
    assert ceaf_e(KEY, response).f1 == pytest.approx(expected_ceaf, abs=6e-4)


def test_b_cubed_by_hand() -> None:
    # Bagga and Baldwin 1998: the second response of Luo's table is worse than the first, which MUC does not see.
    scores = [b_cubed(KEY, response) for response, _, _ in RESPONSES[:2]]
    assert [score.precision for score in scores] == pytest.approx([16 / 21, 7 / 12])
    assert [score.recall for score in scores] == [1, 1]


def test_lea_by_hand() -> None:
    # Moosavi and Strube 2016, Section 4: key {a, b, c} and {d, e, f, g}, response {a, b}, {c, d} and {f, g, h, i}.
    score = lea(sets("abc", "defg"), sets("ab", "cd", "fghi"))
    assert score.recall == pytest.approx((3 * 1 / 3 + 4 * 1 / 6) / 7)
    assert score.precision == pytest.approx((2 * 1 + 2 * 0 + 4 * 1 / 6) / 8)


def test_lea_of_single_mentions() -> None:
    score = lea(sets("a", "b", "cd"), sets("a", "bc", "d"))
    assert (score.recall, score.precision) == (1 / 4, 1 / 4)


def random_clusters(rng: random.Random, mentions: Sequence[int]) -> list[frozenset[Hashable]]:
    clusters: dict[int, set[Hashable]] = {}
    for mention in mentions:
        clusters.setdefault(rng.randrange(5), set()).add(mention)
    return [frozenset(cluster) for cluster in clusters.values()]


@pytest.mark.parametrize("seed", range(20))
def test_a_published_scorer_agrees(seed: int) -> None:
    scores = pytest.importorskip("scorch.scores", reason="the scorer scorch is not installed")
    rng = random.Random(seed)
    gold = random_clusters(rng, range(20))
    predicted = random_clusters(rng, range(rng.randrange(6), 20))
    published = {"MUC": scores.muc, "B-cubed": scores.b_cubed, "CEAF-e": scores.ceaf_e}
    for name, measure in published.items():
        recall, precision, f1 = measure([set(c) for c in gold], [set(c) for c in predicted])
        own = MEASURES[name](gold, predicted)
        assert (own.recall, own.precision, own.f1) == pytest.approx((recall, precision, f1))


@pytest.mark.parametrize("measure", MEASURES.values())
def test_equal_names_are_perfect_and_empty_ones_count_nothing(measure) -> None:
    assert measure(KEY, KEY)[0] == measure(KEY, KEY)[1] > 0
    assert measure([], []).f1 == measure(KEY, []).f1 == measure([], KEY).f1 == 0


def document(ids: Sequence[int | None]) -> Document:
    entities = [Entity(2 * i, 2 * i + 1, "PER", "a", None, id) for i, id in enumerate(ids)]
    return Document.from_text("a " * len(ids)).with_proposals(entities)


def test_counts_are_summed_over_documents() -> None:
    gold = [document([0, 0, 1]), document([0, 0])]
    predicted = [document([0, 1, 1]), document([5, 5])]
    scores = evaluate_names(gold, predicted, "gold")
    assert scores.scores["MUC"] == (1, 2, 1, 2)
    assert (scores.n_documents, scores.n_names) == (2, 3)
    assert scores.rows()[-1][-1] == f"{100 * scores.mean_f1:.2f}"
    assert json.loads(scores.to_json())["scores"]["MUC"]["f1"] == 0.5


def test_without_gold_names_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="no gold entity has a `name_id`"):
        evaluate_names([document([None])], [document([0])])
