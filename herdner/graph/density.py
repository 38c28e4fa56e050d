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
from herdner.graph.domain import Domains
from herdner.graph.graph import FactorGraph


@dataclass(frozen=True, slots=True)
class Reals:
    """Continuous domains: ``n`` variables, each any finite real number."""

    n: int

    def __post_init__(self) -> None:
        check_integer(self.n, "the number of real variables", 0)

    def __len__(self) -> int:
        return int(self.n)

    def points(self, x: ArrayLike) -> Floats:
        points = np.asarray(x)
        if points.size and points.dtype.kind not in "iuf":
            raise ValueError(f"a point holds real numbers, not {points.dtype}")
        if points.ndim not in (1, 2) or points.shape[-1] != self.n:
            raise ValueError(f"a point of this graph has shape [{self.n}] or [P, {self.n}], not {points.shape}")
        points = np.ascontiguousarray(points if points.ndim == 2 else points[None], np.float64)
        if not np.isfinite(points).all():
            p, i = np.argwhere(~np.isfinite(points))[0]
            raise ValueError(f"variable {i} is a finite number, not {points[p, i]}")
        return points

    def select(self, variables: Int64s) -> Reals:
        return Reals(len(variables))


@dataclass(frozen=True, slots=True, eq=False)
class DensityFactors:
    """F factors of a real variables each, with one log-density for all (tied, as tables can be). P is any number of
    points; a row depends on no other.

    Attributes:
        scopes: int32[F, a], distinct variables.
        log_density: float64[P, a] to [P], natural logarithms, any constant.
        grad: float64[P, a] to [P, a], its derivatives. Without it they are made by JAX, if that is installed (extra
            ``jax``) and ``log_density`` uses `jax.numpy`.
        n_terms: Above 0, the log-density is a sum of so many terms, one for each observation; both functions then take
            a second argument, the terms int64[M] to add up, or None for all of them. This is what mini-batches are made
            of.

    Raises:
        ValueError: Something does not fit.
    """

    scopes: Int32s
    log_density: Callable[..., Any]
    grad: Callable[..., Any] = None  # type: ignore[assignment]
    n_terms: int = 0
    # float64[F, A]: what conditioning has fixed; NaN where the a variables of the scope go.
    given: Floats | None = None
    # One factor over the variables 0 .. a - 1: its arguments are the points as they are.
    _plain: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        scopes = frozen(self.scopes, np.int32, "scopes")
        if scopes.ndim != 2:
            raise ValueError(f"scopes must have shape [factors, variables of a factor], not {scopes.shape}")
        if scopes.size and scopes.min() < 0:
            raise ValueError("a scope names a variable below 0; variables count from 0")
        ordered = np.sort(scopes, axis=1)
        repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if repeated.any():
            raise ValueError(f"factor {int(repeated.argmax())} names a variable twice")
        if not callable(self.log_density):
            raise ValueError("log_density must be a function of points [P, a]")
        object.__setattr__(self, "scopes", scopes)
        first = np.arange(scopes.shape[1], dtype=np.int32)
        plain = len(scopes) == 1 and self.given is None and np.array_equal(scopes[0], first)
        object.__setattr__(self, "_plain", plain)
        if self.grad is None:
            log_density, grad = differentiated(self.log_density)
            object.__setattr__(self, "log_density", log_density)
            object.__setattr__(self, "grad", grad)

    def __len__(self) -> int:
        return len(self.scopes)

    def check(self, domains: Domains) -> None:
        """ValueError where ``domains`` are not `Reals`, or a scope does not exist in them."""
        if not isinstance(domains, Reals):
            raise ValueError(f"density factors need real variables, Reals(n), not {type(domains).__name__}")
        if self.scopes.size and self.scopes.max() >= len(domains):
            f = int((self.scopes >= len(domains)).any(axis=1).argmax())
            raise ValueError(
                f"factor {f} names variable {self.scopes[f].max()}, but the variables are 0 to {len(domains) - 1}"
            )

    def log_potential(self, points: Floats, terms: Int64s | None = None) -> Floats:
        """[P]: the sum of the factors at each of the points float64[P, V]; of these terms only, if any are named."""
        at = self._arguments(points)
        values = np.asarray(self._call(self.log_density, at, terms), np.float64)
        if values.shape != (len(at),):
            raise ValueError(
                f"log_density returned shape {values.shape} for points {at.shape}; it must be ({len(at)},)"
            )
        return values.reshape(len(points), len(self)).sum(axis=1)

    def add_gradient(self, points: Floats, out: Floats, terms: Int64s | None = None, by: float = 1) -> None:
        """Adds the gradient at points [P, V], times ``by``, to ``out`` [P, V]."""
        at = self._arguments(points)
        values = np.asarray(self._call(self.grad, at, terms), np.float64)
        if values.shape != at.shape:
            raise ValueError(
                f"grad returned shape {values.shape} for points of shape {at.shape}; the two must be equal"
            )
        values = values if by == 1 else by * values
        if self._plain:
            out[:, : values.shape[1]] += values
            return
        if self.given is not None:
            values = values.reshape(len(points), *self.given.shape)
            free = np.flatnonzero(np.isnan(self.given[:1]).any(axis=0))
            values = values[..., free]
        if len(self) == 1:
            out[:, self.scopes[0]] += values.reshape(len(points), -1)
        else:
            np.add.at(out, (slice(None), self.scopes), values.reshape(len(points), *self.scopes.shape))  # type: ignore[arg-type]

    def condition(
        self, values: NDArray[np.integer | np.floating], observed: NDArray[np.bool_], renumber: Int32s
    ) -> list[DensityFactors]:
        """One group for each set of positions that are observed."""
        fixed = observed[self.scopes]
        groups: list[DensityFactors] = []
        for pattern in np.unique(fixed, axis=0) if len(self) else fixed:
            chosen = np.flatnonzero((fixed == pattern).all(axis=1))
            scopes = self.scopes[chosen]
            here = np.where(pattern, values[scopes], np.nan)
            if self.given is not None:
                whole = self.given[chosen].copy()
                whole[np.isnan(whole)] = here.ravel()
                here = whole
            given = frozen(here, np.float64, "given") if not np.isnan(here).all() else None
            groups.append(replace(self, scopes=renumber[scopes[:, ~pattern]], given=given))
        return groups

    def _arguments(self, points: Floats) -> Floats:
        """[P * F, A]: what the functions are called with."""
        if self._plain:
            return points[:, : self.scopes.shape[1]]
        free = points[:, self.scopes]
        if self.given is None:
            return free.reshape(-1, self.scopes.shape[1])
        whole = np.broadcast_to(self.given, (len(points), *self.given.shape)).copy()
        whole[np.isnan(whole)] = free.ravel()
        return whole.reshape(-1, self.given.shape[1])

    def _call(self, function: Callable[..., Any], at: Floats, terms: Int64s | None) -> Any:
        return function(at, terms) if self.n_terms else function(at)


