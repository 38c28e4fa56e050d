"""Away and pairwise steps, the constants of the theorems, the variance of quadrature: all on a few points."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.stats import norm

from herdner.studies.fwss import (
    Adam,
    MarginalPolytope,
    eleven_gaussians,
    fwss,
    gaussian_mixture,
    lazy_fwss,
    mmd2,
    quadrature_variance,
    quadrature_weights,
    svgd,
)
from herdner.studies.fwss.kernels import SampleMean, gram
from herdner.studies.fwss.steps import make_rule

H = 0.6
POINTS = np.array([[0.0, 0.0], [1.0, 0.1], [0.3, 0.9], [-0.7, 0.4], [-0.2, -0.9], [0.8, -0.8]])
ROOT = np.linalg.cholesky(gram(POINTS, H))  # the kernels as rows, at their distances
EDGE = np.array([0.5, 0.5, 0.0, 0.0, 0.0, 0.0])


def run(step: str, chances: np.ndarray, n: int) -> np.ndarray:
    """[n]: J = MMD^2 / 2 after steps towards the best of all points, from point 4."""
    rule, weights, found = make_rule(step, SampleMean(POINTS, chances)), np.eye(6)[4], []
    rule.restart(POINTS, np.zeros((6, 2)), H, weights)
    for _ in range(n):
        found.append(0.5 * np.sum(((weights - chances) @ ROOT) ** 2))
        weights = rule.towards(int(np.argmin(ROOT @ (ROOT.T @ (weights - chances)))))
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1, abs=1e-9)
    return np.array(found)


def from_hull(points: np.ndarray, others: np.ndarray) -> float:
    """The least distance of a point from the hull of others, or of two hulls, by non-negative least squares."""
    a, b = np.atleast_2d(points), np.atleast_2d(others)
    big = 1e4
    rows = np.vstack([np.hstack([a.T, -b.T]), big * np.repeat(np.eye(2), [len(a), len(b)], axis=1)])
    weights, _ = nnls(rows, np.append(np.zeros(a.shape[1]), [big, big]))
    return float(np.linalg.norm(a.T @ weights[: len(a)] - b.T @ weights[len(a) :]))


def facial_distance() -> float:
    """The pyramidal width of the hull: the least distance of a face from the hull of the other corners (Pena and
    Rodriguez 2019); every set of corners of a simplex is a face.
    """
    faces = [face for k in range(1, 6) for face in combinations(range(6), k)]
    return min(from_hull(ROOT[list(face)], np.delete(ROOT, face, axis=0)) for face in faces)


def test_steps_away_have_the_rate_of_lacoste_julien_and_jaggi():
    """Theorem 1 there: of t steps at least half are no drop steps, and each makes J (1 - (width / 2 d)^2) times as
    large at most; J of a Hilbert space's distance has mu = L = 1.
    """
    found, diameter = run("away", EDGE, 400), MarginalPolytope.of(POINTS, EDGE, H).diameter
    factor = 1 - (facial_distance() / (2 * diameter)) ** 2
    allowed = found[0] * factor ** (np.arange(400) // 2)
    assert (found <= allowed + 1e-15).all()
    assert factor**200 < 1e-2, "the theorem says something"


def test_steps_away_and_pairwise_are_geometric_where_line_search_is_not():
    plain, away, pairwise = (run(step, EDGE, 400) for step in ("line-search", "away", "pairwise"))
    assert plain[-1] > 1e-6
    assert max(away[-1], pairwise[-1]) < 1e-14
    for found in (away, pairwise):
        assert (np.diff(found) <= 1e-15).all()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["away", "pairwise"])
def test_new_steps_combine_with_the_samplers(step):
    target = eleven_gaussians()
    points = fwss(target, 60, step=step, bandwidth=0.5, optimiser=Adam(0.2, 0.02), seed=1)
    assert points.weights.min() >= 0
    assert points.weights.sum() == pytest.approx(1)
    plain = fwss(target, 60, step="line-search", bandwidth=0.5, optimiser=Adam(0.2, 0.02), seed=1)
    distances = [mmd2(p.x, target.kernel_mean, 0.5, p.weights) for p in (points, plain)]
    assert distances[0] < 1.2 * distances[1]
    half = fwss(target, 30, step=step, bandwidth=0.5, optimiser=Adam(0.2, 0.02), seed=(rng := np.random.default_rng(1)))
    whole = fwss(target, 60, step=step, bandwidth=0.5, optimiser=Adam(0.2, 0.02), seed=rng, start=half)
    np.testing.assert_allclose(whole.x, fwss(target, 60, step=step, bandwidth=0.5, optimiser=Adam(0.2, 0.02),
                                             seed=np.random.default_rng(1)).x)  # fmt: skip
    lazy = lazy_fwss(target, 20, cache=svgd(target, 40, n_iterations=100, seed=1), step=step, bandwidth=0.5, seed=1)
    assert len(lazy) == 20


def dirichlet(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(6, 3.0))


def test_the_ball_touches_the_nearest_side():
    """Return the distance of mu_p from the sides of the hull, which are the hulls of all corners but one."""
    for seed in range(5):
        p = dirichlet(seed)
        found = MarginalPolytope.of(POINTS, p, H)
        sides = [from_hull(p @ ROOT, np.delete(ROOT, i, axis=0)) for i in range(6)]
        assert found.radius == pytest.approx(min(sides), rel=1e-5)
        apart = max(np.linalg.norm(a - b) for a, b in combinations(ROOT, 2))
        assert found.diameter == pytest.approx(apart)
    assert MarginalPolytope.of(POINTS, EDGE, H).radius == pytest.approx(0, abs=1e-12)


def exact_radius(points: np.ndarray, p: np.ndarray, h: float) -> Decimal:
    """Return the inner radius with 80 digits: p_i^2 times the last pivot of differences of kernels, for each i."""
    radii = []
    with localcontext(Context(prec=80)):
        x = [[Decimal(value) for value in row] for row in points.tolist()]
        square = 2 * Decimal(h) ** 2
        k = [[(-sum((a - b) ** 2 for a, b in zip(u, v, strict=True)) / square).exp() for v in x] for u in x]
        for i in range(len(x)):
            base, *rest = [*(j for j in range(len(x)) if j != i), i]
            rows = [[k[a][b] - k[a][base] - k[base][b] + 1 for b in rest] for a in rest]
            while len(rows) > 1:
                first, *rows = rows
                rows = [[v - row[0] * w / first[0] for v, w in zip(row, first, strict=True)][1:] for row in rows]
            radii.append(Decimal(float(p[i])) * rows[0][0].sqrt())
    return min(radii)


@pytest.mark.parametrize("seed", range(60))
def test_the_radius_of_close_points_far_from_zero_is_not_above_the_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 6))
    points = rng.normal(size=(m, int(rng.integers(1, 3)))) * 10.0 ** rng.uniform(-3, 3) + rng.choice([0.0, 1e4, 1e8])
    p, h = rng.dirichlet(np.ones(m)), 10.0 ** rng.uniform(-3, 3)
    with suppress(ValueError):  # the Gram matrix is singular
        found = MarginalPolytope.of(points, p, h)
        assert Decimal(found.radius) <= exact_radius(points, p, h) * (1 + Decimal("1e-15"))


def test_no_theorem_is_below_the_truth():
    import fwss_theorems

    for seed in range(5):
        held = fwss_theorems.bounds(fwss_theorems.Finite(POINTS, dirichlet(seed)), 200)
        assert held["above"] == 0
        assert held["checks"] == 800
    edge = MarginalPolytope.of(POINTS, EDGE, H)
    assert edge.bound(50, "constant") > 1e6
    assert MarginalPolytope(1.0, 0.0).bound(50) == pytest.approx(np.sqrt(2))
    assert MarginalPolytope(1.0, 0.0).contraction(50, 0.1, "constant") == 1
    assert MarginalPolytope(1.0, 0.5).contraction(10**7, 0.1) == 0  # the bound of MMD is 0 in floating point
    assert MarginalPolytope(1.0, 0.5).contraction(2000, 0.1) == 0


def finite_target(p: np.ndarray):
    """A density to move by, whose kernel mean is that of six points: its mixture, at nearly no width."""
    target = gaussian_mixture(p, POINTS, np.tile(0.05 * np.eye(2), (6, 1, 1)))
    return replace(target, kernel_mean=SampleMean(POINTS, p))


@pytest.mark.parametrize("step", ["line-search", "fully-corrective"])
@pytest.mark.parametrize("accuracy", [1.0, 2.0, 8.0])
def test_lazy_sampling_keeps_its_bound(step, accuracy):
    """FWSS18 Theorem 5, of the algorithm itself, after each number of particles, by the Phi of the last."""
    for seed in range(3):
        p = dirichlet(seed)
        target, everywhere = finite_target(p), MarginalPolytope(float(np.sqrt(2)), 0.0)  # of all kernels
        options = {"cache": POINTS[:4], "accuracy": accuracy, "step": step, "bandwidth": H, "seed": seed}
        for n in (1, 2, 3, 4, 6):
            found = lazy_fwss(target, n, **options, optimiser=Adam(0.05, 0.01))
            phi = found.history["phi"]
            assert len(phi) == len(found)
            assert np.isnan(phi[0])
            assert (np.diff(phi[1:]) <= 0).all()
            least = 0.0 if len(found) == 1 else float(phi[-1])
            measured = float(np.sqrt(max(mmd2(found.x, target.kernel_mean, H, found.weights), 0.0)))
            assert measured <= everywhere.lazy_bound(len(found), least, accuracy) + 1e-9


def test_each_lazy_step_gains_what_the_proof_of_theorem_5_says():
    """MMD^2 falls by (Phi / (K d))^2 at least: exact steps on the points alone, many and of any accuracy."""
    for seed, accuracy in ((0, 1.0), (1, 2.0), (2, 5.0)):
        p = dirichlet(seed)
        polytope, weights = MarginalPolytope.of(POINTS, p, H), EDGE
        rule = make_rule("line-search", SampleMean(POINTS, p))
        rule.restart(POINTS, np.zeros((6, 2)), H, weights)
        gram_of, phi, n = gram(POINTS, H), np.inf, 1
        for _ in range(300):
            field = gram_of @ (weights - p)
            gaps = field @ weights - field
            phi = min(phi, gaps.max() / 2)
            before = np.sum(((weights - p) @ ROOT) ** 2)
            good = np.flatnonzero(gaps >= phi / accuracy)
            weights = rule.towards(int(good[np.argmin(gaps[good])]))  # the worst that Alg. 9 may take
            n += 1
            after = np.sum(((weights - p) @ ROOT) ** 2)
            assert after <= before - (phi / (accuracy * polytope.diameter)) ** 2 + 1e-12
            assert np.sqrt(after) <= polytope.lazy_bound(n, phi, accuracy)
            assert np.sqrt(after) <= np.sqrt(before)


def test_the_lipschitz_constant_of_equation_38_can_be_too_small():
    """Two points far apart, mu on one and mu_p between them: the gradient's norm is larger than eq. 38 says."""
    far = np.array([[0.0], [50.0]])
    off = np.array([1.0, 0.0]) - 0.5
    assert float((gram(far, H) @ off).max()) == pytest.approx(0.5)
    assert float(np.sqrt(off @ gram(far, H) @ off)) == pytest.approx(np.sqrt(0.5))


