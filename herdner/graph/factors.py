"""Factors: groups of log-potentials of one form, over scopes of one size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import factors as loops
from herdner.base.arrays import Floats, Int32s, constant, frozen, frozen_or_constant
from herdner.graph.domain import Domains

LARGEST = 1e300  # of sums of log-potentials, as of all loops: their differences, and sums of these, are still doubles


class Factors(Protocol):
    """A group of factors. FactorGraph asks no more of one than this, so it is blind to the kind of factor."""

    @property
    def scopes(self) -> Int32s:
        """[F, a]: the a variables of each of the F factors."""
        ...

    def check(self, domains: Domains) -> None:
        """ValueError where the factors do not fit variables with these domains."""
        ...

    def log_potential(self, points: NDArray[Any]) -> Floats:
        """[P]: the sum of the factors at each of the points [P, V]."""
        ...

    def condition(self, values: NDArray[Any], observed: NDArray[np.bool_], renumber: Int32s) -> Sequence[Factors]:
        """The factors with the ``observed`` [V] variables fixed at ``values`` [V], the others renumbered."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class TableFactors:
    """F factors of a variables each: the log-potential of factor f is ``scale[f] * tables[table_of_factor[f]]``.

    Rows of one repeated number, default or given by `numpy.broadcast_to`, take no memory. With a = 0 (``scopes`` of
    shape [F, 0]) the factors are constants.

    A table entry of -inf forbids its labels whatever the scale is, so factors that use such a table need a scale above
    0. NaN and +inf are refused, and finite entries that could add up to more than 1e300, near the end of the range of a
    double.

    Attributes:
        scopes: int32[F, a], distinct variables.
        tables: float64[T, K1, .., Ka] (natural logarithms), so that tied factors share one.
        table_of_factor: int32[F], by default table 0 for all or, where there are F tables, one each.
        scale: float64[F], finite, by default 1; their sizes add up to at most 1e300.
        unscaled: Says that all scales are 1.

    Raises:
        ValueError: Something does not fit.
    """

    scopes: Int32s
    tables: Floats
    table_of_factor: Int32s
    scale: Floats
    unscaled: bool = field(init=False, repr=False)
    reach: float = field(init=False, repr=False)  # no finite sum of the factors is larger, in either direction

    def __init__(
        self,
        scopes: ArrayLike,
        tables: ArrayLike,
        table_of_factor: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        scopes = frozen(scopes, np.int32, "scopes")
        tables = frozen(tables, np.float64, "tables")
        if scopes.ndim != 2:
            raise ValueError(f"scopes must have shape [factors, variables of a factor], not {scopes.shape}")
        n, arity = scopes.shape
        if tables.ndim != arity + 1:
            raise ValueError(
                f"factors of {arity} variables need tables of {arity + 1} axes (table, then a label of each variable),"
                f" not of shape {tables.shape}"
            )
        chosen = _default_tables(n, len(tables)) if table_of_factor is None else table_of_factor
        chosen = frozen_or_constant(chosen, np.int32, "table_of_factor")
        scale = frozen_or_constant(constant(1, n, np.float64) if scale is None else scale, np.float64, "scale")
        for name, array in (("table_of_factor", chosen), ("scale", scale)):
            if array.shape != (n,):
                raise ValueError(f"{name} must have one entry for each of the {n} factors, not shape {array.shape}")
        object.__setattr__(self, "unscaled", bool(((scale if scale.strides[0] else scale[:1]) == 1.0).all()))
        object.__setattr__(self, "scopes", scopes)
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "table_of_factor", chosen)
        object.__setattr__(self, "scale", scale)
        kind, at, reach = loops.find_fault(scopes, chosen, scale, self.rows, LARGEST)
        if kind is not None:
            raise ValueError(self._fault(kind, at))
        object.__setattr__(self, "reach", reach)

    def __len__(self) -> int:
        return len(self.scopes)

    @property
    def arity(self) -> int:
        """The number of variables of each factor."""
        return self.scopes.shape[1]

    @property
    def rows(self) -> Floats:
        """The tables as rows of cells, [T, K1 * .. * Ka]."""
        return self.tables.reshape(len(self.tables), math.prod(self.tables.shape[1:]))

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.integer]) -> TableFactors:
        """Some of the factors: a mask of them, or their numbers."""
        return TableFactors(self.scopes[chosen], self.tables, self.table_of_factor[chosen], self.scale[chosen])

    def _fault(self, kind: str, at: int) -> str:
        """What ``find_fault`` found, in words."""
        if kind == "entry":
            return f"table {at} holds NaN or +inf; log-potentials are finite or -inf"
        scope, table, scale = self.scopes[at].tolist(), int(self.table_of_factor[at]), float(self.scale[at])
        words = {
            "negative": f"factor {at} has the scope {scope}; variables count from 0",
            "repeated": f"factor {at} has the scope {scope}, which names a variable twice",
            "table": f"factor {at} uses table {table}, but the tables are 0 to {len(self.tables) - 1}",
            "scale": f"factor {at} has scale {scale}, which is not a finite number",
            "scales": f"factor {at} has scale {scale:g}: with those before it the scales add up to more than"
            f" {LARGEST:g}; use smaller ones, and larger tables",
            "forbidding": f"factor {at} has scale {scale:g}, but its table {table} holds -inf, which needs a scale"
            " above 0; keep the constraints in a group of their own",
            "reach": f"factor {at}, of the variables {scope}, has too large log-potentials: with those before it they"
            f" could add up to more than {LARGEST:g}; use smaller ones, or -inf in place of large penalties",
        }
        return words[kind]

    def check(self, domains: Domains) -> None:
        """ValueError where a scope does not exist in ``domains``, or a table has not its numbers of labels."""
        sizes = getattr(domains, "sizes", None)
        if sizes is None:
            raise ValueError(f"table factors need variables with labels, not {type(domains).__name__}")
        misfit = loops.find_misfit(self.scopes, sizes, self.tables.shape[1:])
        if misfit is None:
            return
        f, a = misfit
        i, width = int(self.scopes[f, a]), self.tables.shape[a + 1]
        if i >= len(domains):
            raise ValueError(f"factor {f} names variable {i}, but the graph's variables are 0 to {len(domains) - 1}")
        raise ValueError(f"factor {f}: variable {i} has {sizes[i]} labels, but axis {a + 1} of its table has {width}")

    def log_potential(self, points: NDArray[np.integer]) -> Floats:
        """[P]: the sum of the factors at each of the states ``points`` int[P, V]."""
        cells = tuple(points[:, self.scopes[:, a]] for a in range(self.arity))
        return (self.scale * self.tables[(self.table_of_factor, *cells)]).sum(axis=-1) * np.ones(len(points))

    def condition(
        self, values: NDArray[np.integer], observed: NDArray[np.bool_], renumber: Int32s
    ) -> list[TableFactors]:
        """One group for each set of positions that are observed; equal slices of a table are stored once."""
        if not len(self):
            return []
        pattern_of = observed[self.scopes] @ (1 << np.arange(self.arity))
        groups: list[TableFactors] = []
        for code in np.flatnonzero(np.bincount(pattern_of)):
            pattern = code >> np.arange(self.arity) & 1
            chosen, at, free = np.flatnonzero(pattern_of == code), np.flatnonzero(pattern), np.flatnonzero(1 - pattern)
            scopes, sizes = self.scopes[chosen], (len(self.tables), *(self.tables.shape[a + 1] for a in at))
            labels = [values[scopes[:, a]] for a in at]
            slices = np.ravel_multi_index([self.table_of_factor[chosen], *labels], sizes)
            distinct, table_of_factor = np.unique(slices, return_inverse=True)
            moved = np.moveaxis(self.tables, [0, *(at + 1)], range(len(at) + 1))
            tables = moved[np.unravel_index(distinct, sizes)]
            which = table_of_factor.reshape(-1).astype(np.int32)
            groups.append(TableFactors(renumber[scopes[:, free]], tables, which, self.scale[chosen]))
        return groups


def _default_tables(n_factors: int, n_tables: int) -> Int32s:
    if n_tables == 1:
        return constant(0, n_factors, np.int32)
    if n_tables == n_factors:
        return np.arange(n_factors, dtype=np.int32)
    raise ValueError(f"table_of_factor must say which of the {n_tables} tables each of the {n_factors} factors uses")
