"""Weights of chains, put together: against plain dictionaries."""

from __future__ import annotations

import numpy as np
import pytest

from herdner.crf.weights import ChainWeights

LABELS = "O", "B-PER", "I-PER"


def drawn(seed: int, labels: tuple[str, ...] = LABELS) -> ChainWeights:
    """Forty weights of some of thirty features."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(30 * len(labels), 40, replace=False)
    keys, tags = (pairs // len(labels) + 1).astype(np.uint64), (pairs % len(labels)).astype(np.uint8)
    return ChainWeights.from_entries(labels, rng.normal(size=(len(labels),) * 2), keys, tags, rng.normal(size=40))


def entries(weights: ChainWeights) -> dict[tuple[int, int], float]:
    pairs = zip(weights.entry_keys.tolist(), weights.entry_tags.tolist(), strict=True)
    return dict(zip(pairs, weights.entry_weights.tolist(), strict=True))


def test_the_mean_of_chains_counts_what_one_lacks_as_0() -> None:
    several = [drawn(seed) for seed in range(3)]
    dictionaries = [entries(each) for each in several]
    expected = {key: sum(each.get(key, 0.0) for each in dictionaries) / 3 for each in dictionaries for key in each}
    found = ChainWeights.mean(several)
    assert entries(found) == pytest.approx(expected)
    assert len(expected) < 3 * 40
    np.testing.assert_allclose(found.transition, sum(each.transition for each in several) / 3)
    assert (np.diff(found.keys.astype(np.int64)) > 0).all()


def test_the_mean_of_one_chain_is_that_chain() -> None:
    one = drawn(5)
    assert entries(ChainWeights.mean([one, one])) == pytest.approx(entries(one))


def test_chains_with_other_tags_have_no_mean() -> None:
    with pytest.raises(ValueError, match="chains with different tags cannot be averaged"):
        ChainWeights.mean([drawn(0), drawn(1, ("O", "B-LOC", "I-LOC"))])


def test_weights_are_added_by_feature_and_tag() -> None:
    base, more = drawn(6), drawn(7)
    expected = entries(base)
    for key, value in entries(more).items():
        expected[key] = expected.get(key, 0.0) + value
    assert entries(more.add_to(base)) == pytest.approx(expected)
