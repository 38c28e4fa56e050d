"""Laws of Stein sampling: what is true of FWSS, SVGD, quadrature weights and KSD whatever the target."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from gradients import finite_differences

from herdner.studies.fwss import (
    Adam,
    GradientAscent,
    LogisticRegression,
    NeuralRegression,
    SteinField,
    block_fwss,
    eleven_gaussians,
    fwss,
    gaussian_mixture,
    hmc,
    ksd,
    mmd2,
    quadrature_weights,
    sgld,
    stein_kernel,
    stein_points,
    svgd,
)
from herdner.studies.fwss.kernels import gram, rbf

COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.6]])
GAUSSIAN = gaussian_mixture([1.0], [[0.5, -0.2]], [COVARIANCE])
INPUTS = np.random.default_rng(51).normal(size=(60, 3))
LOGISTIC = LogisticRegression(
    INPUTS, (INPUTS[:, 0] + np.random.default_rng(52).normal(size=60) > 0).astype(float)
).target
NEURAL = NeuralRegression(INPUTS, np.sin(INPUTS[:, 0]), units=3).target
ELEVEN = eleven_gaussians()


def gauss_hermite(n=90):
    """Points [n^2, 2] and weights [n^2] that integrate under GAUSSIAN to rounding."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    both = np.multiply.outer(weights, weights).ravel()
    return np.array([0.5, -0.2]) + grid @ np.linalg.cholesky(COVARIANCE).T, both / both.sum()


@pytest.mark.parametrize("h", [0.4, 1.3])
def test_the_drift_is_minus_the_gradient_of_the_mmd_objective(h):
    """<mu - mu_p, k(., x)> = sum_l w_l k(x_l, x) - mu_p(x), where mu_p is known exactly."""
    rng = np.random.default_rng(50)
    particles, x = rng.normal(size=(7, 2)), rng.normal(size=(5, 2))
    weights = rng.dirichlet(np.ones(7))
    objective = lambda at: rbf(at, particles, h) @ weights - GAUSSIAN.kernel_mean.at(at, h)  # noqa: E731
    nodes, shares = gauss_hermite()
    scores = GAUSSIAN.density.grad(nodes)
    repulsion = SteinField(particles, weights, np.zeros((7, 2)), h)(x)
    attraction = SteinField(nodes, shares, scores, h)(x) - SteinField(nodes, shares, 0 * scores, h)(x)
    np.testing.assert_allclose(repulsion + attraction, -finite_differences(objective, x), rtol=1e-6, atol=1e-8)
    away = -finite_differences(lambda at: rbf(at, particles, h) @ weights, x)
    np.testing.assert_allclose(repulsion, away, rtol=1e-6, atol=1e-8)


def test_the_field_of_the_distribution_itself_is_zero():
    rng = np.random.default_rng(64)
    nodes, shares = gauss_hermite()
    field = SteinField(nodes, shares, GAUSSIAN.density.grad(nodes), 0.8)
    assert np.abs(field(rng.normal(size=(9, 2)))).max() < 1e-8


