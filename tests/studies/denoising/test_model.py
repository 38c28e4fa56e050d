"""The field of a noisy picture: held against enumeration, against brute force and against what papers say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from oracle import Oracle

from herdner.graph import compile_tables, ising
from herdner.graph.grids import GridForm
from herdner.inference import make_backend
from herdner.inference.backends.gibbs import plain_gibbs
from herdner.studies.denoising import (
    FlipNoise,
    GaussianNoise,
    denoise,
    estimate_flip_noise,
    estimate_gaussian_noise,
    estimate_parameters,
    posterior_graph,
    pseudo_likelihood_coupling,
)

NOISES = [GaussianNoise(0.8), FlipNoise(0.2), GaussianNoise(0.7, (-1.0, 0.2, 1.5)), FlipNoise(0.3, 3)]


def shapes(rows: int = 64, columns: int = 80) -> np.ndarray:
    """A disc and a bar."""
    i, j = np.indices((rows, columns))
    return (((i - rows / 2) ** 2 + (j - columns / 3) ** 2 < (rows / 3) ** 2) | (abs(j - 0.8 * columns) < 5)).astype(int)


def by_hand(labels: np.ndarray, y: np.ndarray, noise, coupling: float) -> float:
    """log p(x, y), term by term."""
    total = 0.0
    for i, j in np.ndindex(labels.shape):
        for a, b in ((i + 1, j), (i, j + 1)):
            if a < labels.shape[0] and b < labels.shape[1]:
                total += coupling if labels[i, j] == labels[a, b] else -coupling
        if isinstance(noise, GaussianNoise):
            d = (y[i, j] - noise.levels[labels[i, j]]) / noise.sigma
            total += -0.5 * d * d - np.log(noise.sigma * np.sqrt(2 * np.pi))
        else:
            same = y[i, j] == labels[i, j]
            total += np.log(1 - noise.p if same else noise.p / (noise.n_labels - 1))
    return total


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (1, 1)])
def test_the_posterior_is_the_joint_given_the_picture(noise, shape):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, noise.n_labels, shape)
    y = noise.observe(truth, rng)
    graph = posterior_graph(y, noise, 0.6)
    assert graph.n_variables == truth.size
    for labels in itertools.islice(itertools.product(range(noise.n_labels), repeat=truth.size), 0, None, 5):
        wanted = by_hand(np.reshape(labels, shape), y, noise, 0.6)
        assert graph.log_potential(np.array(labels)) == pytest.approx(wanted)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_two_estimates_against_enumeration(noise):
    rng = np.random.default_rng(2)
    y = noise.observe(rng.integers(0, noise.n_labels, (2, 4)), rng)
    oracle = Oracle.of_graph(posterior_graph(y, noise, 0.4))
    exact = make_backend("exact")
    marginals = np.array([oracle.marginal(i) for i in range(8)])
    assert np.array_equal(denoise(y, noise, 0.4, exact).labels.ravel(), marginals.argmax(axis=1))
    assert np.array_equal(denoise(y, noise, 0.4, exact, "map").labels.ravel(), oracle.best())
    sampled = denoise(y, noise, 0.4, plain_gibbs(20_000), seed=1)
    levels = np.array(noise.levels) if isinstance(noise, GaussianNoise) else np.arange(noise.n_labels)
    np.testing.assert_allclose(sampled.mean.ravel(), marginals @ levels, atol=0.05)


def test_two_labels_are_the_ising_model_of_the_papers():
    """HGW19 Sec. 7: J s_i s_j + b y_i s_i with b = log((1 - p) / p) / 2; HG16 eq. 19: y / sigma^2."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, (2, 3))
    for noise, field in ((FlipNoise(0.3), 0.5 * np.log(0.7 / 0.3)), (GaussianNoise(1.7), 1 / 1.7**2)):
        y = noise.observe(x, rng)
        seen = 2.0 * y - 1 if isinstance(noise, FlipNoise) else y
        ours = Oracle.of_graph(posterior_graph(y, noise, 0.8)).probabilities
        np.testing.assert_allclose(ours, Oracle.of_graph(ising(0.8, field * seen)).probabilities, atol=1e-12)


def test_pictures_take_the_loop_of_grids():
    y = GaussianNoise(1.0).observe(shapes(), np.random.default_rng(0))
    assert compile_tables(posterior_graph(y, GaussianNoise(1.0), 0.5)).require(GridForm, "").rows == 64


@pytest.mark.parametrize(
    ("noise", "most"), [(GaussianNoise(1.0), 0.02), (GaussianNoise(2.0), 0.04), (FlipNoise(0.2), 0.02)]
)
def test_noise_goes_away(noise, most):
    x = shapes()
    y = noise.observe(x, np.random.default_rng(5))
    before = (noise.most_likely(y) != x).mean()
    for estimate in ("mean", "map"):
        found = denoise(y, noise, 0.7, None, estimate, seed=1)
        assert (found.labels != x).mean() < most < before / 4
    again = denoise(y, noise, 0.7, seed=1)
    assert np.array_equal(again.labels, denoise(y, noise, 0.7, seed=1).labels)


