"""Counts of visited states on small graphs, by a compiled loop for binary variables and else from recorded samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import gibbs as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.checks import check_variables
from herdner.base.representation import short_repr
from herdner.base.seeds import Seed, generator
from herdner.graph.scan import fixed_scan
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.run import Run, begin_runs
from herdner.inference.gibbs.setup import Setup
from herdner.inference.gibbs.sharing import Sharing, blanket_sharing
from herdner.inference.gibbs.start import check_start
from herdner.inference.record import Record
from herdner.studies.convergence.correlation import CorrelationEstimate
from herdner.studies.convergence.errors import ErrorParts
from herdner.studies.convergence.exact import Focus, by_other_states, joint_distribution
from herdner.studies.convergence.recorded import count_recorded, focus_of_recorded

_PIECE = 2**19  # sweeps between checks for Ctrl-C
_NOTHING = Record(best=False, marginals=False)


@dataclass(frozen=True, slots=True, eq=False)
class VisitCounts:
    """Number of visits of each joint state in one run of a sampler.

    Attributes:
        focus: The variable X, the states z of all other variables, and the herding weights.
        lengths: [N], the numbers of sweeps after which the counts were taken.
        visits: uint64[N, L, Z, K], number of samples by the weight they used (see `Focus.keys`), by z, and by state of
            X.
        returns: uint64[K, Z], number of samples of the whole run by the state of X at the previous use of the same
            weight y, and by z.
    """

    focus: Focus
    lengths: tuple[int, ...]
    visits: NDArray[np.uint64]
    returns: NDArray[np.uint64]

    __repr__ = short_repr

    @property
    def errors(self) -> list[ErrorParts]:
        """Parts of the sampling error (`ErrorParts`) after each number of sweeps in ``lengths``."""
        return [ErrorParts.of(visits, self.focus) for visits in self.visits]

    @property
    def correlation(self) -> CorrelationEstimate:
        """Estimated limit of D^cor, the correlation part of the sampling error, as the number of samples grows (HGW19).

        The run must be a long run of Gibbs sampling.

        Raises:
            ValueError: The weights are used with several probabilities (bins), or a variable is not binary.
        """
        return CorrelationEstimate.of_returns(self.returns, self.focus)


@dataclass(frozen=True, slots=True, eq=False)
class CountingTables:
    """Lookup tables and counters of the compiled counting loop.

    The loop reads the fields by name (engine/fields.h).

    Tables have a cell for each joint state of all n variables. The engine fills and reads private copies of them; it
    writes only to ``visits`` and ``returns``.

    Attributes:
        odds: [n, 2^n], the odds of state 0 against state 1 of each variable; the variable's state in the joint state is
            ignored.
        p: [n, 2^n], the probability of state 1 of each variable, times 2^32.
        keys: [n, 2^n], the key of each variable's herding weight; with random bins the lower of two keys.
        upper: With random bins: [n, 2^n], the probability of the upper key, times 2^32.
        aims: With random bins: [bins + 1], the value of ``p`` that belongs to each key.
        focus: The variable whose update ends a sweep; states are counted after this update.
        visits: [2, 2^n], number of samples of each joint state; row 1 counts samples that used the upper of two keys.
        returns: [2, 2^n], number of samples of each joint state, by the state of the focus when the group of the joint
            state last occurred.
        groups: int32[2^n], the group of each joint state, which is the same for both states of the focus.
        last: int8[groups], the state of the focus when each group last occurred, or -1.
    """

    odds: Floats
    p: Int64s
    keys: Int64s
    upper: Floats
    aims: Int64s
    focus: int
    visits: NDArray[np.uint64]
    returns: NDArray[np.uint64]
    groups: Int32s
    last: NDArray[np.int8]

    @classmethod
    def of(cls, n: int, plan: Plan, focus: int, groups: Int32s) -> CountingTables:
        """Allocate the tables and counters of the compiled counting loop.

        Args:
            n: Number of binary variables.
            plan: The sampler, for its number of bins.
            focus: The variable whose update ends a sweep.
            groups: int32[2^n], the group of each joint state.

        Returns:
            The tables and counters, which the loop fills.
        """
        bins = plan.sharing.n_bins if plan.sharing is not None else 1
        return cls(
            odds=np.empty((n, 2**n)),
            p=np.empty((n, 2**n), np.int64),
            keys=np.empty((n, 2**n), np.int64),
            upper=np.empty((n, 2**n)),
            aims=np.empty(bins + 1, np.int64),
            focus=focus,
            visits=np.zeros((2, 2**n), np.uint64),
            returns=np.zeros((2, 2**n), np.uint64),
            groups=groups,
            last=np.full(int(groups.max()) + 1, -1, np.int8),
        )


def count_visits(
    graph: Graph,
    plan: Gibbs,
    lengths: Sequence[int],
    variable: int = -1,
    seed: Seed = None,
    *,
    sharing: Sharing | None = None,
    start: ArrayLike | None = None,
) -> VisitCounts:
    """Run a sampler once, and count how often it visits each joint state.

    Each sweep updates all variables in order, starting after ``variable``, so that states are counted right after the
    update of ``variable``. The scan, number of sweeps, record, and number of chains of the plan are ignored. Binary
    graphs of 8 variables take about 5 ns per update. For graphs with other variables, all states are recorded (at most
    2^27 values).

    Args:
        graph: A small graph.
        plan: The sampler, without annealing.
        lengths: Increasing numbers of sweeps after which to count. The last is the length of the run.
        variable: Index of X; -1 is the last variable.
        seed: As in `Gibbs.infer`, which draws the same samples for the same seed.
        sharing: Weight sharing that groups the samples; by default the sharing of the plan, or `blanket_sharing` if the
            plan does not herd.
        start: As in `Gibbs.infer`.

    Returns:
        The counts after each length.

    Raises:
        ValueError: The graph is too large, the plan anneals, or an argument is out of range.
    """
    compiled, ends = compile_tables(graph), [int(n) for n in lengths]
    n, focus_of = _check_arguments(compiled, plan, ends, variable)
    own = plan.sharing if plan.herds else None
    is_random = own is not None and own.kind == "random-bins"
    if is_random and sharing is not None and sharing != own:
        raise ValueError(
            f"`sharing` must be omitted if the plan has sharing={own}, because the samples are grouped by these random"
            f" bins; got {sharing}"
        )
    if not is_random and sharing is not None and sharing.kind == "random-bins":
        raise ValueError(
            f"`sharing` can be {sharing} only if the plan has random bins, but the plan has sharing={own}; omit"
            " `sharing`"
        )
    if (compiled.sizes != 2).any():
        focus = focus_of_recorded(compiled, plan, sharing or own or blanket_sharing(), focus_of)
        result = count_recorded(compiled, _plan_for_counting(plan, ends[-1], focus_of, n), ends, focus, seed, start)
        return VisitCounts(focus, tuple(ends), *result)
    focus, groups = _focus(compiled, plan, own if sharing is None else sharing, focus_of)
    plan = _plan_for_counting(plan, ends[-1], focus_of, n)
    first = None if start is None else check_start(compiled, start)
    (run,) = begin_runs(Setup.of(plan, compiled), generator(seed), first)
    tables = CountingTables.of(n, plan, focus_of, groups)
    run.engine.fill_counting_tables(tables)
    snapshots: list[list[NDArray[np.uint64]]] = []
    done, n_layers, cells = 0, 2 if is_random else 1, (2,) * n
    for end in ends:
        while done < end:
            done = _advance(run, done, min(end, done + _PIECE))
        snapshots.append([by_other_states(row.reshape(cells), focus_of).copy() for row in tables.visits[:n_layers]])
    returns = np.stack([by_other_states(row.reshape(cells), focus_of).sum(axis=1) for row in tables.returns])
    return VisitCounts(focus, tuple(ends), np.array(snapshots), returns)


def focus_variable(graph: Graph, sharing: Sharing | None = None, variable: int = -1) -> Focus:
    """Return the joint distribution of a small graph, and the herding weights of one of its variables.

    Args:
        graph: A small graph.
        sharing: Weight sharing; by default `blanket_sharing`.
        variable: X; -1 is the last variable.

    Raises:
        ValueError: The graph is too large, or the variable does not exist.
    """
    compiled = compile_tables(graph)
    _, of = _check_arguments(compiled, Gibbs(), [1], variable)
    if (compiled.sizes != 2).any():
        return focus_of_recorded(compiled, Gibbs(), sharing or blanket_sharing(), of)
    return _focus(compiled, Gibbs(), sharing, of)[0]


def _check_arguments(compiled: TableGraph, plan: Gibbs, lengths: list[int], variable: int) -> tuple[int, int]:
    """Check the arguments of `count_visits`; return the number of variables, and the index of ``variable``."""
    n = len(compiled.sizes)
    if not 1 <= n <= loops.COUNTED_LIMIT and not (compiled.sizes != 2).any():
        raise ValueError(f"counting visits needs a graph of 1 to {loops.COUNTED_LIMIT} binary variables, got {n}")
    if plan.annealing is not None:
        raise ValueError(
            "count_visits compares samples with the distribution of the graph, which annealing changes; omit annealing"
        )
    if not lengths or lengths[0] < 1 or any(b <= a for a, b in pairwise(lengths)):
        raise ValueError(f"`lengths` must be increasing numbers of sweeps of at least 1, got {lengths}")
    check_variables(np.array([variable if variable >= 0 else variable + n]), n)
    return n, variable % n


def _plan_for_counting(plan: Gibbs, n_sweeps: int, last: int, n: int) -> Gibbs:
    """Return a copy of ``plan`` that records nothing and whose sweeps end with the update of variable ``last``."""
    order = [(last + 1 + k) % n for k in range(n)]
    scan = plan.scan if plan.scan.kind == "systematic" and last == n - 1 else fixed_scan(order)
    return replace(plan, n_sweeps=n_sweeps, burn_in=0, scan=scan, n_chains=1, n_threads=None, record=_NOTHING)


def _focus(compiled: TableGraph, plan: Gibbs, sharing: Sharing | None, variable: int) -> tuple[Focus, Int32s]:
    """Return the herding weights of ``variable``, and the index of the weight for each joint state, int32[2^V]."""
    n = len(compiled.sizes)
    sharing = blanket_sharing() if sharing is None else sharing
    dummies = plan.dummy_edges if sharing.kind == "blanket" else None
    herded = Gibbs(sharing=sharing, dummy_edges=dummies, record=_NOTHING)
    (run,) = begin_runs(Setup.of(herded, compiled), np.random.default_rng(0), None)
    tables = CountingTables.of(n, herded, variable, np.zeros(1, np.int32))
    keys = run.engine.fill_counting_tables(tables)
    by_z = by_other_states(keys[variable].reshape((2,) * n), variable)[:, 0]
    result = Focus.of(joint_distribution(compiled), variable, by_z, sharing)
    groups = np.empty((2,) * n, np.int32)
    np.moveaxis(groups, variable, -1)[...] = result.keys[0].reshape((2,) * (n - 1))[..., None]
    return result, groups.ravel()


def _advance(run: Run, done: int, end: int) -> int:
    """Run the sweeps ``done`` to ``end - 1`` of a sampler, count the visited states, and return ``end``."""
    if run.driver is not None:
        steps = run.setup.n_steps
        run.engine.set_uniforms(run.driver(done * steps, end * steps), done * steps)
    run.check(*run.engine.count_states(done, end))
    return end
