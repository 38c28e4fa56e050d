"""Dobrushin variation: how far a scan may still be from its target (DoGS17 Sec. 3, Theorem 8).

The law pi_T of a Gibbs sampler's state after T steps, wherever it started, is within d^T B(q_T) .. B(q_1) 1 of the
target pi in d-weighted total variation, where B(q) = I - diag(q)(I - C), d are the importances of the variables and q_t
the distribution that step t draws its variable from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import variation as loops
from herdner.base.arrays import Floats, Int32s
from herdner.base.checks import check_variables, is_number, whole
from herdner.base.options import from_call
from herdner.dobrushin.influence import Influence
from herdner.graph.order import sweep_order
from herdner.graph.scan import Scan

T = TypeVar("T", bound=np.generic)

_CHUNK = 2**20  # numbers of a piece of a random scan


@dataclass(frozen=True, slots=True, eq=False)
class ScanSteps:
    """A scan step by step. Either ``order`` int32[T] names the variable of each step, or step t draws it from row t of
    ``distributions`` float64[T, V] (`numpy.broadcast_to` repeats one row without memory).
    """

    order: Int32s | None = None
    distributions: Floats | None = None

    def __len__(self) -> int:
        steps = self.distributions if self.order is None else self.order
        return 0 if steps is None else len(steps)

    @classmethod
    def of(cls, scan: Scan | ArrayLike, influence: Influence, n_steps: int | None = None) -> ScanSteps:
        """The first ``n_steps`` steps of a scan, by default one sweep, or all of a list.

        A `Scan`, whose order is the one that a sampler takes on the graph of ``influence``; integers [T], one variable
        after the other; or numbers [V] or [T, V] of at least 0 that add up to 1 along the last axis. Lists that are too
        short are taken again from their start.

        Raises:
            ValueError: The scan fits none.
        """
        n = require_influence(influence).n_variables
        if n_steps is not None:
            whole(n_steps, "the number of steps of a scan", 0)
        if isinstance(scan, Scan):
            return cls._of_scan(scan, influence, n if n_steps is None else n_steps)
        given: NDArray[Any] = np.asarray(scan)
        if given.dtype.kind in "iu" and given.ndim == 1:
            check_variables(given, n, "the scan names")
            return cls(order=_repeated(np.ascontiguousarray(given, np.int32), n_steps))
        if given.dtype.kind != "f" or given.ndim not in (1, 2) or given.shape[-1] != n:
            raise ValueError(
                f"a scan is a list of variables, or distributions of shape [{n}] or [T, {n}], not {given.dtype} of"
                f" shape {given.shape}"
            )
        rows = given.reshape(-1, n).astype(np.float64)
        if not (rows.min(initial=0.0) >= 0 and np.allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-9)):
            raise ValueError("the distributions of a scan hold numbers of at least 0 that add up to 1")
        if given.ndim == 1:
            return cls(distributions=np.broadcast_to(rows, (n if n_steps is None else n_steps, n)))
        return cls(distributions=_repeated(rows, n_steps))

    @classmethod
    def _of_scan(cls, scan: Scan, influence: Influence, n_steps: int) -> ScanSteps:
        n = influence.n_variables
        scan.check(n)
        if scan.kind == "random":
            return cls(distributions=np.broadcast_to(np.full(n, 1 / n), (n_steps, n)))
        if scan.kind == "jacobi":
            raise ValueError("jacobi updates all variables at once and has no Dobrushin variation; use checkerboard")
        order = np.arange(min(n, n_steps), dtype=np.int32) if scan.order is None else scan.order
        if scan.kind == "checkerboard":
            if influence.graph is None:
                raise ValueError(
                    "the order of a checkerboard is that of a graph, and this influence matrix has none: give the order"
                    " itself, herdner.graph.order.sweep_order(scan, graph)"
                )
            order = sweep_order(scan, influence.graph)
        return cls(order=_repeated(order, n_steps))


def require_influence(influence: Influence) -> Influence:
    """The same; ValueError for what is no upper bound, such as an estimate."""
    if not isinstance(influence, Influence):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public door
        raise ValueError(
            f"bounds rest on an Influence, which bounds each entry from above, not on {type(influence).__name__}:"
            " call tightest_influence(graph)"
        )
    return influence


# The importance d of the variables: a number for each of them, or for those alone that have one; None is 1 for all.
Importance = Union[ArrayLike, Mapping[int, float], None]  # noqa: UP007 - evaluated when imported
"""How much each variable matters: d of each, [V]; by number, the others 0; None is 1 for all."""


def dense_importance(n_variables: int, importance: Importance = None) -> Floats:
    """d as float64[V]. ValueError where it is not finite, below 0, or about variables that are not there."""
    variables, weights = sparse_importance(n_variables, importance)
    d = np.zeros(n_variables)
    d[variables] = weights
    return d


def sparse_importance(n_variables: int, importance: Importance) -> tuple[Int32s, Floats]:
    """The variables whose d is not 0, and d of each, as `importance_of` has it; without looking at the others."""
    if importance is None:
        return np.arange(n_variables, dtype=np.int32), np.ones(n_variables)
    if isinstance(importance, Mapping):
        variables, d = np.array(list(importance), np.int64), np.array(list(importance.values()), np.float64)
        check_variables(variables, n_variables)
        d, variables = d[np.argsort(variables)], np.sort(variables)
    else:
        d, variables = np.array(importance, np.float64), np.arange(n_variables)
        if d.shape != (n_variables,):
            raise ValueError(f"importance must be {n_variables} numbers, one for each variable, not shape {d.shape}")
    if not ((d >= 0) & (d < np.inf)).all():
        raise ValueError("importance must be finite numbers of at least 0")
    there = np.flatnonzero(d)
    return variables[there].astype(np.int32), d[there]


def unit_importance(n_variables: int, variables: Iterable[int | slice]) -> dict[int, float]:
    """The importance 1 of these variables, and of no others; a ``slice`` is a run of them, such as an entity."""
    chosen: dict[int, float] = {}
    for one in variables:
        run = range(*one.indices(n_variables)) if isinstance(one, slice) else (int(one),)
        chosen.update(dict.fromkeys(run, 1.0))
    sparse_importance(n_variables, chosen)
    return chosen


def dobrushin_variation(
    influence: Influence, scan: Scan | ArrayLike, importance: Importance = None, n_steps: int | None = None
) -> float:
    """V(q_1, .., q_T; d, C) of Definition 7: a bound of the d-weighted total variation after ``n_steps`` of the scan.

    ``scan`` and ``n_steps``: see `Steps.of`; ``importance``: see `importance_of`. Above the sum of the importances, the
    bound says nothing. Time O(T x entries of a row); of scans that draw their variables O(T x entries).
    """
    steps, d = ScanSteps.of(scan, influence, n_steps), dense_importance(influence.n_variables, importance)
    return float(d @ coupling_vector(influence, steps))


def variation_curve(
    influence: Influence, scan: Scan | ArrayLike, importance: Importance = None, n_steps: int | None = None
) -> Floats:
    """float64[T + 1]: the Dobrushin variation after 0, 1, .., T steps; arguments as of `dobrushin_variation`."""
    steps, d = ScanSteps.of(scan, influence, n_steps), dense_importance(influence.n_variables, importance)
    curve = np.empty(len(steps) + 1)
    if steps.order is not None:
        b, support = np.ones(influence.n_variables), np.flatnonzero(d).astype(np.int32)
        loops.walk_recorded(influence, steps.order, b, d, support, curve)
        return curve
    at = 0
    curve[0] = d.sum()
    for rows in _coupling_rows(influence, steps):
        curve[at : at + len(rows)] = rows @ d
        at += len(rows) - 1
    return curve


def coupling_bounds(influence: Influence, scan: Scan | ArrayLike, n_steps: int | None = None) -> Floats:
    """b_T, float64[V]: bounds of the probability that variable i is not yet coupled with the target, and so of the
    total variation distance of its marginal (DoGS17 Sec. 4), at most 1 each.
    """
    return np.minimum(coupling_vector(influence, ScanSteps.of(scan, influence, n_steps)), 1.0)


def marginal_bound(
    influence: Influence, scan: Scan | ArrayLike, variables: Iterable[int], n_steps: int | None = None
) -> float:
    """A bound of the total variation distance of the joint marginal of these variables (Definition 2), at most 1."""
    importance = unit_importance(require_influence(influence).n_variables, variables)
    return min(1.0, weighted_bound(influence, scan, importance, n_steps))


def weighted_bound(
    influence: Influence, scan: Scan | ArrayLike, importance: Importance, n_steps: int | None = None
) -> float:
    """A bound of the d-weighted total variation (Definition 4), at most the sum of d: how far the mean of a function
    may be off that changes by at most d_i where variable i changes.
    """
    b = coupling_bounds(influence, scan, n_steps)
    return float(dense_importance(len(b), importance) @ b)


def coupling_vector(influence: Influence, steps: ScanSteps) -> Floats:
    """b_T, float64[V], as the recurrence of Definition 7 has it: entries above 1 stay."""
    b = np.ones(influence.n_variables)
    if steps.order is not None:
        loops.walk(influence, steps.order, b)
        return b
    for rows in _coupling_rows(influence, steps):
        b = rows[-1]
    return b


def _coupling_rows(influence: Influence, steps: ScanSteps) -> Iterator[Floats]:
    """b after each step of a scan that draws its variables, piece by piece; a piece begins with the last one's end."""
    assert steps.distributions is not None
    length = max(1, _CHUNK // max(1, influence.n_variables))
    b = np.ones(influence.n_variables)
    for at in range(0, len(steps), length):
        q = steps.distributions[at : at + length]
        rows = np.empty((len(q) + 1, influence.n_variables))
        rows[0] = b
        loops.walk_random(influence, q, rows)
        b = rows[-1]
        yield rows


def _repeated(rows: NDArray[T], n: int | None) -> NDArray[T]:
    """The first ``n`` of rows that are taken again from their start when they end."""
    if n is None or n == len(rows):
        return rows
    if n < len(rows):
        return rows[:n]
    if not len(rows):
        raise ValueError(f"an empty scan has no {n} steps")
    return np.resize(rows, (n, *rows.shape[1:]))


def rate_bound(influence: Influence, scan: Scan, n_steps: int, importance: Importance = None) -> float:
    """A bound of the Dobrushin variation after ``n_steps`` of a systematic, checkerboard or uniform random scan.

    It is at most the sum of the importances d, and goes to 0 where a norm of C is below 1. The smaller of that sum and
    `herdner.dobrushin.dobrushin_variation`, which takes O(n_steps) and is sharper, is never above it; this takes
    O(entries).

    Let b be the bounds of the single variables, at first 1, and k the whole sweeps of V variables in T steps.

    * Infinity norm a: an update makes b_i at most a max b, and no other larger. After a sweep max b has fallen by a; a
      step at random takes (I - (I - C) / V) b, whose maximum is at most 1 - (1 - a) / V of the last. So the variation
      is at most ``|d|_1 a^k``, or ``|d|_1 (1 - (1 - a) / V)^T``.
    * 1-norm a: a step at random leaves at most 1 - (1 - a) / V of the sum of b, which begins at V. In a sweep let r_j
      be the part of column j that variables after j use, with the new b_j, and s_j the rest: summing the new b gives
      sum (1 - r_j) b'_j = sum s_j b_j <= sum (a - r_j) b_j <= a sum (1 - r_j) b_j, and 1 - r_j is in [1 - a, 1]. So
      the variation is at most max d V a^k / (1 - a), or max d V (1 - (1 - a) / V)^T.
    * 2-norm a: at random alone, ``|d|_2 sqrt(V) (1 - (1 - a) / V)^T``.

    Raises:
        ValueError: The scan is another, whose variation `dobrushin_variation` gives.
    """
    n, n_steps = require_influence(influence).n_variables, whole(n_steps, "the number of steps of a scan", 0)
    if scan.kind not in ("systematic", "checkerboard", "random"):
        raise ValueError(f"rates are of systematic, checkerboard and random scans, not {scan}; see dobrushin_variation")
    d, norms = dense_importance(n, importance), influence.total
    if not n:
        return 0.0
    largest, sweeps = float(d.max()), n_steps // n
    bounds = [float(d.sum())]
    if scan.kind == "random":
        euclidean = float(np.linalg.norm(d)) * math.sqrt(n)
        starts = [(norms.infinity, bounds[0]), (norms.one, largest * n), (norms.spectral, euclidean)]
        bounds += [start * (1 - (1 - norm) / n) ** n_steps for norm, start in starts if norm < 1]
    else:
        bounds += [bounds[0] * norms.infinity**sweeps] if norms.infinity < 1 else []
        bounds += [largest * n * norms.one**sweeps / (1 - norms.one)] if norms.one < 1 else []
    return min(bounds)


@dataclass(frozen=True, slots=True)
class TargetVariables:
    """Variables of importance; made by the functions below."""

    kind: Literal["all", "variables", "uncertain"] = "all"
    variables: tuple[int, ...] = ()
    probability: float = 0.0

    WORDS: ClassVar[str] = "all, variables(0, 5, ..) or uncertain(0.05)"

    def __post_init__(self) -> None:
        if self.kind not in ("all", "variables", "uncertain"):
            raise ValueError(f"targets must be {self.WORDS}, not {self.kind!r}")
        for i in self.variables:
            whole(i, "a target variable", 0)
        if not is_number(self.probability) or not 0 <= self.probability < 1:
            raise ValueError(
                f"the probability of an uncertain variable is at least 0 and below 1, not {self.probability}"
            )

    @classmethod
    def from_text(cls, text: str) -> TargetVariables:
        """The targets that ``all``, ``variables(0, 5)`` or ``uncertain(0.05)`` stand for; ValueError for others."""
        functions = {"all": all_variables, "variables": selected_variables, "uncertain": uncertain_variables}
        return from_call(text, functions, "targets", cls.WORDS)

    def __str__(self) -> str:
        if self.kind == "variables":
            return f"variables({', '.join(map(str, self.variables))})"
        return f"uncertain({self.probability:g})" if self.kind == "uncertain" else "all"


def all_variables() -> TargetVariables:
    """All variables."""
    return TargetVariables()


def selected_variables(*chosen: int) -> TargetVariables:
    """These variables."""
    return TargetVariables("variables", chosen)


def uncertain_variables(probability: float = 0.05) -> TargetVariables:
    """The variables whose best label has less than 1 - ``probability`` by the chain alone, the factors of one variable
    and of two consecutive ones.
    """
    return TargetVariables("uncertain", probability=probability)