def test_labels_in_place_of_greys():
    i, j = np.indices((60, 60))
    x = (i // 20 + j // 20) % 4
    for noise in (FlipNoise(0.3, 4), GaussianNoise(0.6, (-1.0, -0.3, 0.4, 1.0))):
        y = noise.observe(x, np.random.default_rng(5))
        assert (denoise(y, noise, 0.6, seed=1).labels != x).mean() < 0.05 < (noise.most_likely(y) != x).mean() / 3


def test_a_negative_coupling_keeps_checkerboards():
    i, j = np.indices((40, 40))
    x = (i + j) % 2
    y = FlipNoise(0.25).observe(x, np.random.default_rng(5))
    assert (denoise(y, FlipNoise(0.25), -0.7, seed=1).labels != x).mean() < 0.02
    assert (denoise(y, FlipNoise(0.25), 0.7, seed=1).labels != x).mean() > 0.2


# ---- estimation ----


@pytest.mark.parametrize("coupling", [0.2, 0.35, 0.6])
def test_pseudo_likelihood_finds_the_coupling_of_a_sample(coupling):
    x = plain_gibbs(400).infer(ising(coupling, 0.0, (120, 130)), seed=2).state.reshape(120, 130)
    assert pseudo_likelihood_coupling(x, 2) == pytest.approx(coupling, abs=0.03)


def test_pseudo_likelihood_is_at_its_largest():
    x = np.random.default_rng(0).integers(0, 3, (30, 30))

    def pseudo(coupling: float) -> float:
        padded, total = np.pad(x, 1, constant_values=-1), 0.0
        for i, j in np.ndindex(x.shape):
            around = (padded[i, j + 1], padded[i + 2, j + 1], padded[i + 1, j], padded[i + 1, j + 2])
            logs = np.array([2 * coupling * sum(n == k for n in around) for k in range(3)])
            total += logs[x[i, j]] - np.log(np.exp(logs).sum())
        return total

    best = pseudo_likelihood_coupling(x, 3)
    assert pseudo(best) > max(pseudo(best - 0.02), pseudo(best + 0.02))


def test_what_has_no_finite_coupling_stops_at_the_most():
    assert pseudo_likelihood_coupling(np.ones((9, 9), int), 2, most=2.0) == 2.0
    assert pseudo_likelihood_coupling(np.indices((9, 9)).sum(axis=0) % 2, 2) == -1.0
    assert pseudo_likelihood_coupling(np.zeros((1, 1), int), 2) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", [GaussianNoise(0.7), GaussianNoise(2.0), FlipNoise(0.1), FlipNoise(0.3)], ids=str)
def test_noise_and_coupling_are_found(noise):
    x = shapes(120, 140)
    y = noise.observe(x, np.random.default_rng(5))
    first = (
        estimate_gaussian_noise(y, 2, (-1.0, 1.0)) if isinstance(noise, GaussianNoise) else estimate_flip_noise(y, 2)
    )
    fitted, coupling = estimate_parameters(y, first, seed=1)
    if isinstance(noise, GaussianNoise):
        assert fitted.sigma == pytest.approx(noise.sigma, rel=0.05)
    else:
        assert fitted.p == pytest.approx(noise.p, abs=0.03)
    best = min((denoise(y, noise, j, seed=1).labels != x).mean() for j in (0.3, 0.5, 0.7, 1.0))
    assert (denoise(y, fitted, coupling, seed=1).labels != x).mean() < 1.5 * best + 0.005


def test_what_is_given_is_kept():
    y = FlipNoise(0.2).observe(shapes(), np.random.default_rng(5))
    assert estimate_parameters(y, FlipNoise(0.11), 0.4, refit_noise=False) == (FlipNoise(0.11), 0.4)
    fitted, coupling = estimate_parameters(y, FlipNoise(0.11), 0.7, seed=1)
    assert coupling == 0.7
    assert fitted.p == pytest.approx(0.2, abs=0.02)
    kept, coupling = estimate_parameters(y, FlipNoise(0.2), refit_noise=False, seed=1)
    assert kept == FlipNoise(0.2)
    assert 0.4 < coupling <= 1


def test_levels_are_found():
    i, j = np.indices((80, 80))
    x = (i // 20 + j // 20) % 3
    noise = GaussianNoise(0.15, (-0.8, 0.1, 0.7))
    first = estimate_gaussian_noise(noise.observe(x, np.random.default_rng(0)), 3, None)
    assert sorted(first.levels) == pytest.approx(noise.levels, abs=0.03)
    assert first.sigma == pytest.approx(0.15, rel=0.1)


# ---- usage errors ----


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GaussianNoise(0.0), "sigma must be finite and above 0"),
        (lambda: GaussianNoise(float("inf")), "sigma"),
        (lambda: GaussianNoise(1.0, (1.0,)), "levels"),
        (lambda: GaussianNoise(1.0, (1.0, 1.0)), "distinct finite numbers"),
        (lambda: FlipNoise(0.0), "p must be above 0 and below 1"),
        (lambda: FlipNoise(1.0), "p must"),
        (lambda: FlipNoise(0.1, 1), "labels"),
        (lambda: denoise(np.zeros((0, 3)), GaussianNoise(1.0), 1.0), "at least one pixel"),
        (lambda: denoise(np.zeros(3), GaussianNoise(1.0), 1.0), "rows, columns"),
        (lambda: denoise([[np.nan]], GaussianNoise(1.0), 1.0), "finite"),
        (lambda: denoise([[2]], FlipNoise(0.1), 1.0), "0 to 1"),
        (lambda: denoise([[0.5]], FlipNoise(0.1), 1.0), "must be integers"),
        (lambda: denoise([[1]], FlipNoise(0.1), float("nan")), "coupling"),
        (
            lambda: denoise([[1, 0]], FlipNoise(0.1), 1.0, make_backend("icm")),
            "needs marginals, which this backend does not compute",
        ),
    ],
)
def test_what_makes_no_sense_is_told(make, words):
    with pytest.raises(ValueError, match=words) as raised:
        make()
    assert "\n" not in str(raised.value)
