"""Herding over a finite set: the laws of its counts and moments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

import herdner
from herdner.studies import herding
from herdner.studies.herding import herd, herd_categorical

ODD = [0.0, 1e-9, 1e-3, 0.1, 1 / 3, 0.5, 1.0]


@st.composite
def distributions(draw, most=7):
    shares = np.array(draw(st.lists(st.one_of(st.sampled_from(ODD), st.floats(0, 1)), min_size=1, max_size=most)))
    return shares / shares.sum() if shares.sum() > 0 else np.eye(len(shares))[0]


def worst_deviation(samples, p):
    """The largest |count - T p| over all T and labels."""
    counts = np.cumsum(samples[:, None] == np.arange(len(p)), axis=0)
    return np.abs(counts - np.arange(1, len(samples) + 1)[:, None] * p).max()


@examples(200)
@given(distributions(), st.integers(0, 3000), st.none() | st.integers(0, 10**6))
def test_counts_stay_within_labels_less_one(p, n_samples, seed):
    samples = herd_categorical(p, n_samples, seed=seed).samples
    assert len(samples) == n_samples
    assert (p[samples] > 0).all()
    if n_samples:
        assert worst_deviation(samples, p) <= max(1, len(p) - 1) + 1e-9


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.3, 1 / 3, 0.5, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("seed", [None, 1])
def test_two_labels_stay_within_one(p, seed):
    pair = np.array([1 - p, p])
    assert worst_deviation(herd_categorical(pair, 10**6, seed=seed).samples, pair) <= 1 + 1e-9


def test_rare_labels_come_in_their_time():
    samples = herd_categorical([1 - 2**-16, 2**-16], 150_000, weights=[0, 0]).samples
    assert np.flatnonzero(samples).tolist() == [1, 2**16 + 1, 2**17 + 1]


def by_hand(features, moments, weights, n_samples):
    """HG16 eq. 1, as it stands there."""
    samples = []
    for _ in range(n_samples):
        samples.append(int(np.argmax(features @ weights)))
        weights = weights + moments - features[samples[-1]]
    return samples, weights


@examples(100)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 5))
def test_any_feature_map_follows_the_equation(seed, n_points, n_features):
    rng = np.random.default_rng(seed)
    features = rng.integers(-8, 9, (n_points, n_features)) / 8  # sums without rounding
    moments, weights = rng.integers(-8, 9, n_features) / 8, rng.integers(-8, 9, n_features) / 8
    samples, ended = by_hand(features, moments, weights, 200)
    found = herd(features, moments, 200, weights)
    assert found.samples.tolist() == samples
    assert found.weights.tolist() == ended.tolist()
    first = herd(features, moments, 90, weights)
    assert first.samples.tolist() + herd(features, moments, 110, first.weights).samples.tolist() == samples


@examples(50)
@given(st.integers(0, 10**6))
def test_moments_are_met_as_one_over_t(seed):
    """T times the error has no growth: its largest value up to 40000 samples is near that up to 10000."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(6, 3))
    moments = rng.dirichlet(np.ones(6)) @ features
    samples = herd(features, moments, 40_000, seed=seed).samples
    errors = np.linalg.norm(np.cumsum(features[samples] - moments, axis=0), axis=1)
    assert errors.max() <= 2 * errors[:10_000].max() + 1


def test_indicators_give_the_categorical_samples():
    p = np.array([3, 0, 4, 1]) / 8
    assert np.array_equal(herd(np.eye(4), p, 500).samples, herd_categorical(p, 500).samples)


def test_a_run_can_be_continued():
    p = np.random.default_rng(3).dirichlet(np.ones(5))
    whole, first = herd_categorical(p, 1000, seed=4), herd_categorical(p, 300, seed=4)
    rest = herd_categorical(p, 700, first.weights)
    assert np.array_equal(np.concatenate([first.samples, rest.samples]), whole.samples)
    assert np.array_equal(rest.weights, whole.weights)
    assert not np.array_equal(herd_categorical(p, 1000, seed=5).samples, whole.samples)


def test_pieces_change_nothing(monkeypatch):
    features = np.random.default_rng(6).normal(size=(5, 2))
    whole = herd(features, features.mean(axis=0), 1000, seed=1)
    monkeypatch.setattr(herding, "_OPERATIONS", 70)
    pieces = herd(features, features.mean(axis=0), 1000, seed=1)
    assert np.array_equal(whole.samples, pieces.samples)
    assert len(np.unique(whole.samples[-100:])) > 1


def test_random_starts_are_unbiased():
    """Each of the first samples, over many seeds, has the distribution p; from zeros they have not (HGW19 Sec. 2.3)."""
    p = np.array([0.2, 0.8])
    first = np.array([herd_categorical(p, 5, seed=seed).samples for seed in range(2000)])
    assert first.mean(axis=0) == pytest.approx([0.8] * 5, abs=0.04)


def test_moments_out_of_reach_let_the_weights_grow():
    found = herd([[0.0], [1.0]], [1.5], 1000)
    assert found.samples.tolist() == [1] * 1000
    assert found.weights[0] == pytest.approx(1.5 + 1000 * 0.5)


def test_the_module_is_at_hand():
    assert herdner.studies.herding.herd is herd


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: herd([1.0, 2.0], [1.0], 5), "`features` must have shape"),
        (lambda: herd(np.empty((0, 2)), [1.0, 1.0], 5), "`features` must have shape"),
        (lambda: herd([[1.0, 2.0]], [1.0], 5), "`moments` must have shape .2., got"),
        (lambda: herd([[1.0]], [np.nan], 5), "moments must hold finite numbers"),
        (lambda: herd([[1.0]], [1.0], 5, weights=[1, 2]), "`weights` must have shape .1., got"),
        (lambda: herd([[1.0]], [1.0], -5), "n_samples must be a whole number of at least 0, not -5"),
        (lambda: herd_categorical([0.5, 0.6], 5), r"non-negative with sum 1, got \[0.5, 0.6\]"),
        (lambda: herd_categorical([1.5, -0.5], 5), "non-negative with sum 1"),
        (lambda: herd_categorical([], 5), "non-negative with sum 1"),
        (lambda: herd_categorical([0.5, 0.5], 5, weights=[1e9, 0]), "`weights` must be between -2 and 2"),
    ],
)
def test_faults_are_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@examples(100)
@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_no_weight_leaves_its_bound_whatever_the_probabilities(n, seed):
    """The sum of the k largest weights is at most 3k(n - k)/2 above k times their mean: packed weights rely on it."""
    rng, weights, bounds = np.random.default_rng(seed), np.zeros(n), 1.5 * np.arange(n) * (n - np.arange(n))
    for _ in range(300):
        p = np.where(rng.random(n) < rng.random(), rng.exponential(size=n), 0.0)
        if rng.random() < 0.7:  # against it: a part in p for the largest of the smaller ones, which are chosen
            ranks = np.argsort(-weights)
            p = np.zeros(n)
            p[ranks[rng.integers(0, n - 1) :][:2]] = 1.0, rng.choice([1e-9, 0.5, 1.0])
        if not p.any():
            continue
        p /= p.sum()
        chosen = np.argmax(np.where(p > 0, weights + p, -np.inf))
        weights += p
        weights[chosen] -= 1
        sums = np.concatenate([[0.0], np.cumsum(np.sort(weights)[::-1])])
        assert (sums[:n] <= bounds + 1e-9).all()
