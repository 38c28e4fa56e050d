"""Minimisation with an L1 norm, beside closed forms and bounded L-BFGS."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize

from herdner.base.arrays import Floats
from herdner.crf.lbfgs import minimise_l1


def test_a_separable_quadratic_has_its_minimum_at_the_soft_threshold() -> None:
    rng = np.random.default_rng(0)
    centre, curvature, l1 = rng.normal(size=50), rng.uniform(0.1, 10, 50), rng.uniform(0, 2, 50)
    point = minimise_l1(
        lambda x: (0.5 * float(curvature @ (x - centre) ** 2), curvature * (x - centre)),
        rng.normal(size=50), l1, on_iteration=lambda _, __: False, max_iterations=500,
    )  # fmt: skip
    expected = np.sign(centre) * np.maximum(np.abs(centre) - l1 / curvature, 0)
    assert point == pytest.approx(expected, abs=1e-6)
    assert ((point == 0) == (expected == 0)).all()


@pytest.mark.parametrize("weight", [0.0, 0.5, 3.0, 1e9])
def test_logistic_regression_agrees_with_bounded_l_bfgs(weight: float) -> None:
    rng = np.random.default_rng(1)
    inputs, l1 = rng.normal(size=(200, 30)), np.full(30, weight)
    signs = np.sign(inputs[:, :5].sum(axis=1) + rng.normal(size=200))

    def loss(x: Floats) -> tuple[float, Floats]:
        margins = signs * (inputs @ x)
        return float(np.logaddexp(0, -margins).sum()), -inputs.T @ (signs / (1 + np.exp(margins)))

    def split_loss(halves: Floats) -> tuple[float, Floats]:
        value, gradient = loss(halves[:30] - halves[30:])
        return value + weight * halves.sum(), np.concatenate([gradient + weight, weight - gradient])

    values: list[float] = []
    point = minimise_l1(
        loss, np.zeros(30), l1, on_iteration=lambda _, value: bool(values.append(value)), max_iterations=1000
    )
    expected = minimize(split_loss, np.zeros(60), jac=True, method="L-BFGS-B", bounds=Bounds(0, np.inf), tol=1e-14)
    assert loss(point)[0] + float(l1 @ np.abs(point)) <= expected.fun * (1 + 1e-9)
    assert values == sorted(values, reverse=True)
    if weight == 1e9:
        assert not point.any()


def test_the_search_ends_when_it_is_asked_to() -> None:
    points: list[Floats] = []

    def on_iteration(point: Floats, _: float) -> bool:
        points.append(point)
        return len(points) == 3

    centre = np.array([3.0, -2.0, 1.0, 5.0])
    curvature = np.array([1.0, 10.0, 100.0, 1000.0])
    result = minimise_l1(
        lambda x: (float(curvature @ (x - centre) ** 2), 2 * curvature * (x - centre)),
        np.zeros(4), np.ones(4), on_iteration=on_iteration, max_iterations=100,
    )  # fmt: skip
    assert len(points) == 3
    assert result is points[-1]
