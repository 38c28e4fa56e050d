"""Dobrushin variation: a bound on the distance of a Gibbs sample from its target (DoGS17, Sec. 3, Theorem 8).

Let pi_T be the law of a Gibbs sampler's state after T steps, from any initial state. Its d-weighted total variation
distance from the target pi is at most d^T B(q_T) .. B(q_1) 1. Here B(q) = I - diag(q)(I - C), d are the importances of
the variables, and q_t is the distribution from which step t draws its variable.
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
from herdner.base.checks import check_integer, check_variables, is_number
from herdner.base.options import parse_call
from herdner.dobrushin.influence import Influence
from herdner.graph.order import sweep_order
from herdner.graph.scan import Scan

T = TypeVar("T", bound=np.generic)

_LARGEST = 1e300  # replaces coupling bounds that overflow; they bound probabilities, so this is valid
_CHUNK = 2**20  # number of array elements that are computed at a time for a random scan


@dataclass(frozen=True, slots=True, eq=False)
class ScanSteps:
    """Steps of a scan, either a list of variables or a list of distributions over variables.

    Attributes:
        order: int32[T], the variable of each step; None if the steps draw their variables.
        distributions: float64[T, V], the distribution from which each step draws its variable; None if ``order`` is
            set. `numpy.broadcast_to` can repeat one row without copies.
    """

    order: Int32s | None = None
    distributions: Floats | None = None

    def __len__(self) -> int:
        """Return the number of steps in the scan."""
        steps = self.distributions if self.order is None else self.order
        return 0 if steps is None else len(steps)

    @classmethod
    def of(cls, scan: Scan | ArrayLike, influence: Influence, n_steps: int | None = None) -> ScanSteps:
        """Convert a scan to a list of ``n_steps`` steps.

        Args:
            scan: A `Scan`; int[T], the variable of each step; or float[V] or float[T, V], distributions over variables
                (non-negative, with sum 1 along the last axis). A scan with fewer steps than ``n_steps`` is repeated.
            influence: The influence bound. A checkerboard scan takes its order from the graph of this bound.
            n_steps: Number of steps. The default is V steps for a `Scan` or float[V], and all T steps otherwise.

        Returns:
            The steps: one variable for each step, or one distribution over the variables.

        Raises:
            ValueError: The scan has none of these forms, or does not fit the influence bound.
        """
        n = require_influence(influence).n_variables
        if n_steps is not None:
            check_integer(n_steps, "the number of steps of a scan", 0)
        if isinstance(scan, Scan):
            return cls._of_scan(scan, influence, n if n_steps is None else n_steps)
        array: NDArray[Any] = np.asarray(scan)
        if array.dtype.kind in "iu" and array.ndim == 1:
            check_variables(array, n, "the scan names")
            return cls(order=_repeat_rows(np.ascontiguousarray(array, np.int32), n_steps))
        if array.dtype.kind != "f" or array.ndim not in (1, 2) or array.shape[-1] != n:
            raise ValueError(
                f"a scan must be a list of variables, or distributions of shape [{n}] or [steps, {n}], got"
                f" {array.dtype} of shape {array.shape}"
            )
        rows = array.reshape(-1, n).astype(np.float64)
        if not (rows.min(initial=0.0) >= 0 and np.allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-9)):
            raise ValueError(f"distributions of a scan must be non-negative and sum to 1, got {rows.tolist()!s:.80}")
        if array.ndim == 1:
            return cls(distributions=np.broadcast_to(rows, (n if n_steps is None else n_steps, n)))
        return cls(distributions=_repeat_rows(rows, n_steps))

    @classmethod
    def _of_scan(cls, scan: Scan, influence: Influence, n_steps: int) -> ScanSteps:
        n = influence.n_variables
        scan.check(n)
        if scan.kind == "random":
            return cls(distributions=np.broadcast_to(np.full(n, 1 / n), (n_steps, n)))
        if scan.kind == "jacobi":
            raise ValueError(
                "a jacobi scan has no Dobrushin variation, because it updates all variables at once; use checkerboard"
            )
        order = np.arange(min(n, n_steps), dtype=np.int32) if scan.order is None else scan.order
        if scan.kind == "checkerboard":
            if influence.graph is None:
                raise ValueError(
                    "a checkerboard scan needs a graph for its order, but the influence matrix has no graph; pass the"
                    " order herdner.graph.order.sweep_order(scan, graph) instead of the scan"
                )
            order = sweep_order(scan, influence.graph)
        return cls(order=_repeat_rows(order, n_steps))


def require_influence(influence: Influence) -> Influence:
    """Return ``influence`` unchanged if it is an `Influence`, a matrix of upper bounds; else raise `ValueError`.

    Args:
        influence: The object to check.

    Raises:
        ValueError: The object has another type, such as `InfluenceEstimate`, which may be below the true influence.
    """
    if not isinstance(influence, Influence):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public function
        raise ValueError(f"bounds need an Influence, got {type(influence).__name__}; call tightest_influence(graph)")
    return influence


Importance = Union[ArrayLike, Mapping[int, float], None]  # noqa: UP007 - evaluated when imported
"""Importance d of the variables: an array [V], a mapping from variables to d (0 for all others), None for 1."""


def dense_importance(n_variables: int, importance: Importance = None) -> Floats:
    """Return the importance of every variable as a dense vector.

    Args:
        n_variables: Number of variables, V.
        importance: See `Importance`.

    Returns:
        d, float64[V].

    Raises:
        ValueError: An importance is negative or not finite, or belongs to no variable.
    """
    variables, weights = sparse_importance(n_variables, importance)
    d = np.zeros(n_variables)
    d[variables] = weights
    return d


def sparse_importance(n_variables: int, importance: Importance) -> tuple[Int32s, Floats]:
    """Return the indices of the variables with non-zero importance, ascending by index, and their importances.

    Args:
        n_variables: Number of variables, V.
        importance: See `Importance`. With a mapping, the time does not depend on V.

    Returns:
        int32[N] and float64[N].

    Raises:
        ValueError: An importance is negative or not finite, or belongs to no variable.
    """
    if importance is None:
        return np.arange(n_variables, dtype=np.int32), np.ones(n_variables)
    if isinstance(importance, Mapping):
        variables, d = np.array(list(importance), np.int64), np.array(list(importance.values()), np.float64)
        check_variables(variables, n_variables)
        d, variables = d[np.argsort(variables)], np.sort(variables)
    else:
        d, variables = np.array(importance, np.float64), np.arange(n_variables)
        if d.shape != (n_variables,):
            raise ValueError(f"`importance` must have shape [{n_variables}], got {list(d.shape)}")
    if not ((d >= 0) & (d < np.inf)).all():
        raise ValueError(f"`importance` must be finite and at least 0, got {d[~((d >= 0) & (d < np.inf))][0]}")
    support = np.flatnonzero(d)
    return variables[support].astype(np.int32), d[support]


def unit_importance(n_variables: int, variables: Iterable[int | slice]) -> dict[int, float]:
    """Return a dict with importance 1 for each variable in ``variables``; all other variables have importance 0.

    Args:
        n_variables: Number of variables.
        variables: Variables, or slices of consecutive variables, such as an entity.

    Raises:
        ValueError: A variable does not exist.
    """
    importance: dict[int, float] = {}
    for item in variables:
        run = range(*item.indices(n_variables)) if isinstance(item, slice) else (int(item),)
        importance.update(dict.fromkeys(run, 1.0))
    sparse_importance(n_variables, importance)
    return importance


def dobrushin_variation(
    influence: Influence, scan: Scan | ArrayLike, importance: Importance = None, n_steps: int | None = None
) -> float:
    """Return the Dobrushin variation of a scan, an upper bound on the sampling error (DoGS17, Definition 7).

    The paper writes it as V(q_1, .., q_T; d, C). It bounds the d-weighted total variation distance from the target
    after the scan. A value above the sum of d gives no information. Time is O(T x row entries), or O(T x entries) for
    scans that draw their variables.

    Args:
        influence: The influence bound.
        scan: See `ScanSteps.of`.
        importance: d, see `Importance`.
        n_steps: See `ScanSteps.of`.
    """
    steps, d = ScanSteps.of(scan, influence, n_steps), dense_importance(influence.n_variables, importance)
    return float(d @ coupling_vector(influence, steps))


def variation_curve(
    influence: Influence, scan: Scan | ArrayLike, importance: Importance = None, n_steps: int | None = None
) -> Floats:
    """Return the Dobrushin variation of a scan after 0, 1, .., T steps.

    Args:
        influence: The influence bound.
        scan: See `ScanSteps.of`.
        importance: d, see `Importance`.
        n_steps: See `ScanSteps.of`.

    Returns:
        float64[T + 1].
    """
    steps, d = ScanSteps.of(scan, influence, n_steps), dense_importance(influence.n_variables, importance)
    curve = np.empty(len(steps) + 1)
    if steps.order is not None:
        b, support = np.ones(influence.n_variables), np.flatnonzero(d).astype(np.int32)
        loops.walk_recorded(influence.matrix, steps.order, b, d, support, curve)
        return curve
    at = 0
    curve[0] = d.sum()
    for rows in _coupling_rows(influence, steps):
        curve[at : at + len(rows)] = rows @ d
        at += len(rows) - 1
    return curve


def coupling_bounds(influence: Influence, scan: Scan | ArrayLike, n_steps: int | None = None) -> Floats:
    """Return bounds on the probability that each variable has different states in two coupled runs (DoGS17, Sec. 4).

    One run is the sampler, and the other run has the target distribution. The bound of a variable also bounds the total
    variation distance of its marginal from the target.

    Args:
        influence: The influence bound.
        scan: See `ScanSteps.of`.
        n_steps: See `ScanSteps.of`.

    Returns:
        b_T, float64[V], at most 1 each.
    """
    return np.minimum(coupling_vector(influence, ScanSteps.of(scan, influence, n_steps)), 1.0)


def marginal_bound(
    influence: Influence, scan: Scan | ArrayLike, variables: Iterable[int], n_steps: int | None = None
) -> float:
    """Bound the total variation error of the joint marginal of ``variables`` after a scan (DoGS17, Definition 2).

    The bound is at most 1.

    Args:
        influence: The influence bound.
        scan: See `ScanSteps.of`.
        variables: The variables of the joint marginal.
        n_steps: See `ScanSteps.of`.

    Returns:
        Upper bound on the total variation distance, from 0 to 1.
    """
    importance = unit_importance(require_influence(influence).n_variables, variables)
    return min(1.0, weighted_bound(influence, scan, importance, n_steps))


def weighted_bound(
    influence: Influence, scan: Scan | ArrayLike, importance: Importance, n_steps: int | None = None
) -> float:
    """Bound the weighted total variation error after a scan (DoGS17, Definition 4).

    The weight d_i of variable i is its value in ``importance``. The bound is at most the sum of d. It also bounds
    the error in the mean of any function that changes by at most d_i when variable i changes.

    Args:
        influence: The influence bound.
        scan: See `ScanSteps.of`.
        importance: d, see `Importance`.
        n_steps: See `ScanSteps.of`.

    Returns:
        Upper bound on the weighted error, from 0 to the sum of d.
    """
    b = coupling_bounds(influence, scan, n_steps)
    return float(dense_importance(len(b), importance) @ b)


def coupling_vector(influence: Influence, steps: ScanSteps) -> Floats:
    """Return the coupling bounds b_T of all variables, float64[V] (DoGS17, Definition 7). The bounds may exceed 1.

    Args:
        influence: The influence bound.
        steps: The scan.
    """
    b = np.ones(influence.n_variables)
    if steps.order is not None:
        loops.walk(influence.matrix, steps.order, b)
    else:
        for rows in _coupling_rows(influence, steps):
            b = rows[-1]
    return np.fmin(b, _LARGEST)  # products of large user-supplied influences can overflow to inf or NaN


def _coupling_rows(influence: Influence, steps: ScanSteps) -> Iterator[Floats]:
    """Yield the coupling bounds of all variables after each step of a random scan, in chunks of steps.

    A chunk begins with the last row of the previous chunk.
    """
    assert steps.distributions is not None
    length = max(1, _CHUNK // max(1, influence.n_variables))
    b = np.ones(influence.n_variables)
    for at in range(0, len(steps), length):
        q = steps.distributions[at : at + length]
        rows = np.empty((len(q) + 1, influence.n_variables))
        rows[0] = b
        loops.walk_random(influence.matrix, q, rows)
        b = rows[-1]
        yield rows


def _repeat_rows(rows: NDArray[T], n: int | None) -> NDArray[T]:
    """Return the first ``n`` rows; if there are fewer, repeat all rows in order until there are ``n``."""
    if n is None or n == len(rows):
        return rows
    if n < len(rows):
        return rows[:n]
    if not len(rows):
        raise ValueError(f"an empty scan cannot be repeated to {n} steps; pass at least one variable")
    return np.resize(rows, (n, *rows.shape[1:]))


def rate_bound(influence: Influence, scan: Scan, n_steps: int, importance: Importance = None) -> float:
    """Return a closed-form upper bound on the Dobrushin variation of a scan (DoGS17, Proposition 9, after Hayes 2006).

    The bound is at most the sum of the importances d, and tends to 0 if a norm of C is below 1. `dobrushin_variation`
    is never larger and takes O(n_steps); this bound takes O(entries).

    Let b be the coupling bounds of the single variables, initially 1. Let k be the number of whole sweeps of V
    variables in T steps.

    * Infinity norm a: an update of variable i sets b_i to at most a max b, and changes no other bound. A sweep
      multiplies max b by at most a. A random step gives (I - (I - C) / V) b, whose maximum is at most
      (1 - (1 - a) / V) max b. The variation is at most ``|d|_1 a^k``, or ``|d|_1 (1 - (1 - a) / V)^T``.
    * 1-norm a: a random step multiplies the sum of b, initially V, by at most 1 - (1 - a) / V. In a sweep, let r_j be
      the part of column j that variables after j use with the new b_j, and s_j the rest. The new b' satisfies sum (1 -
      r_j) b'_j = sum s_j b_j <= sum (a - r_j) b_j <= a sum (1 - r_j) b_j, and 1 - r_j is in [1 - a, 1]. The variation
      is at most max d V a^k / (1 - a), or max d V (1 - (1 - a) / V)^T.
    * 2-norm a, random scans only: the variation is at most ``|d|_2 sqrt(V) (1 - (1 - a) / V)^T``.

    Args:
        influence: The influence bound.
        scan: A systematic, checkerboard or uniform random scan.
        n_steps: Number of steps, T.
        importance: d, see `Importance`.

    Raises:
        ValueError: The scan has another form; use `dobrushin_variation`.
    """
    n, n_steps = require_influence(influence).n_variables, check_integer(n_steps, "the number of steps of a scan", 0)
    if scan.kind not in ("systematic", "checkerboard", "random"):
        raise ValueError(
            f"rate_bound needs a systematic, checkerboard or random scan, got {scan}; use dobrushin_variation"
        )
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
    """Rule that selects the variables for which a scan is optimised.

    Attributes:
        kind: "all" variables, listed "variables", or "uncertain" variables.
        variables: The listed variables.
        probability: For "uncertain": the targets are the variables whose most probable state has a probability below
            1 - ``probability``.
    """

    kind: Literal["all", "variables", "uncertain"] = "all"
    variables: tuple[int, ...] = ()
    probability: float = 0.0

    SYNTAX: ClassVar[str] = "all, variables(0, 5, ..) or uncertain(0.05)"

    def __post_init__(self) -> None:
        """Raise `ValueError` if an attribute is invalid."""
        if self.kind not in ("all", "variables", "uncertain"):
            raise ValueError(f"`targets` must be {self.SYNTAX}, got {self.kind!r}")
        for i in self.variables:
            check_integer(i, "a target variable", 0)
        if not is_number(self.probability) or not 0 <= self.probability < 1:
            raise ValueError(
                f"`probability` of uncertain variables must be at least 0 and below 1, got {self.probability}"
            )

    @classmethod
    def from_text(cls, text: str) -> TargetVariables:
        """Parse target variables such as ``all``, ``variables(0, 5)`` or ``uncertain(0.05)``.

        Args:
            text: The text to parse.

        Returns:
            The rule that selects the targets.

        Raises:
            ValueError: The text has another form.
        """
        functions = {"all": all_variables, "variables": selected_variables, "uncertain": uncertain_variables}
        return parse_call(text, functions, "targets", cls.SYNTAX)

    def __str__(self) -> str:
        """Return the target variables as a string that `TargetVariables.from_text` parses."""
        if self.kind == "variables":
            return f"variables({', '.join(map(str, self.variables))})"
        return f"uncertain({self.probability:g})" if self.kind == "uncertain" else "all"


def all_variables() -> TargetVariables:
    """Select all variables as targets, that is, as the variables whose marginals a scan shall estimate.

    Returns:
        The rule that selects all variables of a graph.
    """
    return TargetVariables()


def selected_variables(*variables: int) -> TargetVariables:
    """Return the rule that selects the given variables as targets, whose marginals are estimated.

    Args:
        *variables: Indices of the targets.

    Returns:
        The rule.
    """
    return TargetVariables("variables", variables)


def uncertain_variables(probability: float = 0.05) -> TargetVariables:
    """Select as targets the variables whose most probable state has a probability below 1 - ``probability``.

    The probabilities are the marginals of the chains without links. Chains consist of the unary factors and the factors
    of two consecutive variables.

    Args:
        probability: A variable is selected if its less probable states together have more than this probability.

    Returns:
        The rule that selects the uncertain variables of a graph.
    """
    return TargetVariables("uncertain", probability=probability)
