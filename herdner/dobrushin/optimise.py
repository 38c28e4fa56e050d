"""DoGS: scans optimised for a number of steps and for important variables (DoGS17, Sec. 4, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext import descent, variation
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.checks import check_integer
from herdner.base.representation import short_repr
from herdner.dobrushin.influence import Influence, pairwise_bound
from herdner.dobrushin.variation import (
    Importance,
    ScanSteps,
    coupling_vector,
    dense_importance,
    dobrushin_variation,
    require_influence,
    sparse_importance,
)
from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph
from herdner.graph.scan import Scan, systematic_scan
from herdner.graph.tables import Graph, TableGraph, compile_tables

_CONVERGED = 1e-9  # Algorithm 2 is not repeated after a relative gain below this number


@dataclass(frozen=True, slots=True, eq=False)
class OptimisedScan:
    """Optimised scan, with its Dobrushin variation as an upper bound on the sampling error.

    Attributes:
        order: int32[T], the variable of each step.
        n_random: Number of steps before ``order`` that draw their variables from the distributions of the input scan.
            It is positive if the input draws its variables and Algorithm 2 reached the goal before it changed the first
            steps.
        bound: Dobrushin variation of the scan.
        input_bound: Dobrushin variation of the input scan with the same number of steps.
        n_runs: Number of runs of Algorithm 2.
        seconds: Wall time.
    """

    order: Int32s
    n_random: int
    bound: float
    input_bound: float
    n_runs: int
    seconds: float

    __repr__ = short_repr

    @property
    def n_steps(self) -> int:
        """Number of steps in the optimised scan, T."""
        return self.n_random + len(self.order)


def optimise_scan(
    influence: Influence,
    scan: Scan | ArrayLike | None = None,
    importance: Importance = None,
    n_steps: int | None = None,
    *,
    epsilon: float = 0.0,
    iterations: int = 1,
) -> OptimisedScan:
    """Improve a scan by coordinate descent on its Dobrushin variation, from last to first step (DoGS17, Algorithm 2).

    The bound of the result is never above the bound of the input. Among equally good variables, the smallest index is
    taken. A step takes O(m log V + m^2) time for rows of m entries, independently of V; it takes O(V + entries) if the
    input draws its variables.

    Args:
        influence: The influence bound.
        scan: The scan to improve, see `ScanSteps.of`; systematic by default.
        importance: d, see `Importance`.
        n_steps: See `ScanSteps.of`.
        epsilon: Stop when the bound is at most ``epsilon``. Earlier steps of the scan then remain unchanged.
        iterations: Largest number of runs ("iterated DoGS"). Each run improves the result of the previous run. The
            search ends when a run does not improve the bound.

    Returns:
        The improved scan with its bound and the bound of the input.

    Raises:
        ValueError: An argument is out of range, or the scan does not fit.
    """
    began, search = perf_counter(), ScanSearch(influence, importance)
    steps = ScanSteps.of(systematic_scan() if scan is None else scan, influence, n_steps)
    _check_goal(epsilon)
    check_integer(iterations, "iterations")
    if steps.distributions is not None:
        d = dense_importance(influence.n_variables, importance)
        return _from_random(search, steps.distributions, d, epsilon, iterations, began)
    assert steps.order is not None
    return _iterate(search, steps.order, epsilon, iterations, began)


def shortest_scan(
    influence: Influence,
    epsilon: float,
    scan: Scan | ArrayLike | None = None,
    importance: Importance = None,
    n_steps: int = 2**20,
    *,
    refine: bool = False,
) -> OptimisedScan | None:
    """Search for a short scan with Dobrushin variation at most ``epsilon``, by doubling its length (DoGS17, Sec. 5.2).

    Algorithm 2 runs on the first 2, 4, 8, .. steps of a scan until the bound of the result is at most ``epsilon``. The
    result omits steps that cannot influence an important variable; this does not change its bound. The search visits
    only variables near its steps and near important variables.

    Args:
        influence: The influence bound.
        epsilon: Largest Dobrushin variation of the result.
        scan: See `optimise_scan`.
        importance: See `optimise_scan`.
        n_steps: Largest number of steps.
        refine: True to bisect between the last two lengths for a shorter scan.

    Returns:
        The scan, or None if it needs more than ``n_steps`` steps.

    Raises:
        ValueError: An argument is out of range, or the scan does not fit.
    """
    began = perf_counter()
    start = systematic_scan() if scan is None else scan
    _check_goal(epsilon)
    search, n_runs = ScanSearch(influence, importance), 0

    def improve(length: int) -> OptimisedScan | None:
        nonlocal n_runs
        n_runs += 1
        return _improve_until(search, ScanSteps.of(start, influence, length), importance, epsilon)

    tried, length = 0, min(2, n_steps)
    while (result := improve(length)) is None:
        if length >= n_steps:
            return None
        tried, length = length, min(2 * length, n_steps)
    while refine and length - tried > 1:
        middle = (tried + length) // 2
        shorter = improve(middle)
        if shorter is None:
            tried = middle
        else:
            result, length = shorter, middle
    return replace(result, n_runs=n_runs, seconds=perf_counter() - began)


class ScanSearch:
    """Working memory for Algorithm 2 of DoGS17 with one influence matrix and one importance vector.

    Attributes:
        influence: The influence bound.
        visited: Number of variables that the last run visited.
    """

    def __init__(self, influence: Influence, importance: Importance) -> None:
        """Allocate working memory for an influence matrix and an importance vector.

        Args:
            influence: The influence bound.
            importance: d, see `Importance`.

        Raises:
            ValueError: ``influence`` is no upper bound, or ``importance`` does not fit.
        """
        self.influence, self.visited = require_influence(influence), 0
        self._important = sparse_importance(influence.n_variables, importance)
        self._descent = descent.Descent(influence.matrix)

    def run(self, order: Int32s, epsilon: float) -> tuple[Int32s, float, int]:
        """Improve the scan ``order`` by one run of Algorithm 2 of DoGS17.

        Args:
            order: int32[T], the variable of each step.
            epsilon: See `optimise_scan`.

        Returns:
            The new order, the bound of the old order, and the number of steps at the beginning that were not changed.
        """
        new = np.array(self._check_order(order))
        before, unchanged = self._descent.run(new, *self._important, epsilon, np.empty(len(new)))
        self.visited = self._descent.reset()
        return new, before, unchanged

    def bound(self, order: Int32s) -> float:
        """Return the Dobrushin variation of the scan ``order``.

        Args:
            order: int32[T], the variable of each step.
        """
        bound = self._descent.variation(self._check_order(order), *self._important)
        self._descent.reset()
        return bound

    def without_idle_steps(self, order: Int32s) -> Int32s:
        """Remove the steps of a scan that have no effect on the bound.

        A step has no effect if its variable is drawn again before it influences an important variable.

        Args:
            order: int32[T], the variable of each step.

        Returns:
            int32[up to T], the variables of the remaining steps in their order.
        """
        order = self._check_order(order)
        reach = np.empty(len(order), np.uint8)
        self._descent.mark_reaching(order, *self._important, reach)
        self._descent.reset()
        return order[reach.view(bool)]

    def _check_order(self, order: Int32s) -> Int32s:
        """Convert ``order`` to int32[T]; raise `ValueError` unless it is a list of existing variables."""
        variables = ScanSteps.of(order, self.influence).order
        if variables is None:
            raise ValueError("`order` must be a list of variables, not a list of distributions over variables")
        return variables


def _iterate(search: ScanSearch, order: Int32s, epsilon: float, iterations: int, began: float) -> OptimisedScan:
    """Repeat Algorithm 2 of DoGS17 until the bound stops improving, and return the best scan."""
    first = best = search.bound(order)
    n_runs = 0
    while n_runs < iterations and best > epsilon:
        new, _, _ = search.run(order, epsilon)
        bound = search.bound(new)
        n_runs += 1
        if not bound < best:
            break
        gain, order, best = best - bound, new, bound
        if gain <= _CONVERGED * bound:
            break
    return OptimisedScan(order, 0, best, first, n_runs, perf_counter() - began)


def _from_random(
    search: ScanSearch, q: Floats, d: Floats, epsilon: float, iterations: int, began: float
) -> OptimisedScan:
    """Improve a random scan by runs of Algorithm 2 of DoGS17; step t draws its variable from the distribution q[t]."""
    influence = search.influence
    first = dobrushin_variation(influence, q, d)
    order, unchanged = _descend_random(influence, q, d.copy(), epsilon)
    b = coupling_vector(influence, ScanSteps(distributions=q[:unchanged]))
    variation.walk(influence.matrix, order[unchanged:], b)
    once = OptimisedScan(order[unchanged:], unchanged, float(d @ b), first, 1, perf_counter() - began)
    if once.bound > first:  # caused by rounding, if the scan cannot be improved
        return OptimisedScan(order[:0], len(q), first, first, 1, perf_counter() - began)
    if unchanged or iterations == 1:
        return once
    more = _iterate(search, order, epsilon, iterations - 1, began)
    if more.bound >= once.bound:
        return once
    return OptimisedScan(more.order, 0, more.bound, first, 1 + more.n_runs, more.seconds)


def _descend_random(influence: Influence, q: Floats, d: Floats, epsilon: float) -> tuple[Int32s, int]:
    """Choose variables for the steps of a random scan, from last to first, until the bound is at most ``epsilon``.

    Returns the scan, and the number of initial steps that remain random. The vector ``d`` is overwritten.

    The descent needs the coupling bounds before each step, from the last step to the first. They are stored at every
    ``length``-th step and recomputed for the steps between, which needs memory for 2 sqrt(T) vectors instead of T.
    """
    n, n_steps = influence.n_variables, len(q)
    length = max(1, int(np.sqrt(n_steps)))
    marks = [np.ones(n)]
    rows = np.empty((length + 1, n))
    for at in range(0, n_steps - length, length):
        rows[0] = marks[-1]
        variation.walk_random(influence.matrix, q[at : at + length], rows)
        marks.append(rows[-1].copy())
    order, w = np.empty(n_steps, np.int32), np.empty(n)
    for k in reversed(range(len(marks))):
        part = q[k * length : (k + 1) * length if k + 1 < len(marks) else n_steps]
        rows = np.empty((len(part) + 1, n))
        rows[0] = marks[k]
        variation.walk_random(influence.matrix, part, rows)
        place = order[k * length : k * length + len(part)]
        unchanged = descent.choose_dense(influence.matrix, part, rows[:-1], d, epsilon, place, w)
        if unchanged:
            return order, k * length + unchanged
    return order, 0


def _improve_until(
    search: ScanSearch, steps: ScanSteps, importance: Importance, epsilon: float
) -> OptimisedScan | None:
    """Improve ``steps`` by one run of Algorithm 2 of DoGS17; return None if the bound remains above ``epsilon``."""
    if steps.distributions is not None:
        d = dense_importance(search.influence.n_variables, importance)
        result = _from_random(search, steps.distributions, d, epsilon, 1, perf_counter())
        if result.n_random:
            return result if result.bound <= epsilon else None
        new, before = result.order, result.input_bound
    else:
        assert steps.order is not None
        new, before, _ = search.run(steps.order, epsilon)
    new = search.without_idle_steps(new)
    bound = search.bound(new)
    return OptimisedScan(new, 0, bound, before, 1, 0.0) if bound <= epsilon else None


def _check_goal(epsilon: float) -> None:
    if not epsilon >= 0:
        raise ValueError(f"`epsilon` must be at least 0, got {epsilon!r}")


@dataclass(frozen=True, slots=True)
class InfluenceEstimate:
    """Estimate of the influence between variables, from sampled states instead of the worst possible states.

    Bounds on influence hold for the worst state, which the sampler may never visit. This estimate is at most the exact
    influence, and it is no upper bound. It yields only an order, and functions that compute bounds reject it. The
    guarantee of this order is ``dobrushin_variation(tightest_influence(graph), order)``.

    Attributes:
        n_samples: Number of states in the sample.
    """

    n_samples: int
    _influence: Influence = field(repr=False)

    @classmethod
    def of(cls, graph: Graph, samples: ArrayLike, largest: bool = False) -> InfluenceEstimate:
        """Estimate the influence between the variables of a graph from sampled states.

        For a state and a pair (i, j) that shares a factor, consider the full conditionals of i for all states of j,
        with the other variables as sampled. The influence is the largest total variation distance between two of these
        conditionals. A sampled state is skipped if all states of i are forbidden for some state of j. Time
        O(S x entries x states^2).

        Args:
            graph: The graph.
            samples: int[S, V], states such as those that `Gibbs` records.
            largest: True for the maximum over the sample, False for the mean.

        Returns:
            The estimate for each pair of variables that share a factor.

        Raises:
            ValueError: The samples do not fit the graph.
        """
        compiled = compile_tables(graph)
        states = np.asarray(samples)
        if states.ndim != 2 or states.shape[1] != len(compiled.sizes) or not len(states):
            raise ValueError(f"`samples` must have shape [samples, {len(compiled.sizes)}], got {states.shape}")
        try:
            compiled.graph.domains.points(states)
        except ValueError as error:
            raise ValueError(f"`samples` must be states: {error}") from None
        pairs, sizes = pairwise_bound(compiled), compiled.sizes.tolist()  # pairs: which variables share factors
        values = np.zeros(len(pairs.values))
        for i in range(len(sizes)):
            local, members = _factors_of(compiled, i)
            some, place = states[:, members].astype(np.int64), {k: at for at, k in enumerate(members.tolist())}
            for at in range(int(pairs.starts[i]), int(pairs.starts[i + 1])):
                j = int(pairs.sources[at])
                seen = _influences(local, some, (place[i], sizes[i]), (place[j], sizes[j]))
                values[at] = seen.max(initial=0.0) if largest else seen.sum() / max(len(seen), 1)
        return cls(len(states), Influence(pairs.starts, pairs.sources, values, "estimated", compiled))

    def order(
        self,
        scan: Scan | ArrayLike | None = None,
        importance: Importance = None,
        n_steps: int | None = None,
        iterations: int = 1,
    ) -> Int32s:
        """Improve a scan by Algorithm 2 of DoGS17 with the estimated influence; return the new order, int32[T].

        Args:
            scan: See `optimise_scan`.
            importance: See `optimise_scan`.
            n_steps: See `optimise_scan`.
            iterations: See `optimise_scan`.

        Raises:
            ValueError: An argument does not fit.
        """
        return optimise_scan(self._influence, scan, importance, n_steps, iterations=iterations).order


def _factors_of(compiled: TableGraph, variable: int) -> tuple[FactorGraph, Int32s]:
    """Return the subgraph of the factors of a variable, and the original indices of the subgraph's variables."""
    members = np.union1d(compiled.graph.blanket(variable), np.array([variable], np.int32)).astype(np.int32)
    local: list[TableFactors] = []
    for group in compiled.factors:
        rows = np.flatnonzero((group.scopes == variable).any(axis=1))
        scopes = np.searchsorted(members, group.scopes[rows])
        local.append(TableFactors(scopes, group.tables, group.table_of_factor[rows], group.scale[rows]))
    return FactorGraph(compiled.sizes[members], local), members


def _influences(local: FactorGraph, states: Int64s, i: tuple[int, int], j: tuple[int, int]) -> Floats:
    """Return the influence of variable j on variable i in each sampled state.

    ``i`` and ``j`` are (column in ``states``, number of states).
    """
    (at_i, n_i), (at_j, n_j) = i, j
    changed = np.repeat(states[:, None], n_j * n_i, axis=1)
    changed[:, :, at_j], changed[:, :, at_i] = np.divmod(np.arange(n_j * n_i), n_i)
    logs = local.log_potential(changed.reshape(-1, states.shape[1])).reshape(len(states), n_j, n_i)
    logs = logs[(logs.max(axis=2) > -np.inf).all(axis=1)]
    p = np.exp(logs - logs.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    distance: Floats = np.abs(p[:, :, None] - p[:, None]).sum(axis=3)
    return distance.max(axis=(1, 2), initial=0.0) / 2
