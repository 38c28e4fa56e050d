"""Targets: every gradient against finite differences, densities against their definitions, data that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import finite_differences
from scipy import stats

from herdner.graph import FactorGraph, Reals
from herdner.studies.fwss import (
    LogisticRegression,
    NeuralRegression,
    Target,
    density_target,
    eleven_gaussians,
    gaussian_mixture,
)
from herdner.studies.fwss.kernels import SampleMean

INPUTS = np.random.default_rng(51).normal(size=(40, 4))
LABELS = (INPUTS[:, 0] + np.random.default_rng(52).normal(size=40) > 0).astype(float)
NUMBERS = np.sin(INPUTS[:, 0]) * 3 + 10 + 0.1 * np.random.default_rng(53).normal(size=40)
COVARIANCES = np.array([[[1.0, 0.4], [0.4, 0.5]], [[0.3, -0.1], [-0.1, 0.2]]])
SKEWED = gaussian_mixture([0.3, 0.7], [[0.0, 1.0], [2.0, -1.0]], COVARIANCES)
LOGISTIC = LogisticRegression(INPUTS, LABELS)
NEURAL = NeuralRegression(INPUTS, NUMBERS, units=3)
TARGETS = {
    "eleven": eleven_gaussians(),
    "skewed": SKEWED,
    "logistic": LOGISTIC.target,
    "neural": NEURAL.target,
    "own": density_target(lambda x: -(x**4).sum(axis=1), lambda x: -4 * x**3, dim=3),
}


@pytest.mark.parametrize("name", TARGETS)
def test_gradients_are_the_finite_differences(name):
    rng = np.random.default_rng(39)
    chosen: Target = TARGETS[name]
    x = rng.normal(size=(6, chosen.dim)) * 0.7
    wanted = finite_differences(chosen.density.log_density, x)
    np.testing.assert_allclose(chosen.density.grad(x), wanted, rtol=2e-6, atol=2e-5)
    one_by_one = np.concatenate([chosen.density.grad(row[None]) for row in x])
    np.testing.assert_allclose(one_by_one, chosen.density.grad(x), rtol=1e-10, atol=1e-10)
    if chosen.density.n_terms:
        terms = np.arange(0, chosen.density.n_terms, 2)
        rest = np.arange(1, chosen.density.n_terms, 2)
        both = (chosen.density.grad(x, terms) + chosen.density.grad(x, rest)) / 2
        np.testing.assert_allclose(both, chosen.density.grad(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", TARGETS)
def test_starting_points_come_from_the_generator(name):
    chosen = TARGETS[name]
    first, again = (chosen.prior(np.random.default_rng(4), 5) for _ in range(2))
    assert first.shape == (5, chosen.dim)
    assert np.array_equal(first, again)
    assert np.isfinite(chosen.density.log_density(first)).all()


def test_the_mixture_is_the_mixture():
    rng = np.random.default_rng(62)
    x = rng.normal(size=(10, 2))
    wanted = np.log(
        0.3 * stats.multivariate_normal([0.0, 1.0], COVARIANCES[0]).pdf(x)
        + 0.7 * stats.multivariate_normal([2.0, -1.0], COVARIANCES[1]).pdf(x)
    )
    np.testing.assert_allclose(SKEWED.density.log_density(x), wanted, rtol=1e-12)
    draws = SKEWED.draw(np.random.default_rng(1), 40_000)
    np.testing.assert_allclose(draws.mean(axis=0), [1.4, -0.4], atol=0.03)
    assert len(eleven_gaussians().kernel_mean.weights) == 11


@pytest.mark.parametrize("bandwidth", [0.3, 1.5])
def test_the_kernel_mean_of_a_mixture_is_that_of_its_samples(bandwidth):
    rng = np.random.default_rng(75)
    sampled = SampleMean(SKEWED.draw(np.random.default_rng(2), 20_000))
    x = rng.normal(size=(6, 2))
    np.testing.assert_allclose(SKEWED.kernel_mean.at(x, bandwidth), sampled.at(x, bandwidth), atol=0.01)
    exact = SKEWED.kernel_mean.squared_norm(bandwidth)
    apart = SKEWED.kernel_mean.at(sampled.samples, bandwidth).mean()
    assert apart == pytest.approx(exact, abs=0.005)


def test_logistic_regression_is_its_definition():
    rng = np.random.default_rng(84)
    x = rng.normal(size=(3, 6))
    wanted = []
    for *w, log_alpha in x:
        p = 1 / (1 + np.exp(-(INPUTS @ w[:4] + w[4])))
        alpha = np.exp(log_alpha)
        prior = stats.norm(0, alpha**-0.5).logpdf(w).sum() + stats.gamma(1, scale=100).logpdf(alpha) + log_alpha
        wanted.append(prior + np.log(np.where(LABELS == 1, p, 1 - p)).sum())
    found = LOGISTIC.target.density.log_density(x)
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), rtol=1e-10)
    assert LOGISTIC.target.dim == 6
    p = LOGISTIC.predict(x, np.array([1.0, 2.0, 1.0]), INPUTS[:2])
    each = [1 / (1 + np.exp(-(INPUTS[:2] @ w[:4] + w[4]))) for w in x]
    np.testing.assert_allclose(p, (each[0] + 2 * each[1] + each[2]) / 4, rtol=1e-12)


def by_hand(theta, inputs):
    """The network in scaled units."""
    first, b, second = theta[:12].reshape(4, 3), theta[12:15], theta[15:18]
    return np.maximum(inputs @ first + b, 0) @ second + theta[18]


def test_neural_regression_is_its_definition():
    rng = np.random.default_rng(106)
    x = rng.normal(size=(3, 21)) * 0.5
    scaled = (INPUTS - INPUTS.mean(axis=0)) / INPUTS.std(axis=0)
    y = (NUMBERS - NUMBERS.mean()) / NUMBERS.std()
    wanted = []
    for theta in x:
        gamma, lam = np.exp(theta[-2]), np.exp(theta[-1])
        precisions = stats.gamma(1, scale=10)
        total = stats.norm(0, lam**-0.5).logpdf(theta[:19]).sum()
        total += precisions.logpdf(gamma) + precisions.logpdf(lam) + theta[-2] + theta[-1]
        wanted.append(total + stats.norm(by_hand(theta, scaled), gamma**-0.5).logpdf(y).sum())
    found = NEURAL.target.density.log_density(x)
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), rtol=1e-9)
    means, deviations = NEURAL.predict(x, INPUTS[:5])
    np.testing.assert_allclose(means[1], NUMBERS.mean() + NUMBERS.std() * by_hand(x[1], scaled[:5]), rtol=1e-12)
    rmse, likelihood = NEURAL.score(x, np.array([1.0, 0.0, 3.0]), INPUTS[:5], NUMBERS[:5])
    shares = np.array([0.25, 0, 0.75])
    assert rmse == pytest.approx(np.sqrt(((NUMBERS[:5] - shares @ means) ** 2).mean()))
    densities = np.array([stats.norm(m, s).pdf(NUMBERS[:5]) for m, s in zip(means, deviations, strict=True)])
    assert likelihood == pytest.approx(np.log(shares @ densities).mean())


def test_the_paper_s_numbers_of_variables():
    rng = np.random.default_rng(128)
    for inputs, units, wanted in ((17, 50, 953), (9, 50, 553), (90, 100, 9203)):
        data = rng.normal(size=(5, inputs))
        assert NeuralRegression(data, data[:, 0], units).target.dim == wanted


def test_noise_is_fitted_where_that_helps():
    x = NEURAL.draw_start(np.random.default_rng(2), 4)
    fitted = NEURAL.fit_noise(x, INPUTS, NUMBERS)
    for before, after in zip(x, fitted, strict=True):
        old, new = (NEURAL.score(row[None], np.ones(1), INPUTS, NUMBERS)[1] for row in (before, after))
        assert new >= old - 1e-12


def test_columns_that_never_change_do_no_harm():
    data = np.column_stack([INPUTS, np.full(40, 7.0), np.full(40, 0.1 + 0.2)])
    density = NeuralRegression(data, NUMBERS, units=3).target.density
    assert np.isfinite(density.grad(np.ones((1, density.dim)))).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gaussian_mixture([0.5, 0.6], np.zeros((2, 2)), np.ones(2)), "positive numbers with sum 1"),
        (lambda: gaussian_mixture([1.0], [0.0], np.ones(1)), "`means` must have shape"),
        (lambda: gaussian_mixture([1.0], [[0.0, 0.0]], np.ones((1, 3, 3))), "`covariances` must have shape"),
        (lambda: gaussian_mixture([1.0], [[0.0]], [-1.0]), "symmetric and positive definite"),
        (lambda: LogisticRegression(INPUTS, NUMBERS), "must be 0 or 1"),
        (lambda: LogisticRegression(INPUTS, LABELS[:3]), "inputs"),
        (lambda: NeuralRegression(np.full((3, 2), np.nan), np.zeros(3)), "finite"),
        (lambda: NeuralRegression(INPUTS, NUMBERS, units=0), "units must be a whole number of at least 1"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_graph_is_a_target():
    graph = FactorGraph(Reals(2), SKEWED.graph.factors)
    assert Target(graph).dim == 2
