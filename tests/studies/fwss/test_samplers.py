"""Each sampler on targets whose answer is known, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kstest

from herdner.studies.fwss import (
    Adam,
    DivergenceError,
    GradientAscent,
    LogisticRegression,
    MixtureMean,
    block_fwss,
    cached_fwss,
    density_target,
    effective_sample_size,
    eleven_gaussians,
    fwss,
    gaussian_mixture,
    hmc,
    ksd,
    ksd_bandwidth,
    lazy_fwss,
    median_bandwidth,
    mmd2,
    quadrature_weights,
    sgld,
    stein_points,
    stein_weights,
    svgd,
)
from herdner.studies.fwss.kernels import SampleMean, gram
from herdner.studies.fwss.particles import _candidates
from herdner.studies.fwss.points import Points
from herdner.studies.fwss.quadrature import GramSystem

COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.8]])
GAUSSIAN = gaussian_mixture([1.0], [[3.0, -1.0]], [COVARIANCE])
ELEVEN = eleven_gaussians()
INPUTS = np.random.default_rng(51).normal(size=(60, 3))
LOGISTIC = LogisticRegression(INPUTS, (INPUTS[:, 0] > 0).astype(float)).target
H = 0.5


def iid(n: int) -> float:
    """The mean MMD^2 of n exact samples of ELEVEN: (1 - |mu_p|^2) / n."""
    return (1 - ELEVEN.kernel_mean.squared_norm(H)) / n


@pytest.mark.slow
@pytest.mark.parametrize("step", ["constant", "line-search", "fully-corrective"])
@pytest.mark.parametrize("options", [{}, {"at_once": 10}, {"blocks": 2}], ids=["one by one", "at once", "blocks"])
def test_fwss_is_better_than_exact_samples_of_the_same_number(step, options):
    run = block_fwss if "blocks" in options else fwss
    points = run(ELEVEN, 60, step=step, bandwidth=H, optimiser=Adam(0.2, 0.02), seed=1, **options)
    share = {"constant": 0.9, "line-search": 0.6, "fully-corrective": 0.3}[step]
    # A block that starts far away sees no neighbours, and goes to a mode whatever is there (App. F).
    far = 3 if "blocks" in options else 1
    assert mmd2(points.x, ELEVEN.kernel_mean, H, points.weights) < share * far * iid(60)
    assert len(points) == 60


def test_without_the_kernel_mean_the_scores_do():
    points = fwss(GAUSSIAN, 40, step="fully-corrective", kernel_mean="stein", bandwidth=1.0, seed=2)
    mean = GAUSSIAN.kernel_mean
    assert mmd2(points.x, mean, 1.0, points.weights) < 0.2 * mmd2(points.x, mean, 1.0)
    np.testing.assert_allclose(points.weights, stein_weights(points.x, points.scores, 1.0), rtol=1e-3, atol=1e-5)
    assert points.expect(lambda x: x[:, 0]) == pytest.approx(3.0, abs=0.05)


def test_samples_can_stand_for_the_kernel_mean():
    samples = ELEVEN.draw(np.random.default_rng(1), 4000)
    points = fwss(ELEVEN, 40, step="fully-corrective", kernel_mean=samples, bandwidth=H, seed=2)
    wanted = SampleMean(samples).at(points.x, H)
    assert np.abs(gram(points.x, H) @ points.weights - wanted).max() < 1e-8


@pytest.mark.parametrize("bandwidth", ["median", "ksd"])
def test_bandwidth_rules_follow_the_particles(bandwidth):
    points = fwss(GAUSSIAN, 40, bandwidth=bandwidth, n_steps=80, seed=3, step="constant")
    used = points.history["bandwidth"]
    assert len(np.unique(used)) > 5
    assert 0.05 < used[-1] < 3
    by_chance = (1 - GAUSSIAN.kernel_mean.squared_norm(H)) / 40
    # The paper too finds the rule by KSD the less stable one.
    assert mmd2(points.x, GAUSSIAN.kernel_mean, H) < {"median": 0.8, "ksd": 1.8}[bandwidth] * by_chance


def test_cached_fwss_needs_few_steps():
    cache = svgd(ELEVEN, 60, n_iterations=200, bandwidth=H, seed=1)
    points = cached_fwss(ELEVEN, 60, cache=cache, step="constant", bandwidth=H, seed=1)
    assert mmd2(points.x, ELEVEN.kernel_mean, H) < 0.6 * iid(60)
    more = cached_fwss(ELEVEN, 70, cache=cache, step="constant", bandwidth=H, seed=1, n_steps=0)
    used = (more.x[:, None] == cache.x).all(axis=2)
    assert used.any(axis=0).all()  # each point of the cache once
    assert used.sum() == 60


@pytest.mark.parametrize("step", ["line-search", "fully-corrective"])
@pytest.mark.parametrize("kernel_mean", [None, "stein"])
def test_lazy_fwss_takes_the_best_of_its_cache(step, kernel_mean):
    cache = svgd(ELEVEN, 100, n_iterations=200, bandwidth=H, seed=1)
    points = lazy_fwss(ELEVEN, 30, cache=cache, step=step, kernel_mean=kernel_mean, bandwidth=H, seed=1)
    found = mmd2(points.x, ELEVEN.kernel_mean, H, points.weights)
    assert found < iid(30)
    # Far fewer gradients than moving each particle would take.
    assert points.n_gradients < 100 + 60 + 30 * 10
    goes_on = lazy_fwss(ELEVEN, 50, cache=cache, step=step, kernel_mean=kernel_mean, bandwidth=H, seed=1, start=points)
    assert np.array_equal(goes_on.x[: len(points)], points.x)
    assert len(goes_on) > len(points)
    assert len(np.unique(goes_on.x, axis=0)) == len(goes_on)


def test_lazy_fwss_moves_points_when_the_cache_is_poor():
    points = lazy_fwss(
        ELEVEN,
        25,
        cache=ELEVEN.prior(np.random.default_rng(0), 4),
        n_steps=40,
        optimiser=Adam(0.1),
        bandwidth=H,
        seed=2,
    )
    assert len(points) == 25
    assert mmd2(points.x, ELEVEN.kernel_mean, H, points.weights) < iid(25)


def test_svgd_spreads_over_the_target():
    points = svgd(ELEVEN, 60, n_iterations=400, seed=1)
    assert mmd2(points.x, ELEVEN.kernel_mean, H) < 0.7 * iid(60)
    assert effective_sample_size(points.weights) == pytest.approx(60)


@pytest.mark.parametrize(
    "options",
    [
        {"search": "monte-carlo"},
        {"search": "nelder-mead"},
        {"search": "grid", "box": [[-4, 4], [-4, 4]], "resolution": 60},
        {"search": "grid", "box": [[-4, 4], [-4, 4]], "resolution": 60, "objective": "herding"},
        {"search": "monte-carlo", "box": [[-2, 2], [-2, 2]]},
    ],
    ids=["monte carlo", "nelder-mead", "grid", "herding", "in a box"],
)
def test_stein_points_make_ksd_small(options):
    rng = np.random.default_rng(148)
    points = stein_points(ELEVEN, 30, seed=1, bandwidth=1.0, **options)
    draws = [ELEVEN.draw(rng, 30) for _ in range(20)]
    by_chance = np.mean([ksd(x, ELEVEN.density.grad(x), 1.0) for x in draws])
    assert ksd(points.x, points.scores, 1.0) < 0.75 * by_chance
    if "box" in options:
        assert np.abs(points.x).max() <= options["box"][0][1]


def test_the_grid_finds_the_least_of_all_nodes():
    points = stein_points(GAUSSIAN, 6, search="grid", box=[[0, 6], [-4, 2]], resolution=13)
    axes = np.linspace(0, 6, 13), np.linspace(-4, 2, 13)
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    totals = []
    for node in nodes:
        x = np.concatenate([points.x[:5], node[None]])
        totals.append(ksd(x, GAUSSIAN.density.grad(x), 1.0))
    x = points.x
    assert ksd(x, GAUSSIAN.density.grad(x), 1.0) == pytest.approx(min(totals), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [hmc, sgld, svgd])
def test_a_continued_run_includes_the_time_of_the_earlier_run(sampler):
    earlier = replace(sampler(GAUSSIAN, 8, seed=1), seconds=1000.0)
    assert sampler(GAUSSIAN, 16, seed=1, start=earlier).seconds > 1000


def test_hmc_draws_from_the_target():
    points = hmc(GAUSSIAN, 6000, n_chains=10, n_leapfrog=8, seed=1)
    np.testing.assert_allclose(points.x.mean(axis=0), [3.0, -1.0], atol=0.06)
    np.testing.assert_allclose(np.cov(points.x.T), COVARIANCE, atol=0.08)
    assert (np.abs(points.history["acceptance"] - 0.8) < 0.17).all()
    fixed = hmc(GAUSSIAN, 2000, n_chains=10, seed=1, step_size=0.3, thin=2, n_warmup=100)
    np.testing.assert_allclose(fixed.x.mean(axis=0), [3.0, -1.0], atol=0.1)


def test_sgld_draws_from_the_target_when_its_steps_are_small():
    points = sgld(GAUSSIAN, 20_000, step_size=0.05, burn_in=500, n_chains=10, thin=5, seed=1)
    np.testing.assert_allclose(points.x.mean(axis=0), [3.0, -1.0], atol=0.1)
    np.testing.assert_allclose(np.cov(points.x.T), COVARIANCE, atol=0.12)


def test_expectations_are_weighted_sums():
    points = Points(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.25, 0.75]))
    assert points.expect(lambda x: x[:, 0]) == pytest.approx(2.5)
    np.testing.assert_allclose(points.expect(lambda x: x**2), [7.0, 13.0])
    with pytest.raises(ValueError, match=r"must return an array of shape .2. or .2, ..."):
        points.expect(lambda x: x.sum())


def test_mmd_is_its_definition():
    rng = np.random.default_rng(193)
    x, y, w = rng.normal(size=(5, 3)), rng.normal(size=(8, 3)), rng.dirichlet(np.ones(5))
    k = lambda a, b: np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / (2 * 0.9**2))  # noqa: E731
    wanted = k(y, y).mean() - 2 * (w @ k(x, y)).mean() + w @ k(x, x) @ w
    assert mmd2(x, y, 0.9, w) == pytest.approx(wanted, rel=1e-9)
    assert mmd2(x, x, 0.9) == pytest.approx(0, abs=1e-15)


def test_ksd_in_blocks_is_ksd(monkeypatch):
    rng = np.random.default_rng(201)
    x, s, w = rng.normal(size=(50, 3)), rng.normal(size=(50, 3)), rng.normal(size=50)
    whole = ksd(x, s, 0.8, w)
    monkeypatch.setattr("herdner.studies.fwss.stein._CELLS", 350)
    assert ksd(x, s, 0.8, w) == pytest.approx(whole, rel=1e-10)


def test_the_median_rule():
    rng = np.random.default_rng(208)
    x = rng.normal(size=(31, 2))
    distances = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2))[np.triu_indices(31, 1)]
    assert median_bandwidth(x) == pytest.approx(np.median(distances) / np.sqrt(2 * np.log(32)))
    assert median_bandwidth(np.zeros((4, 2))) == 1.0
    assert median_bandwidth(np.repeat([[0.0], [1.0]], [40, 1], axis=0)) > 0


def test_the_ksd_rule_lowers_ksd():
    rng = np.random.default_rng(216)
    x = GAUSSIAN.draw(rng, 100)
    scores, h = GAUSSIAN.density.grad(x), median_bandwidth(x)
    found = ksd_bandwidth(x, scores)
    assert h / 4 <= found <= 4 * h
    assert ksd(x, scores, found) < ksd(x, scores, h)


def test_effective_sample_size():
    assert effective_sample_size(np.full(7, 0.1)) == pytest.approx(7)
    assert effective_sample_size([1.0, 0.0]) == pytest.approx(1)
    assert effective_sample_size([1.0, -1.0]) == pytest.approx(2)


def never_finite(value):
    return density_target(lambda x: np.full(len(x), value), lambda x: np.zeros(x.shape), dim=2)


STEEP = density_target(
    lambda x: -(x**4).sum(axis=1), lambda x: -4 * x**3, dim=2, prior=lambda rng, n: 10 + rng.random((n, 2))
)
TWICE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: fwss(ELEVEN, 0), "n_particles must be a whole number of at least 1, not 0"),
        (lambda: svgd(ELEVEN, 0), "n_particles must be a whole number of at least 1, not 0"),
        (lambda: hmc(ELEVEN, 0), "n_samples must be a whole number of at least 1"),
        (lambda: stein_points(ELEVEN, 2.5), "n_particles must be a whole number"),
        (lambda: fwss(ELEVEN, 3, bandwidth=0), "`bandwidth` must be above 0, got 0; median_bandwidth"),
        (lambda: svgd(ELEVEN, 3, bandwidth=-1.0), "`bandwidth` must be above 0"),
        (lambda: mmd2(TWICE, TWICE, 0.0), "`bandwidth` must be above 0"),
        (lambda: fwss(ELEVEN, 3, bandwidth="mean"), "must be a number above 0, 'median' or 'ksd', got 'mean'"),
        (lambda: fwss(never_finite(np.nan), 3), "log-density is nan at starting point 0"),
        (lambda: svgd(never_finite(-np.inf), 3), "log-density is -inf at starting point 0"),
        (lambda: hmc(never_finite(np.nan), 3), "log-density is nan at starting point 0"),
        (lambda: fwss(ELEVEN, 3, init=np.zeros((2, 3))), r"init must have shape \[N, 2\]"),
        (lambda: fwss(ELEVEN, 3, init="mode"), "`init` must be 'prior', 'map' or an array of points"),
        (lambda: fwss(ELEVEN, 3, step="exact"), "`step` must be one of 'constant', 'line-search', 'away', 'pair"),
        (lambda: fwss(ELEVEN, 3, batch_size=5), "needs a target with data"),
        (lambda: fwss(ELEVEN, 3, kernel_mean="exact"), "`kernel_mean` must be 'stein'"),
        (lambda: fwss(ELEVEN, 1, start=fwss(ELEVEN, 2, seed=1)), "must be at least 2, got 1"),
        (lambda: fwss(ELEVEN, 1, start=np.zeros((1, 2))), "`start` must be the Points"),
        (lambda: fwss(LOGISTIC, 5, start=fwss(ELEVEN, 2, seed=1)), "for this target, got"),
        (lambda: quadrature_weights(TWICE, ELEVEN.kernel_mean, 0.5), "points 0 and 2 are equal, which makes the Gram"),
        (lambda: stein_weights(TWICE, TWICE, 0.5), "points 0 and 2 are equal"),
        (
            lambda: fwss(ELEVEN, 3, init=TWICE, n_steps=0, step="fully-corrective", bandwidth=0.5),
            "particles 0 and 2 are equal",
        ),
        (lambda: block_fwss(ELEVEN, 3, blocks=3), "at most the number of variables, 2, got 3"),
        (lambda: block_fwss(ELEVEN, 3, blocks=[[0], [0]]), "each of the variables 0 to 1 once"),
        (lambda: block_fwss(ELEVEN, 3, workers=0), "workers must be a whole number of at least 1"),
        (lambda: lazy_fwss(ELEVEN, 3, cache=TWICE[:2], step="constant"), "lazy_fwss does not support step='constant'"),
        (lambda: lazy_fwss(ELEVEN, 3, cache=TWICE[:2], accuracy=0.5), "`accuracy` must be a finite number"),
        (lambda: cached_fwss(ELEVEN, 3, cache=np.zeros((0, 2))), "and at least one point"),
        (lambda: stein_points(ELEVEN, 3, search="grid"), "search='grid' needs `box`"),
        (lambda: stein_points(LOGISTIC, 3, search="grid", box=[[-1, 1]] * 5), "too large; decrease `resolution`"),
        (lambda: stein_points(ELEVEN, 3, box=[[1, -1], [0, 1]]), "a finite lower and a larger finite upper end"),
        (lambda: Adam(0.0), "`rate` must be above 0"),
        (lambda: ksd(TWICE, TWICE[:2], 1.0), "`scores` must have the shape of the points"),
        (lambda: effective_sample_size([0.0, 0.0]), "must not all be 0"),
        (lambda: SampleMean(TWICE, np.ones(2)), "must have shape .3., one per sample"),
        (lambda: hmc(ELEVEN, 3, init=TWICE), "must have 4 points, one per chain, got shape"),
        (lambda: sgld(ELEVEN, 3, step_size=0.0), "`step_size` must be above 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(run, message):
    with pytest.raises(ValueError, match=message) as caught:
        run()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("run", "who"),
    [
        (lambda: fwss(STEEP, 3, optimiser=GradientAscent(1.0), seed=1), r"fwss diverged: particle 0, step \d"),
        (lambda: svgd(STEEP, 3, optimiser=GradientAscent(1.0), seed=1), r"svgd diverged: particle \d, step \d"),
        (lambda: sgld(STEEP, 50, step_size=1.0, seed=1), r"sgld diverged: particle 0, step \d"),
        (
            lambda: block_fwss(STEEP, 3, optimiser=GradientAscent(1.0), seed=1, workers=2),
            r"fwss diverged: particle 0, step \d",
        ),
    ],
)
def test_divergence_is_told_with_particle_and_step(run, who):
    with pytest.raises(DivergenceError, match=who) as caught:
        run()
    assert caught.value.step >= 0


def test_a_gradient_of_the_wrong_shape_is_told():
    wrong = density_target(lambda x: -(x**2).sum(axis=1), lambda x: -2 * x[:, :1], dim=2)
    with pytest.raises(
        ValueError, match=r"grad must return an array of the shape of its points, \(1, 2\), not \(1, 1\)"
    ):
        fwss(wrong, 2, seed=1)


def test_the_mixture_mean_shows_what_it_is_made_of():
    assert isinstance(GAUSSIAN.kernel_mean, MixtureMean)
    assert GAUSSIAN.kernel_mean.squared_norm(1e3) == pytest.approx(1, abs=1e-4)


def test_candidates_of_stein_points_are_drawn_anew_until_they_are_in_the_box() -> None:
    """FWSS18 App. H: not moved to the edge of the box; the law is that of drawing anew, done here."""
    rng, box = np.random.default_rng(4), np.array([[-1.0, 1.0], [-1.0, 1.0]])
    found = SimpleNamespace(x=np.array([[0.9, -0.2]]))
    drawn = _candidates(found, 20000, 1.0, box, rng)  # type: ignore[arg-type]
    anew = found.x + rng.normal(size=(200000, 2))
    anew = anew[(np.abs(anew) <= 1).all(axis=1)]
    assert (np.abs(drawn) < 1).all()
    for axis in range(2):
        assert kstest(drawn[:, axis], anew[:, axis]).pvalue > 1e-3
    free = _candidates(found, 1000, 1.0, None, rng)  # type: ignore[arg-type]
    assert (np.abs(free) > 1).any()


def test_a_first_point_without_kernel_does_not_stop_the_factorisation():
    system = GramSystem(np.zeros((1, 1)))
    system.append(np.array([0.0, 1.0]))
    assert np.isfinite(system.solve(np.array([0.0, 1.0]))).all()
    assert 0 < system.jitter < 1e-4
