"""Inverse temperatures per sweep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.inference.gibbs import Annealing, as_annealing, geometric_annealing, linear_annealing

BETAS = st.floats(1e-6, 1e6)


@given(BETAS, BETAS, st.sampled_from([linear_annealing, geometric_annealing]), st.integers(2, 50))
def test_both_ends_are_met_and_the_steps_are_equal(start, end, kind, n_sweeps):
    betas = kind(start, end).betas(n_sweeps)
    assert betas.dtype == np.float64
    assert len(betas) == n_sweeps
    assert (betas[0], betas[-1]) == (start, end)
    steps = np.diff(betas if kind is linear_annealing else np.log(betas))
    np.testing.assert_allclose(steps, steps.mean(), atol=1e-9 * max(start, end, 1))


@pytest.mark.parametrize("kind", [linear_annealing, geometric_annealing])
def test_one_sweep_is_at_the_end_and_no_sweep_is_none(kind):
    assert kind(0.25, 3).betas(1).tolist() == [3.0]
    assert kind(0.25, 3).betas(0).tolist() == []


def test_what_counts_as_an_annealing():
    assert as_annealing(None).betas(3).tolist() == [1, 1, 1]
    assert as_annealing(2).betas(2).tolist() == [2, 2]
    assert as_annealing([0, 0.5, 2]).betas(3).tolist() == [0, 0.5, 2]
    assert as_annealing(linear_annealing(0, 2)) == linear_annealing(0, 2)
    assert as_annealing("linear(0.1, 1)") == linear_annealing(0.1, 1.0)
    assert as_annealing(" Geometric( 0.01,5 ) ") == geometric_annealing(0.01, 5)
    assert Annealing.from_text("linear") == linear_annealing()


@pytest.mark.parametrize("annealing", [linear_annealing(1 / 3, 2), geometric_annealing(1e-9, 5)])
def test_the_text_of_an_annealing_is_its_value(annealing):
    assert as_annealing(str(annealing)) == annealing


def test_a_given_annealing_does_not_change_with_its_source():
    source = np.array([0.5, 1.0])
    annealing = as_annealing(source)
    source[0] = 7
    assert annealing.betas(2).tolist() == [0.5, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        annealing.betas(2)[0] = 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: linear_annealing(-0.1, 1), "start must be a finite inverse temperature of at least 0, not -0.1"),
        (lambda: linear_annealing(0, float("nan")), "end must be a finite"),
        (lambda: geometric_annealing(0, 1), "above 0, not 0; the schedule 'linear' allows 0"),
        (lambda: as_annealing([0.1, -1]), r"annealing\[1\] must be .*, not -1.0"),
        (lambda: as_annealing([0.1, np.inf]), r"annealing\[1\] must be .*, not inf"),
        (lambda: as_annealing([[1.0]]), "one inverse temperature for each sweep"),
        (lambda: as_annealing([0.5, 1]).betas(3), "list 3 inverse temperatures, .* got 2; .* or set n_sweeps=2"),
        (lambda: as_annealing("cubic(1, 2)"), r"must be linear\(start, end\) or geometric\(start, end\), not 'cubic"),
        (lambda: as_annealing("linear(1, 2, 3)"), "not 'linear"),
        (lambda: as_annealing("linear(a)"), "not 'linear"),
        (lambda: as_annealing("linear(1"), "not 'linear"),
        (lambda: as_annealing("linear(1, -2)"), "end must be a finite"),
    ],
)
def test_faults_are_one_line(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
