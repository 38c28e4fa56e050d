"""The posterior of tied tables, against enumeration and finite differences; its particles, against a normal one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gradients import finite_differences
from tiny_crfs import ENDS, conditional, joint, many, tiny

from herdner.crf.bayesian import TableParticles, sample_tables, table_parameters, table_posterior
from herdner.crf.learning import Learner, learn_tables
from herdner.crf.model import SkipChainModel
from herdner.studies.fwss import fit_laplace


def test_the_density_is_that_of_the_enumerated_joint():
    crf, examples = tiny(2)
    parameters, posterior = table_parameters(crf), table_posterior(crf, examples, l2=0.7)
    between = replace(examples, links=(ENDS[0][:3], ENDS[1]))
    points = parameters.start + np.random.default_rng(0).normal(size=(3, len(parameters))) / 4
    for point, found in zip(points, posterior.density.log_density(points), strict=True):
        oracle = joint(parameters.to_model(point), between)
        likelihood = sum(conditional(oracle, examples.states, block) for block in ([0, 1, 2], [3], [4, 5, 6]))
        assert found == pytest.approx(likelihood - 0.7 * ((point - parameters.origin) ** 2).sum(), abs=1e-9)


def test_without_links_the_likelihood_is_exact():
    crf, examples = tiny(4)
    chain, alone = replace(crf, link_tables=()), replace(examples, links=())
    oracle = joint(chain, alone)
    right = (oracle.states == examples.states).all(axis=1)
    posterior = table_posterior(chain, alone)
    assert posterior.dim == 9
    found = posterior.density.log_density(crf.transition.ravel())[0]
    assert found == pytest.approx(np.log(oracle.probabilities[right].sum()), abs=1e-9)


def test_the_gradient_is_finite_differences():
    crf, examples = tiny(3)
    posterior = table_posterior(crf, examples)
    points = table_parameters(crf).start + np.random.default_rng(1).normal(size=(2, posterior.dim)) / 4
    expected = finite_differences(posterior.density.log_density, points)
    assert posterior.density.grad(points) == pytest.approx(expected, abs=1e-5)


def test_forbidden_transitions_are_no_variables():
    crf, examples = tiny(0)
    table = crf.transition.copy()
    pairs = {tuple(pair) for pair in examples.states[examples.neighbours].tolist()}
    free = next(at for at in np.ndindex(3, 3) if at not in pairs)
    table[free] = -np.inf
    shut = replace(crf, transition=table)
    assert table_posterior(shut, examples).dim == table_posterior(crf, examples).dim - 1
    particles = sample_tables(shut, examples, 3, seed=0)
    assert all(each.transition[free] == -np.inf for each in particles.to_models(shut))
    table[next(iter(pairs))] = -np.inf
    with pytest.raises(ValueError, match="forbids gold tags"):
        table_posterior(shut, examples)


def test_the_prior_is_drawn_from():
    crf, examples = tiny(0)
    drawn = table_posterior(crf, examples, l2=2.0).prior(np.random.default_rng(0), 4000)
    assert drawn.mean(axis=0) == pytest.approx(table_parameters(crf).origin, abs=0.05)
    assert drawn.std(axis=0) == pytest.approx(0.5, abs=0.03)


@pytest.fixture(scope="module")
def well_identified():
    crf, examples = many(400, 1.5)
    return crf, examples, sample_tables(crf, examples, 64, seed=1)


def test_the_first_particle_is_the_mode_that_learning_finds(well_identified):
    crf, examples, particles = well_identified
    learned, _ = learn_tables(crf, examples, Learner(joint=True, max_iterations=500))
    assert particles.to_models(crf)[0].link_tables[0].table == pytest.approx(learned.link_tables[0].table, abs=1e-3)
    assert particles.to_models(crf)[0].transition == pytest.approx(learned.transition, abs=1e-3)


@pytest.mark.slow
def test_particles_have_the_mean_and_the_covariance_of_the_posterior(well_identified):
    """Against the exact moments by importance sampling from the normal approximation."""
    crf, examples, particles = well_identified
    posterior = table_posterior(crf, examples)
    z = np.random.default_rng(0).normal(size=(4000, posterior.dim))
    normal = fit_laplace(posterior, table_parameters(crf).start)
    log_weights = posterior.density.log_density(normal.points(z)) + 0.5 * (z**2).sum(axis=1)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    assert 1 / (weights**2).sum() > 2000  # effective samples
    x = normal.points(z)
    mean = weights @ x
    covariance = (weights[:, None] * (x - mean)).T @ (x - mean)
    sd = np.sqrt(covariance.diagonal())
    found = particles.weights @ particles.vectors
    off = particles.vectors - found
    assert np.abs(found - mean).max() < 0.25 * sd.max()
    assert np.abs((found - mean) / sd).max() < 0.3
    spread = (particles.weights[:, None] * off).T @ off
    correlations = spread / sd / sd[:, None] - covariance / sd / sd[:, None]
    assert np.abs(correlations[~np.eye(len(sd), dtype=bool)]).max() < 0.35
    assert ((spread.diagonal() / sd**2 > 0.6) & (spread.diagonal() / sd**2 < 1.3)).all()


def test_more_data_narrow_the_posterior():
    spreads = []
    for n in (50, 800):
        crf, examples = many(n, 1.0)
        tables = np.array(
            [each.link_tables[0].table for each in sample_tables(crf, examples, 16, seed=0).to_models(crf)]
        )
        spreads.append((tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]).std())
    assert spreads[1] < 0.6 * spreads[0]


def test_equal_seeds_give_equal_particles():
    crf, examples = many(20, 1.0)
    one, same, other = (sample_tables(crf, examples, 4, seed=seed).vectors for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one[0] == other[0]).all()
    assert (one[1:] != other[1:]).any()


def test_misuse_raises_errors():
    crf, examples = many(5, 1.0)
    for l2 in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="`l2` must be"):
            table_posterior(crf, examples, l2=l2)
    with pytest.raises(ValueError, match="n_particles"):
        sample_tables(crf, examples, 0)
    good = np.zeros((2, 8))
    for vectors, weights, words in (
        (good[:0], np.empty(0), "shape"),
        (good, np.ones(3) / 3, "shape"),
        (good, np.ones(2), "at least 0 and sum to 1"),
        (good, np.array([1.5, -0.5]), "at least 0 and sum to 1"),
        (good * np.nan, np.ones(2) / 2, "finite"),
    ):
        with pytest.raises(ValueError, match=words):
            TableParticles(vectors, weights)
    plain = SkipChainModel(np.zeros((2, 2)), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="each of the 4 learned table entries, got 8 numbers"):
        TableParticles(good, np.ones(2) / 2).to_models(plain)