def test_the_contraction_of_lazy_sampling_is_that_of_its_bound():
    """FWSS18 Theorem 6: a normal distribution of the bound's deviation has no more in its tails."""
    polytope = MarginalPolytope.of(POINTS, dirichlet(1), H)
    for n, gamma, phi in ((1, 0.5, 0.0), (20, 2.0, 0.3), (400, 3.0, 0.6)):
        allowed = polytope.lazy_contraction(n, gamma, phi)
        spread = polytope.lazy_bound(n, phi)
        assert 2 * norm.sf(gamma / spread) <= allowed <= 1
    assert polytope.lazy_contraction(400, 3.0, 0.6) < polytope.lazy_contraction(1, 3.0, 0.6) < 1
    with pytest.raises(ValueError, match=r"`phi` must be a finite number of at least 0, got -1"):
        polytope.lazy_bound(3, -1)


def test_less_of_the_posterior_is_far_off_than_the_contraction_allows():
    """Test the largest error over functions of norm 1 of quadrature for a normal posterior."""
    rng = np.random.default_rng(4)
    for seed in range(3):
        p = dirichlet(seed)
        polytope, mean = MarginalPolytope.of(POINTS, p, H), SampleMean(POINTS, p)
        for n in (1, 2, 4):
            weights = quadrature_weights(POINTS[:n], mean, H)[0]
            off = p - np.append(weights, np.zeros(6 - n))
            spread = np.sqrt(quadrature_variance(POINTS[:n], mean, H))
            coefficients = [off, *rng.normal(size=(5, 6))]
            for c in (c / np.linalg.norm(c @ ROOT) for c in coefficients):
                error = float(off @ ROOT @ ROOT.T @ c)
                for gamma in (0.1, 0.5, 1.0, 2.0, 4.0):
                    mass = norm.cdf((-gamma + error) / spread) + norm.sf((gamma + error) / spread)
                    assert mass <= polytope.contraction(n, gamma) + 1e-12


