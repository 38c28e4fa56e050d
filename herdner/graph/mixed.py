"""Mixed graphs: labels beside real variables, joined by likelihoods that become tables once these are observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import frozen
from herdner.graph.density import Reals
from herdner.graph.domain import Domains, Labels
from herdner.graph.factors import TableFactors


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """Domains of both kinds: variable i has ``sizes``[i] labels, or is any finite real number where that is 0."""

    sizes: NDArray[np.int32]

    def __post_init__(self) -> None:
        sizes = frozen(self.sizes, np.int32, "sizes")
        if sizes.ndim != 1 or (sizes.size and sizes.min() < 0):
            raise ValueError("sizes must be a list of numbers of labels, 0 for real variables")
        object.__setattr__(self, "sizes", sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def points(self, x: ArrayLike) -> NDArray:
        """float64[P, V]; labels are whole numbers too."""
        points = np.asarray(x)
        if points.size and points.dtype.kind not in "iuf":
            raise ValueError(f"a point holds labels and real numbers, not {points.dtype}")
        if points.ndim not in (1, 2) or points.shape[-1] != len(self):
            raise ValueError(f"a point of this graph has shape [{len(self)}] or [P, {len(self)}], not {points.shape}")
        points = np.ascontiguousarray(points if points.ndim == 2 else points[None], np.float64)
        labels = self.sizes > 0
        wrong = ~np.isfinite(points)
        wrong[:, labels] |= (points[:, labels] % 1 != 0) | (points[:, labels] < 0)
        wrong[:, labels] |= points[:, labels] >= self.sizes[labels]
        if wrong.any():
            p, i = np.argwhere(wrong)[0]
            wanted = f"has the labels 0 to {self.sizes[i] - 1}" if self.sizes[i] else "is a finite number"
            raise ValueError(f"variable {i} {wanted}, not {points[p, i]}")
        return points

    def select(self, variables: NDArray[np.int64]) -> Domains:
        """`Labels` or `Reals` where all of them are of one kind."""
        sizes = self.sizes[variables]
        if not len(sizes) or sizes.min() > 0:
            return Labels(sizes)
        return Mixed(sizes) if sizes.max() > 0 else Reals(len(sizes))


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodFactors:
    """F factors log p(y | x), each of a variable x with K labels and a real variable y.

    ``scopes`` int32[F, 2]: x, then y. ``log_likelihood``: y float64[P] -> float64[P, K], natural logarithms, finite or
    -inf. Once y is observed each factor is a unary table. Labels can be observed together with their y only. All errors
    are ValueError.
    """

    scopes: NDArray[np.int32]
    log_likelihood: Callable[[NDArray[np.float64]], NDArray[np.float64]]

    def __post_init__(self) -> None:
        scopes = frozen(self.scopes, np.int32, "scopes")
        if scopes.ndim != 2 or scopes.shape[1] != 2:
            raise ValueError(f"scopes must be pairs [F, 2] of a labelled and a real variable, not {scopes.shape}")
        object.__setattr__(self, "scopes", scopes)

    def __len__(self) -> int:
        return len(self.scopes)

    def check(self, domains: Domains) -> None:
        """ValueError unless the scopes name variables of `Mixed` domains, of the right kinds."""
        if not isinstance(domains, Mixed):
            raise ValueError(f"likelihoods need variables with labels and real ones, not {type(domains).__name__}")
        if not len(self):
            return
        if self.scopes.min() < 0 or self.scopes.max() >= len(domains):
            raise ValueError(f"a likelihood names variable {self.scopes.max()}; they are 0 to {len(domains) - 1}")
        sizes = domains.sizes[self.scopes]
        wrong = (sizes[:, 0] != self._table(np.zeros(1)).shape[1]) | (sizes[:, 1] > 0)
        if wrong.any():
            f = int(wrong.argmax())
            raise ValueError(
                f"likelihood {f} joins variables of {sizes[f, 0]} and {sizes[f, 1]} labels; the first must have as many"
                " as the likelihood has columns, the second be real (0)"
            )

    def log_potential(self, points: NDArray) -> NDArray[np.float64]:
        """[P]: the sum of the factors at each of the points [P, V]."""
        x, y = points[:, self.scopes[:, 0]].astype(np.int64), points[:, self.scopes[:, 1]]
        table = self._table(y.ravel())
        return table[np.arange(len(table)), x.ravel()].reshape(y.shape).sum(axis=1)

    def condition(
        self, values: NDArray, observed: NDArray[np.bool_], renumber: NDArray[np.int32]
    ) -> Sequence[TableFactors | LikelihoodFactors]:
        """Unary tables where y is observed, constants where x is too."""
        if not len(self):
            return []
        seen_x, seen_y = observed[self.scopes[:, 0]], observed[self.scopes[:, 1]]
        if (seen_x & ~seen_y).any():
            f = int((seen_x & ~seen_y).argmax())
            raise ValueError(
                f"variable {self.scopes[f, 0]} is observed without the real {self.scopes[f, 1]} it explains"
            )
        groups: list[TableFactors | LikelihoodFactors] = []
        if not seen_y.all():
            groups.append(LikelihoodFactors(renumber[self.scopes[~seen_y]], self.log_likelihood))
        if (seen_y & ~seen_x).any():
            scopes = self.scopes if seen_y.all() and not seen_x.any() else self.scopes[seen_y & ~seen_x]
            groups.append(TableFactors(renumber[scopes[:, :1]], self._table(values[scopes[:, 1]])))
        if seen_x.any():
            scopes = self.scopes[seen_x]
            table = self._table(np.asarray(values[scopes[:, 1]], np.float64))
            known = table[np.arange(len(scopes)), values[scopes[:, 0]].astype(np.int64)]
            groups.append(TableFactors(np.empty((len(scopes), 0), np.int32), known))
        return groups

    def _table(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        table = np.asarray(self.log_likelihood(y), np.float64)
        if table.ndim != 2 or len(table) != len(y):
            raise ValueError(f"log_likelihood returned shape {table.shape} for {len(y)} values; it must be (P, labels)")
        return table
