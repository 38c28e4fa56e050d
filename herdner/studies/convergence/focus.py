"""One variable X in focus, as HGW19 Sec. 4.1 looks at a herded sampler: the state Z of all others, and the weight Y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int64s
from herdner.inference.gibbs.sharing import Sharing

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Focus:
    """What an update of one variable X of K labels depends on.

    Z states z of the other variables, the last of them fastest; L = 1 weight that z uses, or up to K of which one is
    drawn (`random_bins`); Y weights in all.

    Attributes:
        variable: X.
        target: float64[Z, K]: pi(x, z).
        keys: int64[L, Z]: the weights y that z can use, 0 to Y - 1.
        chances: float64[L, Z]: pi(y | z) of each.
        aims: float64[Y, K]: q(x | y) where the weight herds probabilities of its own (RDHG); None: the mean of
            pi(x | z) over the samples of y (HGW19 eq. 1).
        sizes: Numbers of labels of the other variables.
    """

    variable: int
    target: Floats
    keys: Int64s
    chances: Floats
    aims: Floats | None = None
    sizes: tuple[int, ...] = ()

    @classmethod
    def of(cls, whole: Floats, variable: int, keys: Int64s, sharing: Sharing) -> Focus:
        """``whole`` [K1, .., KV] is the joint; ``keys`` [Z] those of the sampler, of random bins the lower of two."""
        target = by_others(whole, variable)
        sizes = tuple(size for j, size in enumerate(whole.shape) if j != variable)
        if sharing.kind != "random-bins":
            _, compact = np.unique(keys, return_inverse=True)
            return cls(variable, target, compact.reshape(1, -1), np.ones((1, len(keys))), sizes=sizes)
        scaled = conditional(target)[:, 1] * sharing.n_bins
        upper = np.minimum(keys + 1, sharing.n_bins)
        chance = np.clip(scaled - keys, 0.0, 1.0)
        ones = np.arange(sharing.n_bins + 1) / sharing.n_bins
        aims = np.stack([1 - ones, ones], axis=1)
        return cls(variable, target, np.stack([keys, upper]), np.stack([1 - chance, chance]), aims, sizes)

    @property
    def n_weights(self) -> int:
        """Y."""
        return int(self.keys.max()) + 1 if self.aims is None else len(self.aims)


def by_others(whole: NDArray[T], variable: int) -> NDArray[T]:
    """[Z, K] from [K1, .., KV]: the variable last, the states of the others flat."""
    return np.moveaxis(whole, variable, -1).reshape(-1, whole.shape[variable])


def conditional(target: Floats) -> Floats:
    """[Z, K]: pi(x | z); 1 / K where z is impossible."""
    total, even = target.sum(axis=1, keepdims=True), float(1 / target.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, target / total, even)
