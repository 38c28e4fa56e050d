"""Sums and products of arrays with their rounding errors (Dekker 1971; Knuth 1969)."""

from __future__ import annotations

import numpy as np

from herdner.base.arrays import Floats

_SPLIT = 2.0**27 + 1


def exact_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sums ``a + b`` and their rounding errors; a rounded sum plus its error is the exact sum.

    Args:
        a: Array of finite numbers or -inf.
        b: Array of finite numbers or -inf.

    Returns:
        The rounded sums, and their errors; the error of an infinite sum is 0.
    """
    total = a + b
    with np.errstate(invalid="ignore"):
        part = total - a
        error = (a - (total - part)) + (b - part)
    return total, np.where(np.isfinite(total), error, 0.0)


def exact_product(scale: float, x: Floats) -> tuple[Floats, Floats]:
    """Return the rounded products ``scale * x`` and their rounding errors; product plus error is the exact product.

    The error is exact if it is not below the range of normal doubles.

    Args:
        scale: A finite number.
        x: Array of finite numbers or -inf.

    Returns:
        The rounded products, and their errors; the error of an infinite product is 0.
    """
    product, (a, up) = scale * x, np.frexp(scale)
    b, more = np.frexp(np.where(np.isfinite(x), x, 0.0))
    a_high, b_high = (_SPLIT * part - (_SPLIT * part - part) for part in (a, b))
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - a * b) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, np.where(np.isfinite(product), np.ldexp(error, up + more), 0.0)