def test_the_variance_is_that_of_a_gaussian_process():
    """Conditioned by one large covariance matrix; and, of a density, by a fine grid in place of the integrals."""
    p = dirichlet(9)
    whole = np.block([[p @ gram(POINTS, H) @ p, (p @ gram(POINTS, H))[None, :4]],
                      [(p @ gram(POINTS, H))[:4, None], gram(POINTS, H)[:4, :4]]])  # fmt: skip
    wanted = 1 / np.linalg.inv(whole)[0, 0]
    assert quadrature_variance(POINTS[:4], SampleMean(POINTS, p), H) == pytest.approx(wanted, rel=1e-8)
    line = gaussian_mixture([1.0], [[0.5]], [[[0.7]]])
    grid = np.linspace(-6, 7, 4001)[:, None]
    density = SampleMean(grid, norm.pdf(grid[:, 0], 0.5, np.sqrt(0.7)) * (grid[1, 0] - grid[0, 0]))
    x = np.array([[-1.0], [0.2], [1.5]])
    weights = quadrature_weights(x, density, H)[0]
    wanted = mmd2(x, density, H, weights)
    assert quadrature_variance(x, line.kernel_mean, H) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: MarginalPolytope.of(POINTS, EDGE[:3], H), "`chances` must be 6 probabilities with sum 1"),
        (lambda: MarginalPolytope.of(POINTS, 2 * EDGE, H), "with sum 1"),
        (lambda: MarginalPolytope.of(POINTS[[0, 1, 0]], np.full(3, 1 / 3), H), "points 0 and 2 are equal"),
        (lambda: MarginalPolytope.of(1e-9 * POINTS, EDGE, 5.0), "the Gram matrix is singular"),
        (
            lambda: MarginalPolytope(1.0, 0.1).bound(3, "pairwise"),
            "`step` must be 'constant', 'line-search', 'away' or 'fully-corrective'",
        ),
        (lambda: quadrature_variance(POINTS, SampleMean(POINTS), "median"), "`bandwidth` must be a number, got"),
        (lambda: make_rule("backwards", None), "`step` must be one of 'constant', 'line-search', 'away', 'pairwise'"),
    ],
)
def test_what_cannot_be_is_one_line(call, said):
    with pytest.raises(ValueError, match=said):
        call()