def test_the_field_is_its_sum():
    rng = np.random.default_rng(70)
    particles, x, scores = rng.normal(size=(6, 4)), rng.normal(size=(3, 4)), rng.normal(size=(6, 4))
    weights, h = rng.normal(size=6), 0.7
    wanted = np.zeros((3, 4))
    for m in range(3):
        for w, y, s in zip(weights, particles, scores, strict=True):
            k = np.exp(-((x[m] - y) ** 2).sum() / (2 * h * h))
            wanted[m] += w * k * (s + (x[m] - y) / h**2)
    np.testing.assert_allclose(SteinField(particles, weights, scores, h)(x), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("target", [GAUSSIAN, LOGISTIC], ids=["gaussian", "logistic"])
@pytest.mark.parametrize("step", ["constant", "line-search", "fully-corrective"])
def test_one_particle_from_the_map_start_is_the_mode(target, step):
    rng = np.random.default_rng(83)
    points = fwss(target, 1, init="map", step=step, seed=3)
    assert np.abs(target.density.grad(points.x)).max() < 1e-4
    nearby = points.x + 0.01 * rng.normal(size=(50, target.dim))
    assert (target.density.log_density(nearby) < target.density.log_density(points.x)).all()
    if target is GAUSSIAN:
        np.testing.assert_allclose(points.x[0], [0.5, -0.2], atol=1e-5)


@pytest.mark.parametrize("h", [0.3, 1.0, 3.0])
def test_fully_corrective_weights_solve_the_quadrature_system_and_are_never_worse_than_equal_ones(h):
    mean = ELEVEN.kernel_mean
    for n in (1, 10, 80):
        points = fwss(ELEVEN, n, step="fully-corrective", bandwidth=h, n_steps=20, optimiser=Adam(0.1), seed=n)
        residual = gram(points.x, h) @ points.weights - mean.at(points.x, h)
        assert np.abs(residual).max() < 1e-8
        assert (points.history["jitter"] >= 0).all()
        assert points.history["jitter"][-1] > 0
        assert mmd2(points.x, mean, h, points.weights) <= mmd2(points.x, mean, h) + 1e-12
        again, jitter = quadrature_weights(points.x, mean, h)
        assert jitter < 1e-6
        assert np.abs(gram(points.x, h) @ again - mean.at(points.x, h)).max() < 1e-8


def test_line_search_makes_the_objective_least_along_its_segment():
    mean, h = ELEVEN.kernel_mean, 0.5
    points = fwss(ELEVEN, 12, step="line-search", bandwidth=h, n_steps=20, optimiser=Adam(0.1), seed=4)
    steps = points.history["step"]
    before = np.append(np.ones(1), [])
    for n in range(1, 12):
        values = []
        for step in np.clip(steps[n] + np.array([0.0, -0.02, 0.02]), 0, 1):
            values.append(mmd2(points.x[: n + 1], mean, h, np.append((1 - step) * before, step)))
        assert values[0] <= min(values[1:]) + 1e-12
        before = np.append((1 - steps[n]) * before, steps[n])
    np.testing.assert_allclose(before, points.weights, atol=1e-12)


def test_the_duality_gap_bounds_the_objective_where_the_oracle_is_exact():
    """J(mu) - J(mu_p) <= max_g <mu - mu_p, mu - g>: with the best of many points as g."""
    mean, h = ELEVEN.kernel_mean, 0.5
    points = fwss(ELEVEN, 20, step="constant", bandwidth=h, n_steps=20, optimiser=Adam(0.1), seed=4)
    axis = np.linspace(-4, 4, 120)
    everywhere = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    towards = rbf(everywhere, points.x, h) @ points.weights - mean.at(everywhere, h)
    own = gram(points.x, h) @ points.weights - mean.at(points.x, h)
    gap = points.weights @ own - towards.min()
    assert mmd2(points.x, mean, h) / 2 <= gap


def test_svgd_of_one_particle_is_gradient_ascent():
    start = np.array([[1.0, 1.0, -0.5, 0.3, 0.1]])
    found = svgd(LOGISTIC, 1, n_iterations=25, init=start, optimiser=GradientAscent(0.01), bandwidth=0.7)
    x = start
    for _ in range(25):
        x = x + 0.01 * LOGISTIC.density.grad(x)
    np.testing.assert_allclose(found.x, x, rtol=1e-12)


def test_all_particles_at_once_are_svgd():
    options = {"bandwidth": 0.5, "optimiser": Adam(0.05), "seed": 5}
    together = fwss(ELEVEN, 15, step="constant", n_steps=40, at_once=15, **options)
    np.testing.assert_allclose(together.x, svgd(ELEVEN, 15, n_iterations=40, **options).x, rtol=1e-8, atol=1e-8)


def test_ksd_of_exact_samples_falls_as_one_over_the_root_of_n():
    rng = np.random.default_rng(148)
    sizes = np.array([50, 200, 800])
    squares = []
    for n in sizes:
        draws = [GAUSSIAN.draw(rng, int(n)) for _ in range(24)]
        squares.append(np.mean([ksd(x, GAUSSIAN.density.grad(x), 1.0) ** 2 for x in draws]))
    slope = np.polyfit(np.log(sizes), np.log(squares) / 2, 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.06)


def test_ksd_of_a_wrong_distribution_does_not_fall():
    rng = np.random.default_rng(158)
    x = GAUSSIAN.draw(rng, 800)
    moved = x + np.array([0.5, 0.0])
    wrong = ksd(moved, GAUSSIAN.density.grad(moved), 1.0)
    right = ksd(x, GAUSSIAN.density.grad(x), 1.0)
    assert wrong > 4 * right


def test_the_stein_kernel_is_its_definition_and_has_mean_zero():
    rng = np.random.default_rng(166)
    h, nodes = 0.9, gauss_hermite()
    x, y = rng.normal(size=(2, 4, 2))
    grad = GAUSSIAN.density.grad
    found = stein_kernel(x, grad(x), y, grad(y), h)
    for i in range(4):
        for j in range(4):
            r, s, t = x[i] - y[j], grad(x[i : i + 1])[0], grad(y[j : j + 1])[0]
            k = np.exp(-(r @ r) / (2 * h * h))
            trace = (2 / h**2 - r @ r / h**4) * k
            wanted = trace - (r / h**2 * k) @ t + (r / h**2 * k) @ s + k * (s @ t)
            assert found[i, j] == pytest.approx(wanted, rel=1e-10)
    under_p = stein_kernel(x, grad(x), nodes[0], grad(nodes[0]), h) @ nodes[1]
    assert np.abs(under_p).max() < 1e-8


@pytest.mark.parametrize("workers", [2, 3])
def test_results_are_the_same_for_any_number_of_workers(workers):
    options = {"blocks": 3, "n_steps": 15, "batch_size": 10, "seed": 2, "step": "constant"}
    alone = block_fwss(NEURAL, 4, workers=1, **options)
    together = block_fwss(NEURAL, 4, workers=workers, **options)
    assert np.array_equal(alone.x, together.x)
    assert np.array_equal(alone.weights, together.weights)


@pytest.mark.parametrize("step", ["constant", "line-search", "fully-corrective"])
@pytest.mark.parametrize("init", ["prior", "map"])
def test_block_fwss_with_one_block_is_fwss(step, init):
    options = {"n_steps": 20, "step": step, "init": init, "seed": 6}
    for target, batch in ((ELEVEN, None), (LOGISTIC, 20)):
        one = block_fwss(target, 6, blocks=1, batch_size=batch, **options)
        np.testing.assert_allclose(one.x, fwss(target, 6, batch_size=batch, **options).x, rtol=1e-9, atol=1e-9)


def test_blocks_see_the_other_variables_where_they_began():
    """One step of gradient ascent is the same in blocks: nothing has moved yet."""
    options = {"n_steps": 1, "step": "constant", "seed": 1, "optimiser": GradientAscent(1e-3), "bandwidth": 1.0}
    whole = fwss(LOGISTIC, 8, **options)
    parts = block_fwss(LOGISTIC, 8, blocks=[[0, 4], [3], [2, 1]], workers=2, **options)
    np.testing.assert_allclose(parts.x, whole.x, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("blocks", [2, [[4, 0], [1], [3, 2]]])
def test_blocks_joined_after_each_move_are_fwss(blocks):
    options = {"n_steps": 12, "batch_size": 20, "seed": 6, "bandwidth": 1.0}
    parts = block_fwss(LOGISTIC, 5, blocks=blocks, moves_per_join=1, workers=2, **options)
    np.testing.assert_allclose(parts.x, fwss(LOGISTIC, 5, **options).x, rtol=1e-8, atol=1e-8)
    apart = block_fwss(LOGISTIC, 5, blocks=blocks, moves_per_join=12, **options)
    assert np.abs(apart.x - parts.x).max() > 1e-4


@pytest.mark.parametrize("step", ["constant", "line-search", "fully-corrective"])
@pytest.mark.parametrize("bandwidth", [0.4, "median"])
def test_fwss_continued_is_fwss_not_interrupted(step, bandwidth):
    options = {"step": step, "n_steps": 10, "bandwidth": bandwidth}
    at_once = fwss(ELEVEN, 12, seed=np.random.default_rng(1), **options)
    rng = np.random.default_rng(1)
    half = fwss(ELEVEN, 5, seed=rng, **options)
    whole = fwss(ELEVEN, 12, seed=rng, start=half, **options)
    np.testing.assert_allclose(whole.x, at_once.x, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(whole.weights, at_once.weights, rtol=1e-5, atol=1e-6)
    assert whole.n_gradients == at_once.n_gradients
    assert len(whole.history["seconds"]) == 12
    assert (np.diff(whole.history["seconds"]) >= 0).all()


@pytest.mark.parametrize(
    "run",
    [
        lambda n, **more: sgld(LOGISTIC, n, step_size=1e-3, decay=0.3, n_chains=2, thin=3, batch_size=5, **more),
        lambda n, **more: hmc(GAUSSIAN, n, n_chains=2, n_warmup=30, n_leapfrog=5, thin=2, **more),
        lambda n, **more: stein_points(GAUSSIAN, n, **more),
        lambda n, **more: block_fwss(LOGISTIC, n, blocks=2, step="constant", n_steps=5, batch_size=7, **more),
    ],
    ids=["sgld", "hmc", "stein points", "blocks"],
)  # fmt: skip
def test_others_continued_are_not_interrupted(run):
    at_once = run(16, seed=np.random.default_rng(1))
    rng = np.random.default_rng(1)
    whole = run(16, start=run(6, seed=rng), seed=rng)
    np.testing.assert_allclose(whole.x, at_once.x, rtol=1e-8, atol=1e-8)


def test_svgd_goes_on_with_more_particles():
    first = svgd(ELEVEN, 10, n_iterations=30, bandwidth=0.5, optimiser=GradientAscent(0.1), seed=1)
    more = svgd(ELEVEN, 10, n_iterations=30, bandwidth=0.5, optimiser=GradientAscent(0.1), seed=1, start=first)
    whole = svgd(ELEVEN, 10, n_iterations=60, bandwidth=0.5, optimiser=GradientAscent(0.1), seed=1)
    np.testing.assert_allclose(more.x, whole.x, rtol=1e-9, atol=1e-9)
    grown = svgd(ELEVEN, 25, n_iterations=0, start=first, seed=1)
    assert np.array_equal(grown.x[:10], first.x)
    assert len(grown) == 25


def test_no_array_of_n_by_n_by_d_ever_exists():
    rng = np.random.default_rng(259)
    d, n = 150, 250
    target = gaussian_mixture([1.0], np.zeros((1, d)), np.ones(1))
    x = rng.normal(size=(n, d))
    tracemalloc.start()
    svgd(target, n, n_iterations=2, init=x, bandwidth=5.0)
    fwss(target, n, n_steps=1, init=x, bandwidth=5.0, step="constant")
    ksd(x, -x, 5.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * n * d * 8 / 8
