"""Continuous graphs: real variables, factors given by a log-density and its gradient, and their compiled form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.base.arrays import Floats, Int32s, Int64s, frozen
from herdner.base.checks import check_integer
from herdner.base.extras import import_extra
from herdner.base.representation import short_repr
from herdner.graph.domain import Domains, point_rows
from herdner.graph.graph import FactorGraph


@dataclass(frozen=True, slots=True)
class Reals:
    """Continuous domains: each variable is a finite real number.

    Attributes:
        n: Number of variables.
    """

    n: int

    def __post_init__(self) -> None:
        """Raise ``ValueError`` unless ``n`` is an integer of at least 0."""
        check_integer(self.n, "the number of real variables", 0)

    def __len__(self) -> int:
        """Return the number of variables."""
        return int(self.n)

    def points(self, x: ArrayLike) -> Floats:
        """Check the values of all variables at P points, [P, V], or at one point, [V], and return them as rows [P, V].

        Args:
            x: float[V], or float[P, V] for P points.

        Returns:
            float64[P, V] (P = 1 for one point).

        Raises:
            ValueError: The shape is wrong, or a value is not finite.
        """
        rows = point_rows(x, len(self), "iuf", "point", "a point must hold real numbers")
        points = np.ascontiguousarray(rows, np.float64)
        if not np.isfinite(points).all():
            p, i = np.argwhere(~np.isfinite(points))[0]
            raise ValueError(f"variable {i} must be a finite number, not {points[p, i]}")
        return points

    def select(self, variables: Int64s) -> Reals:
        """Return the domains of the variables listed in ``variables``.

        Args:
            variables: int64[N], the variables in the order of the result.
        """
        return Reals(len(variables))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DensityFactors:
    """Group of F factors, each over ``a`` real variables, that share one log-density function.

    The functions map P points to P rows; a row of the result must depend on its point only.

    Attributes:
        scopes: int32[F, a], the distinct variables of each factor.
        log_density: Function from float64[P, a] to float64[P], natural logarithms up to a constant.
        grad: Function from float64[P, a] to float64[P, a], the derivatives. None derives it by JAX (package ``jax``),
            which requires that ``log_density`` uses `jax.numpy`.
        n_terms: Number of terms if the log-density is a sum over observations, else 0. Above 0, both functions take
            a second argument for mini-batches: int64[M], the terms to add up, or None for all.
        fixed: float64[F, A], the values that conditioning has fixed, and NaN for the a variables of the scope.
    """

    scopes: Int32s
    log_density: Callable[..., Any]
    grad: Callable[..., Any] = None  # type: ignore[assignment]
    n_terms: int = 0
    fixed: Floats | None = None
    # True for one factor over the variables 0 .. a - 1: its arguments are columns of the points, without a copy.
    _plain: bool = field(init=False, repr=False, default=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Copy and check the scopes; derive the gradient if it is missing.

        Raises:
            ValueError: A scope is wrong, or ``log_density`` is not a function.
            MissingExtra: The gradient is missing and JAX is not installed.
        """
        scopes = frozen(self.scopes, np.int32, "scopes")
        if scopes.ndim != 2:
            raise ValueError(f"scopes must have shape [factors, variables of a factor], not {scopes.shape}")
        if scopes.size and scopes.min() < 0:
            raise ValueError(f"a scope contains the variable {scopes.min()}; variables are numbered from 0")
        ordered = np.sort(scopes, axis=1)
        repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if repeated.any():
            raise ValueError(f"factor {int(repeated.argmax())} names a variable twice; name each variable once")
        if not callable(self.log_density):
            raise ValueError(
                "log_density must be a function that maps points [P, variables] to log-densities [P], got"
                f" {' '.join(repr(self.log_density).split()):.80}"
            )
        object.__setattr__(self, "scopes", scopes)
        first = np.arange(scopes.shape[1], dtype=np.int32)
        plain = len(scopes) == 1 and self.fixed is None and np.array_equal(scopes[0], first)
        object.__setattr__(self, "_plain", plain)
        if self.grad is None:
            log_density, grad = with_gradient(self.log_density)
            object.__setattr__(self, "log_density", log_density)
            object.__setattr__(self, "grad", grad)

    def __len__(self) -> int:
        """Return the number of factors in the group."""
        return len(self.scopes)

    def check(self, domains: Domains) -> None:
        """Raise ``ValueError`` unless the domains are `Reals` and contain all variables of the scopes.

        Args:
            domains: The domains of the graph's variables.

        Raises:
            ValueError: The domains have another type, or a scope contains an unknown variable.
        """
        if not isinstance(domains, Reals):
            raise ValueError(f"density factors need real variables, Reals(n), not {type(domains).__name__}")
        if self.scopes.size and self.scopes.max() >= len(domains):
            f = int((self.scopes >= len(domains)).any(axis=1).argmax())
            raise ValueError(
                f"factor {f} names variable {self.scopes[f].max()}, but the variables are 0 to {len(domains) - 1}"
            )

    def log_potential(self, points: Floats, terms: Int64s | None = None) -> Floats:
        """Return the sum of the group's factors at each of P points, float64[P].

        Args:
            points: float64[P, V], the values of all variables.
            terms: int64[M], the terms to add up; None is all.

        Raises:
            ValueError: ``log_density`` returns an array of the wrong shape.
        """
        at = self._arguments(points)
        values = np.asarray(self._call(self.log_density, at, terms), np.float64)
        if values.shape != (len(at),):
            raise ValueError(
                f"log_density must return an array of shape ({len(at)},) for points of shape {at.shape}, not of shape"
                f" {values.shape}"
            )
        return values.reshape(len(points), len(self)).sum(axis=1)

    def add_gradient(self, points: Floats, out: Floats, terms: Int64s | None = None, by: float = 1) -> None:
        """Add to ``out``, for each point, the gradient of the sum of the group's factors.

        Args:
            points: float64[P, V], the values of all variables.
            out: float64[P, V], receives the sum.
            terms: int64[M], the terms to add up; None is all.
            by: Multiplier of the gradient.

        Raises:
            ValueError: ``grad`` returns an array of the wrong shape.
        """
        at = self._arguments(points)
        values = np.asarray(self._call(self.grad, at, terms), np.float64)
        if values.shape != at.shape:
            raise ValueError(f"grad must return an array of the shape of its points, {at.shape}, not {values.shape}")
        values = values if by == 1 else by * values
        if self._plain:
            out[:, : values.shape[1]] += values
            return
        if self.fixed is not None:
            values = values.reshape(len(points), *self.fixed.shape)
            free = np.flatnonzero(np.isnan(self.fixed[:1]).any(axis=0))
            values = values[..., free]
        if len(self) == 1:
            out[:, self.scopes[0]] += values.reshape(len(points), -1)
        else:
            np.add.at(out, (slice(None), self.scopes), values.reshape(len(points), *self.scopes.shape))  # type: ignore[arg-type]

    def condition(
        self, values: NDArray[np.integer | np.floating], observed: NDArray[np.bool_], renumber: Int32s
    ) -> list[DensityFactors]:
        """Fix the observed variables, and return the factors of the remaining variables.

        Factors whose observed variables are at the same scope positions form one group.

        Args:
            values: float[V], the values of the observed variables; other entries are ignored.
            observed: bool[V], the variables to fix.
            renumber: int32[V], the index of each other variable in the smaller graph.

        Returns:
            Groups of factors, with the new indices of the remaining variables.
        """
        is_fixed = observed[self.scopes]
        groups: list[DensityFactors] = []
        for pattern in np.unique(is_fixed, axis=0) if len(self) else is_fixed:
            alike = np.flatnonzero((is_fixed == pattern).all(axis=1))
            scopes = self.scopes[alike]
            here = np.where(pattern, values[scopes], np.nan)
            if self.fixed is not None:
                whole = self.fixed[alike].copy()
                whole[np.isnan(whole)] = here.ravel()
                here = whole
            fixed = frozen(here, np.float64, "fixed") if not np.isnan(here).all() else None
            groups.append(replace(self, scopes=renumber[scopes[:, ~pattern]], fixed=fixed))
        return groups

    def _arguments(self, points: Floats) -> Floats:
        """Return the inputs of the log-density function, float64[P * F, A]: one row for each point and factor."""
        if self._plain:
            return points[:, : self.scopes.shape[1]]
        free = points[:, self.scopes]
        if self.fixed is None:
            return free.reshape(-1, self.scopes.shape[1])
        whole = np.broadcast_to(self.fixed, (len(points), *self.fixed.shape)).copy()
        whole[np.isnan(whole)] = free.ravel()
        return whole.reshape(-1, self.fixed.shape[1])

    def _call(self, function: Callable[..., Any], at: Floats, terms: Int64s | None) -> Any:
        return function(at, terms) if self.n_terms else function(at)


