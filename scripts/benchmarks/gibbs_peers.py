"""Gibbs and herded Gibbs sampling of an Ising grid in the usual way: by loops in numba and by slices of NumPy arrays.

Spins are int8 [rows, columns], -1 or +1. The log-potential is coupling times the sum of s_i s_j over the edges of the
grid, which does not wrap around, plus the sum of field[i] s_i.
"""

from __future__ import annotations

import numba  # pyright: ignore[reportMissingImports]  # an extra
import numpy as np
from numpy.typing import NDArray


@numba.njit
def seed(number: int) -> None:
    """Seed the generator of the compiled loops, which numba requires in compiled code."""
    np.random.seed(number)  # noqa: NPY002


@numba.njit
def raster_gibbs(spins: NDArray[np.int8], field: NDArray[np.float64], coupling: float, sweeps: int) -> None:
    """Run Gibbs sampling pixel by pixel in raster order."""
    rows, columns = spins.shape
    for _ in range(sweeps):
        for i in range(rows):
            for j in range(columns):
                near = 0
                if i > 0:
                    near += spins[i - 1, j]
                if i < rows - 1:
                    near += spins[i + 1, j]
                if j > 0:
                    near += spins[i, j - 1]
                if j < columns - 1:
                    near += spins[i, j + 1]
                p = 1.0 / (1.0 + np.exp(-2.0 * (coupling * near + field[i, j])))
                spins[i, j] = 1 if np.random.random() < p else -1  # noqa: NPY002


@numba.njit
def raster_herded_gibbs(
    spins: NDArray[np.int8], field: NDArray[np.float64], coupling: float, weights: NDArray[np.float64], sweeps: int
) -> None:
    """Run herded Gibbs sampling (HG16 Algorithm 1); ``weights`` has the shape [rows, columns, 16 blanket states]."""
    rows, columns = spins.shape
    for _ in range(sweeps):
        for i in range(rows):
            for j in range(columns):
                near, key = 0, 0
                if i > 0:
                    near += spins[i - 1, j]
                    key += spins[i - 1, j] > 0
                if i < rows - 1:
                    near += spins[i + 1, j]
                    key += 2 * (spins[i + 1, j] > 0)
                if j > 0:
                    near += spins[i, j - 1]
                    key += 4 * (spins[i, j - 1] > 0)
                if j < columns - 1:
                    near += spins[i, j + 1]
                    key += 8 * (spins[i, j + 1] > 0)
                p = 1.0 / (1.0 + np.exp(-2.0 * (coupling * near + field[i, j])))
                x = 1 if weights[i, j, key] > 0.0 else 0
                weights[i, j, key] += p - x
                spins[i, j] = 2 * x - 1


class Checkerboard:
    """Gibbs sampling in NumPy, which updates all pixels of one colour of a checkerboard at once by two slices."""

    def __init__(self, field: NDArray[np.float64], coupling: float, rng: np.random.Generator) -> None:
        self.field, self.coupling, self.rng = field, coupling, rng
        padded = np.zeros((field.shape[0] + 2, field.shape[1] + 2), np.int8)
        self.spins, self.up, self.down = padded[1:-1, 1:-1], padded[:-2, 1:-1], padded[2:, 1:-1]
        self.left, self.right = padded[1:-1, :-2], padded[1:-1, 2:]
        self.spins[:] = random_spins(field.shape, rng)

    def __call__(self, sweeps: int) -> None:
        for _ in range(sweeps):
            for colour in range(2):
                for first in range(2):
                    self._update((slice(first, None, 2), slice((first + colour) % 2, None, 2)))

    def _update(self, at: tuple[slice, slice]) -> None:
        near = self.up[at] + self.down[at] + self.left[at] + self.right[at]
        p = 1.0 / (1.0 + np.exp(-2.0 * (self.coupling * near + self.field[at])))
        self.spins[at] = np.where(self.rng.random(p.shape) < p, 1, -1)


class Raster:
    """State of a sampler in numba, with herding weights if it herds. A call of the object makes a number of sweeps."""

    def __init__(
        self, field: NDArray[np.float64], coupling: float, rng: np.random.Generator, *, herded: bool = False
    ) -> None:
        self.spins, self.field, self.coupling = random_spins(field.shape, rng), field, coupling
        self.weights = rng.random((*field.shape, 16)) if herded else None
        seed(int(rng.integers(2**31)))
        self(0)  # compiles

    def __call__(self, sweeps: int) -> None:
        if self.weights is None:
            raster_gibbs(self.spins, self.field, self.coupling, sweeps)
        else:
            raster_herded_gibbs(self.spins, self.field, self.coupling, self.weights, sweeps)


def random_spins(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int8]:
    return (2 * rng.integers(0, 2, shape) - 1).astype(np.int8)
