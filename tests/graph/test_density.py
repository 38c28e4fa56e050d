"""Continuous graphs: log-density and gradient, conditioning, blankets, mini-batches, and errors."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from gradients import finite_differences

from herdner.base.extras import MissingExtra
from herdner.graph import DensityFactors, Discrete, FactorGraph, Reals, TableFactors, compile_density, ising

DATA = np.random.default_rng(3).normal(size=20)


def product(x):
    """Return the log-density of three variables."""
    return np.sin(x[:, 0]) * x[:, 1] - x[:, 2] ** 2 * x[:, 0]


def grad_product(x):
    return np.stack([np.cos(x[:, 0]) * x[:, 1] - x[:, 2] ** 2, np.sin(x[:, 0]), -2 * x[:, 2] * x[:, 0]], axis=1)


def data_terms(x, terms):
    data = DATA if terms is None else DATA[terms]
    return -(((data - x[:, :1]) ** 2).sum(axis=1)) * np.exp(x[:, 1])


def grad_data_terms(x, terms):
    data = DATA if terms is None else DATA[terms]
    return np.stack([2 * (data - x[:, :1]).sum(axis=1) * np.exp(x[:, 1]), data_terms(x, terms)], axis=1)


PRODUCT = DensityFactors([[0, 1, 2]], product, grad_product)


def graph():
    return FactorGraph(
        Reals(6),
        [
            DensityFactors([[0, 1, 2], [4, 2, 3], [1, 0, 4]], product, grad_product),
            DensityFactors([[0], [5]], lambda x: -(x[:, 0] ** 4), lambda x: -4 * x**3),
            DensityFactors([[3, 5]], data_terms, grad_data_terms, n_terms=20),
        ],
    )


def by_hand(x):
    total = sum(product(x[:, scope]) for scope in ([0, 1, 2], [4, 2, 3], [1, 0, 4]))
    return total - x[:, 0] ** 4 - x[:, 5] ** 4 + data_terms(x[:, [3, 5]], None)


def test_log_density_is_the_sum_of_the_factors_and_the_gradient_its_derivative():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(5, 6))
    density = compile_density(graph())
    np.testing.assert_allclose(density.log_density(x), by_hand(x), rtol=1e-12)
    np.testing.assert_allclose(graph().log_potential(x), by_hand(x), rtol=1e-12)
    np.testing.assert_allclose(density.grad(x), finite_differences(density.log_density, x), rtol=1e-6, atol=1e-6)
    assert graph().log_potential(x[0]) == pytest.approx(by_hand(x)[0])


@pytest.mark.parametrize(
    "observed", [{}, {2: 0.3}, {0: -1.0, 5: 0.2}, {0: 0.1, 1: 0.2, 4: 0.4}, dict.fromkeys(range(6), 0.5)]
)
def test_conditioning_keeps_log_density_and_gradient_of_the_completed_point(observed):
    rng = np.random.default_rng(3)
    free = [i for i in range(6) if i not in observed]
    x = rng.normal(size=(4, 6))
    for i, value in observed.items():
        x[:, i] = value
    conditioned = compile_density(graph().condition(observed))
    assert conditioned.dim == len(free)
    np.testing.assert_allclose(conditioned.log_density(x[:, free]), by_hand(x), rtol=1e-12)
    np.testing.assert_allclose(conditioned.grad(x[:, free]), compile_density(graph()).grad(x)[:, free], rtol=1e-12)


def test_conditioning_twice_is_conditioning_once():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3, 3))
    once = compile_density(graph().condition({0: 0.1, 2: -0.7, 4: 0.4}))
    twice = compile_density(graph().condition({2: -0.7}).condition({0: 0.1, 3: 0.4}))
    np.testing.assert_allclose(twice.log_density(x), once.log_density(x), rtol=1e-12)
    np.testing.assert_allclose(twice.grad(x), once.grad(x), rtol=1e-12)


def test_the_gradient_of_a_block_needs_its_blanket_alone():
    rng = np.random.default_rng(3)
    density, x = compile_density(graph()), rng.normal(size=(4, 6))
    for block in ([0], [3, 5], [5, 1], [0, 1, 2, 3, 4, 5], [2, 0, 1]):
        found = density.grad(x, block=np.array(block))
        np.testing.assert_allclose(found, density.grad(x)[:, block], rtol=1e-12)
        blanket = {j for i in block for j in graph().blanket(i).tolist()}
        moved = x.copy()
        for j in set(range(6)) - blanket - set(block):
            moved[:, j] += 1.0
        np.testing.assert_allclose(density.grad(moved, block=np.array(block)), found, rtol=1e-12)


def test_mini_batches_average_to_the_whole_gradient():
    rng = np.random.default_rng(3)
    density, x = compile_density(graph()), rng.normal(size=(2, 6))
    batches = np.random.default_rng(1).permutation(20).reshape(4, 5)
    average = np.mean([density.grad(x, terms=terms) for terms in batches], axis=0)
    np.testing.assert_allclose(average, density.grad(x), rtol=1e-10, atol=1e-12)
    assert np.abs(density.grad(x, terms=batches[0]) - density.grad(x)).max() > 0.1


@pytest.mark.slow
def test_jax_derives_the_gradient():
    rng = np.random.default_rng(3)
    jnp = pytest.importorskip("jax.numpy")
    factors = DensityFactors([[0, 1, 2]], lambda x: jnp.sin(x[:, 0]) * x[:, 1] - x[:, 2] ** 2 * x[:, 0])
    density, x = compile_density(FactorGraph(Reals(3), [factors])), rng.normal(size=(7, 3))
    np.testing.assert_allclose(density.log_density(x), product(x), rtol=1e-14)
    np.testing.assert_allclose(density.grad(x), grad_product(x), rtol=1e-13)


def test_without_jax_the_missing_gradient_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(
        MissingExtra, match=r"need a gradient function `grad`, or JAX to derive it: pip install .\.\[jax\]"
    ):
        DensityFactors([[0]], lambda x: -(x[:, 0] ** 2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Reals(-1), "whole number of at least 0, not -1"),
        (lambda: DensityFactors([0, 1], product, grad_product), "scopes must have shape"),
        (lambda: DensityFactors([[0, 1, 0]], product, grad_product), "factor 0 names a variable twice"),
        (lambda: DensityFactors([[0, -1, 2]], product, grad_product), "variables are numbered from 0"),
        (lambda: DensityFactors([[0]], 3.0, grad_product), "log_density must be a function"),
        (lambda: FactorGraph(Reals(2), [PRODUCT]), "group 0: factor 0 names variable 2"),
        (lambda: FactorGraph(Discrete([2, 2, 2]), [PRODUCT]), "Reals"),
        (lambda: compile_density(ising(0.3, np.zeros((2, 2)))), "density samplers need real variables"),
        (lambda: graph().log_potential(np.full(6, np.nan)), "variable 0 must be a finite number, not nan"),
        (lambda: graph().log_potential(np.zeros(5)), r"shape \[6\], P points \[P, 6\], got \(5,\)"),
        (lambda: compile_density(graph()).grad(np.zeros((2, 5))), r"have shape \[P, 6\]"),
        (lambda: FactorGraph(Reals(2), [TableFactors([[0]], [[0.0, 1.0]])]), "variables with Discrete domains"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_functions_of_the_wrong_shape_are_told():
    density = compile_density(FactorGraph(Reals(2), [DensityFactors([[0, 1]], lambda x: x, lambda x: x[:, :1])]))
    with pytest.raises(
        ValueError, match=r"log_density must return an array of shape \(3,\) for points of shape \(3, 2\), not of"
    ):
        density.log_density(np.zeros((3, 2)))
    with pytest.raises(
        ValueError, match=r"grad must return an array of the shape of its points, \(3, 2\), not \(3, 1\)"
    ):
        density.grad(np.zeros((3, 2)))
