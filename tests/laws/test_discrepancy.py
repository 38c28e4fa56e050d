"""Counts of herding stay within 1 of their means for two states (HG16 Lemma 1), within K - 1 for K states."""

from __future__ import annotations

import numpy as np
import pytest
from gibbs_families import FAMILIES
from hypothesis import example, given
from hypothesis import strategies as st
from quick import examples
from reference_gibbs import Reference, fixed_point

from herdner.graph import FactorGraph, TableFactors
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs import bin_sharing, blanket_sharing, complete_sharing, neighbour_sum_sharing
from herdner.inference.record import Record

FORMS = ("circular", "threshold")
N_SWEEPS = 2000


def visits(plan: Gibbs, probabilities: np.ndarray, seed: int) -> np.ndarray:
    """Return the states [T, V] after each sweep of isolated variables, each with a row of ``probabilities`` [V, K]."""
    with np.errstate(divide="ignore"):
        unary = TableFactors(np.arange(len(probabilities), dtype=np.int32)[:, None], np.log(probabilities))
    graph = FactorGraph(np.full(probabilities.shape[0], probabilities.shape[1]), [unary])
    return plan.infer(graph, seed).samples[0]


def strays(visited: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return the largest |count - T p| in any window of sweeps s .. s + T, [V, K]."""
    ahead = np.zeros((len(visited) + 1, *probabilities.shape))
    np.cumsum((visited[:, :, None] == np.arange(probabilities.shape[1])) - probabilities, axis=0, out=ahead[1:])
    return ahead.max(axis=0) - ahead.min(axis=0)


def rounding(n_labels: int) -> float:
    """Return the largest effect on counts of rounding probabilities to multiples of 2^-32."""
    return N_SWEEPS * 2.0**-33 * (1 if n_labels == 2 else 2)


PROBABILITIES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 1e-9, 1e-12, 1 - 1e-9, 0.5, 1 / 3, 2.0**-32]))


@examples(40)
@given(st.lists(PROBABILITIES, min_size=1, max_size=40), st.sampled_from(FORMS), st.integers(0, 2**32 - 1))
@example([1e-9, 0.0, 1.0, 1 - 1e-9, 0.5, 1 / 3], "circular", 0)
@example([1e-9, 0.0, 1.0, 1 - 1e-9, 0.5, 1 / 3], "threshold", 0)
def test_two_labels_stay_within_one(ones, form, seed):
    p = np.array(ones)
    plan = Gibbs(N_SWEEPS, sharing=blanket_sharing(), form=form, record=Record(every=1))
    visited = visits(plan, np.stack([1 - p, p], axis=1), seed)
    assert strays(visited, np.stack([1 - p, p], axis=1)).max() <= 1 + rounding(2)
    assert not visited[:, p == 0].any()
    assert visited[:, p == 1].all()


@examples(40)
@given(
    st.integers(3, 12), st.sampled_from([0.02, 0.3, 3.0]), st.integers(0, 2), st.sampled_from(FORMS),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_more_labels_stay_within_their_number_less_one(n_labels, evenness, n_impossible, form, seed):
    p = np.random.default_rng(seed).dirichlet(np.full(n_labels, evenness), size=10)
    p[:, :n_impossible] = 0
    p = p[p.sum(axis=1) > 0]
    p /= p.sum(axis=1, keepdims=True)
    plan = Gibbs(N_SWEEPS, sharing=blanket_sharing(), form=form, record=Record(every=1))
    visited = visits(plan, p, seed)
    assert strays(visited, p).max() <= n_labels - 1 + rounding(n_labels)
    assert not (visited < n_impossible).any()


@pytest.mark.parametrize(
    "sharing", [complete_sharing(), neighbour_sum_sharing(), bin_sharing(1), bin_sharing(7)], ids=str
)
@pytest.mark.parametrize("form", FORMS)
def test_whatever_is_shared_one_variable_has_one_weight(sharing, form):
    for n_labels in (2, 4):
        p = np.random.default_rng(n_labels).dirichlet(np.ones(n_labels), size=1)
        plan = Gibbs(N_SWEEPS, sharing=sharing, form=form, record=Record(every=1))
        assert strays(visits(plan, p, 3), p).max() <= n_labels - 1 + rounding(n_labels)


def test_random_draws_stray_further():
    p = np.full((10, 2), 0.5)
    assert strays(visits(Gibbs(N_SWEEPS, record=Record(every=1)), p, 0), p).min() > 10


def test_a_bound_lets_counts_stray_so_far_and_no_further():
    """HGW19 Algorithm 7: the weight stays within c + 1 of 0, so counts stay within 2 c + 2."""
    p, c = np.full((50, 2), [0.7, 0.3]), 3.0
    plan = Gibbs(N_SWEEPS, sharing=blanket_sharing(), error_bound=c, form="threshold", record=Record(every=1))
    far = strays(visits(plan, p, 0), p)
    assert far.max() <= 2 * c + 2
    assert far.min() > c, "as far as this, draws are random"


@pytest.mark.parametrize(("form", "bound"), [("circular", 1.0), ("threshold", 2.0)])
@pytest.mark.parametrize("n_bins", [1, 4])
def test_a_weight_that_sees_several_probabilities_follows_their_sum(form, bound, n_bins):
    """DHG: over the updates of one weight, the count of state 1 is near the sum of the probabilities."""
    reference = Reference(Gibbs(400, sharing=bin_sharing(n_bins), form=form), FAMILIES["binary_ring"], 1)
    labels = np.array(reference.states[1:]).ravel()
    gaps: dict = {}
    for label, (i, p) in zip(labels, reference.conditionals, strict=True):
        key = i, reference.key_of(i, [], fixed_point(p))
        gaps.setdefault(key, [0.0]).append(gaps.get(key, [0.0])[-1] + label - p[1])
    far = [max(gap) - min(gap) for gap in gaps.values()]
    assert len(far) > 5
    assert max(far) <= bound + 1e-6
    assert max(far) > bound / 2
