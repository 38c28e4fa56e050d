"""Sums and products with their rounding errors, compared with fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from herdner.base.sums import exact_product, exact_sum


def test_a_sum_and_its_error_add_up_exactly() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=2000) * 10.0 ** rng.uniform(-20, 20, 2000) for _ in range(2))
    total, error = exact_sum(a, b)
    np.testing.assert_array_equal(total, a + b)
    for x, y, s, e in zip(a, b, total, error, strict=True):
        assert Fraction(x) + Fraction(y) == Fraction(s) + Fraction(e)
    assert np.any(error != 0)


def test_a_product_and_its_error_add_up_exactly() -> None:
    rng = np.random.default_rng(1)
    for scale in (0.3, -1.7e150, 1e-90, 5.0):
        x = rng.normal(size=200) * 10.0 ** rng.uniform(-30, 140, 200)
        product, error = exact_product(scale, x)
        np.testing.assert_array_equal(product, scale * x)
        for y, p, e in zip(x, product, error, strict=True):
            assert Fraction(scale) * Fraction(y) == Fraction(p) + Fraction(e)


def test_infinite_entries_have_no_error() -> None:
    a, b = np.array([-np.inf, 1.0, -np.inf]), np.array([2.0, -np.inf, -np.inf])
    total, error = exact_sum(a, b)
    assert np.isneginf(total).all()
    assert not error.any()
    product, error = exact_product(2.0, a)
    assert product.tolist() == [-np.inf, 2.0, -np.inf]
    assert not error.any()