@dataclass(frozen=True, slots=True, eq=False)
class DensityGraph:
    """A graph of real variables for samplers: batched log-density and gradient; ``n_terms`` of its data, or 0."""

    graph: FactorGraph
    factors: tuple[DensityFactors, ...]
    n_terms: int

    @property
    def dim(self) -> int:
        """d, the number of variables."""
        return self.graph.n_variables

    def log_density(self, x: ArrayLike) -> Floats:
        """[P]: at points [P, d], not normalised."""
        points = self.graph.domains.points(x)
        return sum((group.log_potential(points) for group in self.factors), np.zeros(len(points)))

    def grad(self, x: ArrayLike, terms: Int64s | None = None, block: NDArray[np.integer] | None = None) -> Floats:
        """[P, d]: the gradients of the log-density at points float64[P, d]; in loops, so that only shapes are checked.

        ``terms`` int64[M]: of the data only these, made up for by the factor n_terms / M (an unbiased estimate where
        they were drawn at random). ``block`` int[b]: of these variables only, [P, b], from the factors that touch them.
        """
        points = np.asarray(x, np.float64)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise ValueError(f"points of this graph have shape [P, {self.dim}], not {points.shape}")
        out = np.zeros(points.shape)
        for group in self._touching(block):
            if group.n_terms and terms is not None:
                group.add_gradient(points, out, terms, self.n_terms / len(terms))
            else:
                group.add_gradient(points, out)
        return out if block is None else out[:, block]

    def _touching(self, block: NDArray[np.integer] | None) -> Sequence[DensityFactors]:
        if block is None or len(block) == self.dim:
            return self.factors
        wanted = np.zeros(self.dim, bool)
        wanted[block] = True
        groups: list[DensityFactors] = []
        for group in self.factors:
            touched = wanted[group.scopes].any(axis=1)
            if touched.all():
                groups.append(group)
            elif touched.any():
                given = None if group.given is None else group.given[touched]
                groups.append(replace(group, scopes=group.scopes[touched], given=given))
        return groups


def compile_density(graph: FactorGraph | DensityGraph) -> DensityGraph:
    """The graph as a density. ValueError where it has domains or factors other than real variables and densities."""
    if isinstance(graph, DensityGraph):
        return graph
    if not isinstance(graph, FactorGraph):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public door
        raise TypeError(f"expected a FactorGraph over Reals(n), not {type(graph).__name__}")
    if not isinstance(graph.domains, Reals):
        raise ValueError(f"density samplers need real variables, Reals(n), not {type(graph.domains).__name__}")
    factors = tuple(group for group in graph.factors if isinstance(group, DensityFactors))
    if len(factors) < len(graph.factors):
        other = next(group for group in graph.factors if not isinstance(group, DensityFactors))
        raise ValueError(f"density samplers need density factors, not {type(other).__name__}")
    sizes = sorted({group.n_terms for group in factors} - {0})
    if len(sizes) > 1:
        raise ValueError(f"groups with data must have the same number of terms, not {sizes[0]} and {sizes[-1]}")
    return DensityGraph(graph, factors, sizes[0] if sizes else 0)


def differentiated(log_density: Callable[..., Any]) -> tuple[Callable[..., Floats], Callable[..., Floats]]:
    """A batched log-density written with `jax.numpy`, in 64 bits, and its gradient; MissingExtra without JAX."""
    jax = import_extra("jax", "a density needs its gradient `grad`, or JAX to derive it")
    # jax.experimental.enable_x64 until JAX gave it its present place.
    in_64_bits = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

    def in_numpy(function: Callable[..., Any]) -> Callable[..., Floats]:
        def run(x: Floats, *terms: Any) -> Floats:
            with in_64_bits(True):
                return np.asarray(function(x, *terms), np.float64)

        return run

    def total(x: Any, *terms: Any) -> Any:
        return log_density(x, *terms).sum()

    return in_numpy(jax.jit(log_density)), in_numpy(jax.jit(jax.grad(total)))
