"""Weighted points: what samplers of continuous distributions return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """A distribution as N weighted points: samples and particles alike.

    Attributes:
        x: float64[N, d].
        weights: float64[N]: 1 / N for samples; quadrature weights may be negative and need not add up to 1.
        scores: float64[N, d]: the gradients of the log-density at x, where the sampler keeps them.
        history: What the sampler noted, in arrays by name; one entry for each particle or iteration.
        n_gradients: Gradients of single points that were computed (one of a mini-batch counts as one).
        seconds: Wall time.
    """

    x: Floats
    weights: Floats
    scores: Floats | None = None
    history: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    n_gradients: int = 0
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.x)

    def expect(self, f: Callable[[Floats], NDArray[Any]]) -> Floats:
        """The weighted sum of ``f``, which maps points [N, d] to [N] or [N, ..]; a number or an array [..]."""
        values: NDArray[Any] = np.asarray(f(self.x))
        if values.shape[:1] != (len(self),):
            raise ValueError(f"f must return one value or row for each of the {len(self)} points, not {values.shape}")
        return np.tensordot(self.weights, values, axes=1)