@dataclass(frozen=True, slots=True, eq=False)
class DensityGraph:
    """Graph of real variables whose log-density and gradient can be evaluated for batches of points.

    Attributes:
        graph: The factor graph.
        factors: Groups of factors.
        n_terms: Number of terms of the groups whose log-density is a sum over observations; 0 if the density has no
            factors.
    """

    graph: FactorGraph
    factors: tuple[DensityFactors, ...]
    n_terms: int

    @property
    def dim(self) -> int:
        """Number of variables, d."""
        return self.graph.n_variables

    def log_density(self, x: ArrayLike) -> Floats:
        """Return the unnormalised log-density of the graph at each of P points, float64[P].

        Args:
            x: float[d], or float[P, d] for P points.

        Raises:
            ValueError: The shape is wrong, or a value is not finite.
        """
        points = self.graph.domains.points(x)
        return sum((group.log_potential(points) for group in self.factors), np.zeros(len(points)))

    def grad(self, x: ArrayLike, terms: Int64s | None = None, block: NDArray[np.integer] | None = None) -> Floats:
        """Return the gradient of the graph's log-density at each point, for all variables or only those in ``block``.

        Samplers call it in loops, so it checks shapes but not values.

        Args:
            x: float[P, d], the points.
            terms: int64[M], the terms to add up; None means all. The sum is multiplied by n_terms / M, so that the
                estimate is unbiased if the terms are drawn uniformly.
            block: int[b], the variables whose derivatives are returned; None means all.

        Returns:
            float64[P, d], or float64[P, b] with ``block``.

        Raises:
            ValueError: The shape is wrong.
        """
        points = np.asarray(x, np.float64)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise ValueError(f"P points of this graph must have shape [P, {self.dim}], got {points.shape}")
        out = np.zeros(points.shape)
        for group in self._factors_of_block(block):
            if group.n_terms and terms is not None:
                group.add_gradient(points, out, terms, self.n_terms / len(terms))
            else:
                group.add_gradient(points, out)
        return out if block is None else out[:, block]

    def _factors_of_block(self, block: NDArray[np.integer] | None) -> Sequence[DensityFactors]:
        """Return the factors that contain at least one variable of ``block``."""
        if block is None or len(block) == self.dim:
            return self.factors
        in_block = np.zeros(self.dim, bool)
        in_block[block] = True
        groups: list[DensityFactors] = []
        for group in self.factors:
            touched = in_block[group.scopes].any(axis=1)
            if touched.all():
                groups.append(group)
            elif touched.any():
                fixed = None if group.fixed is None else group.fixed[touched]
                groups.append(replace(group, scopes=group.scopes[touched], fixed=fixed))
        return groups


