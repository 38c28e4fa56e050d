"""Laplace's approximation, whitening, and Stein sampling with a kernel for each variable."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import finite_differences

from herdner.studies.fwss import (
    Adam,
    DivergenceError,
    GradientAscent,
    density_target,
    fit_laplace,
    fwss,
    gaussian_mixture,
    local_fwss,
)
from herdner.studies.fwss.local import LocalField, bandwidths
from herdner.studies.fwss.stein import SteinField


def normal(d: int, seed: int = 0):
    """A normal target with scales from 0.01 to 10 and random correlations."""
    rng = np.random.default_rng(seed)
    root = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.geomspace(0.01, 10, d)
    mean, precision = rng.normal(size=d), np.linalg.inv(root @ root.T)
    log_density = lambda x: -0.5 * np.einsum("pi,ij,pj->p", x - mean, precision, x - mean)  # noqa: E731
    return density_target(log_density, lambda x: -(x - mean) @ precision, dim=d), mean, root @ root.T


def test_laplace_of_a_normal_distribution_is_that_distribution():
    given, mean, covariance = normal(4)
    found = fit_laplace(given, np.zeros(4))
    assert found.mode == pytest.approx(mean, abs=1e-5)
    assert found.root @ found.root.T == pytest.approx(covariance, rel=1e-4, abs=1e-6)


def test_a_whitened_normal_distribution_is_a_standard_one():
    given, *_ = normal(3)
    whitened = fit_laplace(given, np.zeros(3)).whiten(given)
    z = np.random.default_rng(1).normal(size=(5, 3))
    assert whitened.density.grad(z) == pytest.approx(-z, abs=1e-3)
    assert whitened.density.grad(z) == pytest.approx(finite_differences(whitened.density.log_density, z), abs=1e-4)


def test_whitened_points_have_the_density_of_what_they_stand_for():
    given = gaussian_mixture([0.3, 0.7], [[0.0, 0.0], [1.0, 0.5]], [1.0, 0.5])
    found, z = fit_laplace(given, np.ones(2)), np.random.default_rng(1).normal(size=(5, 2))
    assert found.whiten(given).density.log_density(z) == pytest.approx(given.density.log_density(found.points(z)))


def test_a_density_that_is_flat_in_a_direction_is_refused():
    flat = density_target(lambda x: -(x[:, 0] ** 2), lambda x: x * [-2.0, 0.0], dim=2)
    with pytest.raises(ValueError, match="does not decrease in every direction"):
        fit_laplace(flat, np.ones(2))


def test_the_local_field_is_the_field_of_stein_for_each_variable_alone():
    rng = np.random.default_rng(0)
    points, scores, x = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.normal(size=(2, 3))
    weights, each = rng.random(6), np.array([0.3, 0.7, 2.0])
    found = LocalField(points, weights, scores, each)(x)
    for i in range(3):
        alone = SteinField(points[:, i : i + 1], weights, scores[:, i : i + 1], each[i])
        assert found[:, i : i + 1] == pytest.approx(alone(x[:, i : i + 1]), abs=1e-12)


def test_for_one_variable_it_is_fwss():
    given = gaussian_mixture([0.5, 0.5], [[-1.0], [1.0]], [0.5, 0.3])
    options = {"bandwidth": 0.4, "n_steps": 30, "optimiser": GradientAscent(0.1), "seed": 3}
    plain = fwss(given, 10, step="constant", **options)
    assert local_fwss(given, 10, **options).x == pytest.approx(plain.x, abs=1e-9)


def test_it_keeps_the_spread_of_more_variables_than_particles():
    given = density_target(lambda x: -0.5 * (x**2).sum(axis=1), lambda x: -x, dim=100)
    options = {"n_steps": 20, "optimiser": Adam(0.2, final=0.01), "init": np.zeros((1, 100)), "seed": 0}
    local, plain = local_fwss(given, 32, **options), fwss(given, 32, step="constant", **options)
    assert 0.65 < local.x.var(axis=0).mean() < 1
    assert plain.x.var(axis=0).mean() < 0.2
    assert np.abs(local.x.mean(axis=0)).mean() < 0.1
    assert (local.weights == 1 / 32).all()


def test_a_run_goes_on_and_repeats():
    given, *_ = normal(3)
    whole = local_fwss(given, 9, bandwidth=0.5, optimiser=Adam(0.01), seed=np.random.default_rng(4))
    rng = np.random.default_rng(4)
    half = local_fwss(given, 4, bandwidth=0.5, optimiser=Adam(0.01), seed=rng)
    assert (local_fwss(given, 9, bandwidth=0.5, optimiser=Adam(0.01), start=half, seed=rng).x == whole.x).all()


def test_the_bandwidths_are_medians_of_each_variable():
    x = np.array([[0.0, 5.0], [1.0, 5.0], [3.0, 5.0]])
    assert bandwidths(x) == pytest.approx([np.sqrt(4 / (2 * np.log(4))), 1.0])


def test_bad_use_is_told():
    given, *_ = normal(2)
    for options, words in (
        ({"bandwidth": "ksd"}, "bandwidth"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"init": "map"}, "init"),
        ({"init": np.zeros((1, 3))}, "init"),
        ({"n_steps": -1}, "n_steps"),
    ):
        with pytest.raises(ValueError, match=words):
            local_fwss(given, 3, **options)
    with pytest.raises(ValueError, match="n_particles"):
        local_fwss(given, 0)
    with pytest.raises(DivergenceError, match="particle 0"):
        local_fwss(given, 3, optimiser=GradientAscent(1e300))
