"""Finite differences: what gradients are held against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def finite_differences(function: Callable, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """[P, d]: central differences of ``function`` [P, d] -> [P] at points [P, d]."""
    out = np.empty(x.shape)
    for i in range(x.shape[1]):
        shift = np.zeros(x.shape[1])
        shift[i] = step
        out[:, i] = (function(x + shift) - function(x - shift)) / (2 * step)
    return out
