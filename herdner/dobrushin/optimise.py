"""DoGS: scans optimised for a number of steps and for the variables that matter (DoGS17 Sec. 4, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext import descent, variation
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.checks import whole
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

_CONVERGED = 1e-9  # relative gain of a run of Algorithm 2 below which it is not repeated


@dataclass(frozen=True, slots=True, eq=False)
class OptimisedScan:
    """A scan and what is known of it.

    Attributes:
        order: int32[T]: the variable of each step.
        n_random: Steps before those that draw their variables as the input scan does: where that draws them, and the
            goal was reached before Algorithm 2 came to its first steps.
        bound: Its Dobrushin variation.
        input_bound: That of the scan it was made of, at the same number of steps.
        n_runs: Runs of Algorithm 2.
        seconds: Wall time.
    """

    order: Int32s
    n_random: int
    bound: float
    input_bound: float
    n_runs: int
    seconds: float

    @property
    def n_steps(self) -> int:
        """T."""
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
    """Algorithm 2: coordinate descent on the Dobrushin variation, the last step first.

    The bound of the outcome is never above that of the input. Of variables that are as good the smallest index is
    taken. Time O(m log V + m^2) for a step, m the entries of a row, whatever V is; O(V + entries) where the input draws
    its variables.

    Args:
        scan: The scan to improve, see `Steps.of`; systematic by default.
        importance: d, see `importance_of`.
        n_steps: See `Steps.of`.
        epsilon: Steps before those that bring the bound to epsilon stay as they are.
        iterations: Runs, each on the outcome of the one before, at most, until they gain nothing ("iterated DoGS").
    """
    began = perf_counter()
    search, steps = (
        ScanSearch(influence, importance),
        ScanSteps.of(systematic_scan() if scan is None else scan, influence, n_steps),
    )
    _check_goal(epsilon)
    whole(iterations, "iterations")
    if steps.distributions is not None:
        d = dense_importance(influence.n_variables, importance)
        return _from_random(search, steps.distributions, d, epsilon, iterations, began)
    assert steps.order is not None
    return _iterated(search, steps.order, epsilon, iterations, began)


def shortest_scan(
    influence: Influence,
    epsilon: float,
    scan: Scan | ArrayLike | None = None,
    importance: Importance = None,
    n_steps: int = 2**20,
    *,
    refine: bool = False,
) -> OptimisedScan | None:
    """The length-doubling search of Sec. 5.2: Algorithm 2 on the first 2, 4, 8, .. steps of a scan, until the outcome's
    Dobrushin variation is at most ``epsilon``; None where that takes more than ``n_steps``.

    Steps that change no variable of importance before it is drawn anew are left out of the outcome: its bound is the
    same without them. Other arguments as of `optimise_scan`. The search visits the variables that its steps and
    importances come near, and no others; only arrays over all variables that are given have to be read.

    Args:
        refine: Looks between the last two lengths for a shorter one, by bisection.
    """
    began = perf_counter()
    start = systematic_scan() if scan is None else scan
    _check_goal(epsilon)
    search, n_runs = ScanSearch(influence, importance), 0
    tried, found, length = 0, None, min(2, n_steps)
    while found is None:
        steps = ScanSteps.of(start, influence, length)
        found, n_runs = _reaching(search, steps, importance, epsilon), n_runs + 1
        if found is None and length >= n_steps:
            return None
        if found is None:
            tried, length = length, min(2 * length, n_steps)
    while refine and length - tried > 1:
        middle = (tried + length) // 2
        shorter = _reaching(search, ScanSteps.of(start, influence, middle), importance, epsilon)
        n_runs += 1
        if shorter is None:
            tried = middle
        else:
            found, length = shorter, middle
    return OptimisedScan(found.order, found.n_random, found.bound, found.input_bound, n_runs, perf_counter() - began)


class ScanSearch:
    """Runs of Algorithm 2 on one influence matrix for one importance; what they have in common is set up once.

    ``visited``: how many variables the last of them came near.
    """

    def __init__(self, influence: Influence, importance: Importance) -> None:
        self.influence, self.visited = require_influence(influence), 0
        self._important = sparse_importance(influence.n_variables, importance)
        self._descent = descent.Descent(influence)

    def run(self, order: Int32s, epsilon: float) -> tuple[Int32s, float, int]:
        """Algorithm 2 once: the new order, the bound of the old one, and how many first steps were left as they are."""
        new = np.array(self._checked(order))
        before, left = self._descent.run(new, *self._important, epsilon, np.empty(len(new)))
        self.visited = self._descent.reset()
        return new, before, left

    def bound(self, order: Int32s) -> float:
        """The Dobrushin variation of an order."""
        bound = self._descent.variation(self._checked(order), *self._important)
        self._descent.reset()
        return bound

    def without_idle_steps(self, order: Int32s) -> Int32s:
        """The order without the steps that its bound does not depend on: those whose variable is drawn anew before it
        influences one of importance.
        """
        order = self._checked(order)
        reach = np.empty(len(order), np.uint8)
        self._descent.mark_reaching(order, *self._important, reach)
        self._descent.reset()
        return order[reach.view(bool)]

    def _checked(self, order: Int32s) -> Int32s:
        """The order. ValueError where it is no list of variables."""
        named = ScanSteps.of(order, self.influence).order
        if named is None:
            raise ValueError("the order of a search is a list of variables, not distributions")
        return named


def _iterated(search: ScanSearch, order: Int32s, epsilon: float, iterations: int, began: float) -> OptimisedScan:
    """Runs Algorithm 2 until nothing is gained; the best order of all, so that rounding cannot make it worse."""
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
    """Algorithm 2 on a scan that draws its variables; later runs, if any, on its outcome."""
    influence = search.influence
    first = dobrushin_variation(influence, q, d)
    order, left = _descend_random(influence, q, d.copy(), epsilon)
    b = coupling_vector(influence, ScanSteps(distributions=q[:left]))
    variation.walk(influence, order[left:], b)
    once = OptimisedScan(order[left:], left, float(d @ b), first, 1, perf_counter() - began)
    if once.bound > first:  # by rounding, where nothing can be gained
        return OptimisedScan(order[:0], len(q), first, first, 1, perf_counter() - began)
    if left or iterations == 1:
        return once
    more = _iterated(search, order, epsilon, iterations - 1, began)
    if more.bound >= once.bound:
        return once
    return OptimisedScan(more.order, 0, more.bound, first, 1 + more.n_runs, more.seconds)


def _descend_random(influence: Influence, q: Floats, d: Floats, epsilon: float) -> tuple[Int32s, int]:
    """(order, how many first steps of it were left). ``d`` is overwritten.

    b before each step is wanted from the last to the first; it is kept at every 'length'-th and walked anew from there,
    which takes the memory of 2 sqrt(T) of them instead of T.
    """
    n, n_steps = influence.n_variables, len(q)
    length = max(1, int(np.sqrt(n_steps)))
    marks = [np.ones(n)]
    rows = np.empty((length + 1, n))
    for at in range(0, n_steps - length, length):
        rows[0] = marks[-1]
        variation.walk_random(influence, q[at : at + length], rows)
        marks.append(rows[-1].copy())
    order, w = np.empty(n_steps, np.int32), np.empty(n)
    for k in reversed(range(len(marks))):
        part = q[k * length : (k + 1) * length if k + 1 < len(marks) else n_steps]
        rows = np.empty((len(part) + 1, n))
        rows[0] = marks[k]
        variation.walk_random(influence, part, rows)
        place = order[k * length : k * length + len(part)]
        left = descent.choose_dense(influence, part, rows[:-1], d, epsilon, place, w)
        if left:
            return order, k * length + left
    return order, 0


def _reaching(search: ScanSearch, steps: ScanSteps, importance: Importance, epsilon: float) -> OptimisedScan | None:
    """Algorithm 2 once on these steps, if it brings the bound to epsilon."""
    if steps.distributions is not None:
        d = dense_importance(search.influence.n_variables, importance)
        found = _from_random(search, steps.distributions, d, epsilon, 1, perf_counter())
        if found.n_random:
            return found if found.bound <= epsilon else None
        new, before = found.order, found.input_bound
    else:
        assert steps.order is not None
        new, before, _ = search.run(steps.order, epsilon)
    new = search.without_idle_steps(new)
    bound = search.bound(new)
    return OptimisedScan(new, 0, bound, before, 1, 0.0) if bound <= epsilon else None


def _check_goal(epsilon: float) -> None:
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be a number of at least 0, not {epsilon!r}")


@dataclass(frozen=True, slots=True)
class InfluenceEstimate:
    """How much variables influence each other in the states of a sample, instead of the worst that can be.

    Bounds of influence are made for the worst state, which the sampler may never see; what stands here is not above
    them, and no bound of anything. So no function of this package that bounds takes it, and what it gives is an order
    alone. The guarantee of that order, by a bound of influence, is `dobrushin_variation` (tightest(graph), order).

    Attributes:
        n_samples: The states it was estimated from.
    """

    n_samples: int
    _found: Influence = field(repr=False)

    @classmethod
    def of(cls, graph: Graph, samples: ArrayLike, largest: bool = False) -> InfluenceEstimate:
        """From states [S, V], such as a run of `Gibbs` records: for each pair (i, j) that shares a factor, the total
        variation distance between two conditionals of i given the rest of a state and two labels of j, at the two
        labels where it is largest; of that the mean over the states, or the ``largest``.

        States whose neighbours, j changed, forbid every label of i are left out. Time O(S x entries x labels^2).
        """
        compiled = compile_tables(graph)
        states = np.asarray(samples)
        if states.ndim != 2 or states.shape[1] != len(compiled.sizes) or not len(states):
            raise ValueError(f"samples must be states [S, {len(compiled.sizes)}] of the graph, not {states.shape}")
        if not ((states >= 0) & (states < compiled.sizes)).all():
            raise ValueError("samples must hold labels of the graph's variables, 0 to K - 1")
        pairs, sizes = pairwise_bound(compiled), compiled.sizes.tolist()  # pairs: for who shares a factor with whom
        values = np.zeros(len(pairs.values))
        for i in range(len(sizes)):
            near, members = _factors_of(compiled, i)
            some, place = states[:, members].astype(np.int64), {k: at for at, k in enumerate(members.tolist())}
            for at in range(int(pairs.starts[i]), int(pairs.starts[i + 1])):
                j = int(pairs.sources[at])
                seen = _influences(near, some, (place[i], sizes[i]), (place[j], sizes[j]))
                values[at] = seen.max(initial=0.0) if largest else seen.sum() / max(len(seen), 1)
        return cls(len(states), Influence(pairs.starts, pairs.sources, values, "estimated", compiled))

    def order(
        self,
        scan: Scan | ArrayLike | None = None,
        importance: Importance = None,
        n_steps: int | None = None,
        iterations: int = 1,
    ) -> Int32s:
        """int32[T]: what Algorithm 2 makes of a scan; arguments as of `optimise_scan`."""
        return optimise_scan(self._found, scan, importance, n_steps, iterations=iterations).order


def _factors_of(compiled: TableGraph, variable: int) -> tuple[FactorGraph, Int32s]:
    """The graph of one variable and its blanket alone, with its factors; and which variables these are."""
    members = np.union1d(compiled.graph.blanket(variable), np.array([variable], np.int32)).astype(np.int32)
    near: list[TableFactors] = []
    for group in compiled.factors:
        rows = np.flatnonzero((group.scopes == variable).any(axis=1))
        scopes = np.searchsorted(members, group.scopes[rows])
        near.append(TableFactors(scopes, group.tables, group.table_of_factor[rows], group.scale[rows]))
    return FactorGraph(compiled.sizes[members], near), members


def _influences(near: FactorGraph, states: Int64s, i: tuple[int, int], j: tuple[int, int]) -> Floats:
    """Of each state [S, blanket] where it is defined; i and j: the variable's column and number of labels."""
    (at_i, n_i), (at_j, n_j) = i, j
    changed = np.repeat(states[:, None], n_j * n_i, axis=1)
    changed[:, :, at_j], changed[:, :, at_i] = np.divmod(np.arange(n_j * n_i), n_i)
    logs = near.log_potential(changed.reshape(-1, states.shape[1])).reshape(len(states), n_j, n_i)
    logs = logs[(logs.max(axis=2) > -np.inf).all(axis=1)]
    p = np.exp(logs - logs.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    apart: Floats = np.abs(p[:, :, None] - p[:, None]).sum(axis=3)
    return apart.max(axis=(1, 2), initial=0.0) / 2
