"""Groups of factors given by tables of log-potentials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import factors as loops
from herdner.base.arrays import Floats, Int32s, constant, frozen, frozen_or_constant
from herdner.base.representation import short_repr
from herdner.graph.domain import Domains

# Largest sum of log-potentials in any loop. Differences of two such sums, and sums of such differences, are finite.
LARGEST = 1e300


class Factors(Protocol):
    """Interface of a group of factors in a `FactorGraph`. All factors of a group have the same number of variables."""

    @property
    def scopes(self) -> Int32s:
        """The variables of each factor, int32[F, a]."""
        ...

    def check(self, domains: Domains) -> None:
        """Raise ``ValueError`` unless the graph has the variables of each factor, with domains that the factor accepts.

        Args:
            domains: The domains of the graph's variables.
        """
        ...

    def log_potential(self, points: NDArray[Any]) -> Floats:
        """Return, for each of P points, the sum of the log-potentials of the group's factors, float64[P].

        Args:
            points: [P, V], the values of all variables.
        """
        ...

    def condition(self, values: NDArray[Any], observed: NDArray[np.bool_], renumber: Int32s) -> Sequence[Factors]:
        """Fix the observed variables to their values, and return the resulting factors of the remaining variables.

        Args:
            values: [V], the values of the observed variables; other entries are ignored.
            observed: bool[V], the variables to fix.
            renumber: int32[V], the index of each remaining variable in the graph that results.

        Returns:
            Groups of factors, with the new indices of the remaining variables.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableFactors:
    """Group of F factors that have ``a`` variables each and are defined by tables of log-potentials.

    The log-potential of factor f is ``scale[f] * tables[table_of_factor[f]]``. Factors that use the same table are
    tied. Factors over no variables (``scopes`` of shape [F, 0]) are constants. A table entry of -inf forbids its
    combination of states, whatever the scale; factors that use such a table need a scale above 0. Arrays that repeat
    one number by stride 0, as `numpy.broadcast_to` makes them, are stored as one number.

    Attributes:
        scopes: int32[F, a], the distinct variables of each factor.
        tables: float64[T, K1, .., Ka], natural logarithms.
        table_of_factor: int32[F], the table of each factor.
        scale: float64[F], the multiplier of each factor's table.
        unscaled: True if all scales are 1.
        reach: Bound on the absolute value of any finite sum of the factors.
    """

    scopes: Int32s
    tables: Floats
    table_of_factor: Int32s
    scale: Floats
    unscaled: bool = field(init=False, repr=False)
    reach: float = field(init=False, repr=False)

    __repr__ = short_repr

    def __init__(
        self,
        scopes: ArrayLike,
        tables: ArrayLike,
        table_of_factor: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        """Copy and check the scopes and tables.

        Args:
            scopes: int[F, a], the distinct variables of each factor.
            tables: float[T, K1, .., Ka], log-potentials, finite or -inf.
            table_of_factor: int[F], the table of each factor. None means table 0 for all factors if T is 1, and table
                f for each factor f if T is F.
            scale: float[F], finite; None means 1 for all factors.

        Raises:
            ValueError: The shapes do not fit, an index is out of range, an entry is NaN or +inf, or the finite
                log-potentials could add up to more than 1e300.
        """
        scopes = frozen(scopes, np.int32, "scopes")
        tables = frozen(tables, np.float64, "tables")
        if scopes.ndim != 2:
            raise ValueError(f"scopes must have shape [factors, variables of a factor], not {scopes.shape}")
        n, arity = scopes.shape
        if tables.ndim != arity + 1:
            raise ValueError(
                f"`tables` of factors of {arity} variables must have {arity + 1} axes (table index, then the state of"
                f" each variable), got shape {tables.shape}"
            )
        tables_used = _default_tables(n, len(tables)) if table_of_factor is None else table_of_factor
        tables_used = frozen_or_constant(tables_used, np.int32, "table_of_factor")
        scale = frozen_or_constant(constant(1, n, np.float64) if scale is None else scale, np.float64, "scale")
        for name, array in (("table_of_factor", tables_used), ("scale", scale)):
            if array.shape != (n,):
                raise ValueError(f"{name} must have one entry for each of the {n} factors, not shape {array.shape}")
        object.__setattr__(self, "unscaled", bool(((scale if scale.strides[0] else scale[:1]) == 1.0).all()))
        object.__setattr__(self, "scopes", scopes)
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "table_of_factor", tables_used)
        object.__setattr__(self, "scale", scale)
        kind, at, reach = loops.find_fault(scopes, tables_used, scale, self.rows, LARGEST)
        if kind is not None:
            raise ValueError(self._fault(kind, at))
        object.__setattr__(self, "reach", reach)

    def __reduce__(self) -> tuple[Any, ...]:
        """Make `copy` and `pickle` call the constructor, which checks the arrays."""
        return TableFactors, (self.scopes, self.tables, self.table_of_factor, self.scale)

    def __len__(self) -> int:
        """Return the number of factors in the group."""
        return len(self.scopes)

    @property
    def arity(self) -> int:
        """Number of variables of each factor."""
        return self.scopes.shape[1]

    @property
    def rows(self) -> Floats:
        """The T tables of log-potentials, each as one row, float64[T, K1 * .. * Ka]."""
        return self.tables.reshape(len(self.tables), math.prod(self.tables.shape[1:]))

    def part(self, factors: NDArray[np.bool_] | NDArray[np.integer]) -> TableFactors:
        """Return a new group that has the selected factors of this group, and all tables of this group.

        Args:
            factors: bool[F], a mask, or int[N], indices.
        """
        return TableFactors(self.scopes[factors], self.tables, self.table_of_factor[factors], self.scale[factors])

    def _fault(self, kind: str, at: int) -> str:
        """Return the error message for a fault code of the compiled function ``find_fault``."""
        if kind == "entry":
            return f"table {at} holds NaN or +inf; log-potentials must be finite or -inf"
        scope, table, scale = self.scopes[at].tolist(), int(self.table_of_factor[at]), float(self.scale[at])
        messages = {
            "negative": f"factor {at} has the scope {scope}; variables are numbered from 0",
            "repeated": f"factor {at} has the scope {scope}, which names a variable twice",
            "table": f"factor {at} uses table {table}, but the tables are 0 to {len(self.tables) - 1}",
            "scale": f"factor {at} has scale {scale}, which is not a finite number",
            "scales": f"the scales of factors 0 to {at} add up to more than {LARGEST:g} (factor {at} has scale"
            f" {scale:g}); use smaller scales and larger tables",
            "forbidding": f"factor {at} has scale {scale:g}, but its table {table} holds -inf, which needs a scale"
            " above 0; put hard constraints into a separate group",
            "reach": f"the log-potentials of factors 0 to {at} could add up to more than {LARGEST:g} (factor {at} has"
            f" the variables {scope}); use smaller log-potentials, or -inf in place of large penalties",
        }
        return messages[kind]

    def check(self, domains: Domains) -> None:
        """Raise ``ValueError`` if a variable of a factor is unknown or has more states than the factor's table covers.

        Args:
            domains: The domains of the graph's variables, `Discrete`.

        Raises:
            ValueError: The domains are not `Discrete`, or a factor does not fit its variables.
        """
        sizes = getattr(domains, "sizes", None)
        if sizes is None:
            raise ValueError(f"table factors need variables with Discrete domains, not {type(domains).__name__}")
        misfit = loops.find_misfit(self.scopes, sizes, self.tables.shape[1:])
        if misfit is None:
            return
        f, a = misfit
        i, width = int(self.scopes[f, a]), self.tables.shape[a + 1]
        if i >= len(domains):
            raise ValueError(f"factor {f} names variable {i}, but the graph's variables are 0 to {len(domains) - 1}")
        raise ValueError(
            f"factor {f}: variable {i} has {sizes[i]} states, but axis {a + 1} of the factor's table has size {width}"
        )

    def log_potential(self, points: NDArray[np.integer]) -> Floats:
        """Return, for each of P joint states, the sum of the log-potentials of the group's factors, float64[P].

        Args:
            points: int[P, V], the states of all variables.
        """
        cells = tuple(points[:, self.scopes[:, a]] for a in range(self.arity))
        return (self.scale * self.tables[(self.table_of_factor, *cells)]).sum(axis=-1) * np.ones(len(points))

    def condition(
        self, values: NDArray[np.integer], observed: NDArray[np.bool_], renumber: Int32s
    ) -> list[TableFactors]:
        """Fix the observed variables to their values, and return the resulting factors of the remaining variables.

        Factors whose observed variables are at the same scope positions form one group. Equal slices of a table are
        stored once.

        Args:
            values: int[V], the states of the observed variables; other entries are ignored.
            observed: bool[V], the variables to fix.
            renumber: int32[V], the index of each remaining variable in the graph that results.

        Returns:
            Groups of factors, with the new indices of the remaining variables.
        """
        if not len(self):
            return []
        pattern_of = observed[self.scopes] @ (1 << np.arange(self.arity))
        groups: list[TableFactors] = []
        for code in np.flatnonzero(np.bincount(pattern_of)):
            pattern = code >> np.arange(self.arity) & 1
            factors, at, free = np.flatnonzero(pattern_of == code), np.flatnonzero(pattern), np.flatnonzero(1 - pattern)
            scopes, sizes = self.scopes[factors], (len(self.tables), *(self.tables.shape[a + 1] for a in at))
            states = [values[scopes[:, a]] for a in at]
            slices = np.ravel_multi_index([self.table_of_factor[factors], *states], sizes)
            distinct, table_of_factor = np.unique(slices, return_inverse=True)
            tables = np.moveaxis(self.tables, [0, *(at + 1)], range(len(at) + 1))[np.unravel_index(distinct, sizes)]
            used = table_of_factor.reshape(-1).astype(np.int32)
            groups.append(TableFactors(renumber[scopes[:, free]], tables, used, self.scale[factors]))
        return groups


def _default_tables(n_factors: int, n_tables: int) -> Int32s:
    if n_tables == 1:
        return constant(0, n_factors, np.int32)
    if n_tables == n_factors:
        return np.arange(n_factors, dtype=np.int32)
    raise ValueError(
        f"without table_of_factor, `tables` must have 1 table, or one for each of the {n_factors} factors, got"
        f" {n_tables} tables"
    )