def compile_density(graph: FactorGraph | DensityGraph) -> DensityGraph:
    """Compile a graph of real variables to a `DensityGraph`, which evaluates batches of points.

    Args:
        graph: A graph of `Reals` and `DensityFactors`; a compiled graph is returned as it is.

    Returns:
        The compiled graph.

    Raises:
        TypeError: ``graph`` is not a graph.
        ValueError: The graph has other domains or factors, or groups with different numbers of terms.
    """
    if isinstance(graph, DensityGraph):
        return graph
    if not isinstance(graph, FactorGraph):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public function
        raise TypeError(f"expected a FactorGraph over Reals(n), not {type(graph).__name__}")
    if not isinstance(graph.domains, Reals):
        raise ValueError(f"density samplers need real variables, Reals(n), not {type(graph.domains).__name__}")
    factors = tuple(group for group in graph.factors if isinstance(group, DensityFactors))
    if len(factors) < len(graph.factors):
        other = next(group for group in graph.factors if not isinstance(group, DensityFactors))
        raise ValueError(f"density samplers need density factors, not {type(other).__name__}")
    sizes = sorted({group.n_terms for group in factors} - {0})
    if len(sizes) > 1:
        raise ValueError(
            f"all groups of density factors that set `n_terms` must set the same number of terms, got {sizes[0]} and"
            f" {sizes[-1]}"
        )
    return DensityGraph(graph, factors, sizes[0] if sizes else 0)


def with_gradient(log_density: Callable[..., Any]) -> tuple[Callable[..., Floats], Callable[..., Floats]]:
    """Compile a batched log-density in `jax.numpy` for 64-bit numbers; return it and its gradient function.

    Args:
        log_density: Function from [P, a] to [P].

    Returns:
        Functions from [P, a] to float64[P], the log-densities, and to float64[P, a], their gradients.

    Raises:
        MissingExtra: JAX is not installed.
    """
    jax = import_extra("jax", "density factors need a gradient function `grad`, or JAX to derive it")
    # Older versions of JAX define enable_x64 in jax.experimental.
    in_64_bits = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

    def in_numpy(function: Callable[..., Any]) -> Callable[..., Floats]:
        def run(x: Floats, *terms: Any) -> Floats:
            with in_64_bits(True):
                return np.asarray(function(x, *terms), np.float64)

        return run

    def total(x: Any, *terms: Any) -> Any:
        return log_density(x, *terms).sum()

    return in_numpy(jax.jit(log_density)), in_numpy(jax.jit(jax.grad(total)))
