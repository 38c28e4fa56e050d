"""Counting what a sampler visits on a small graph: by a compiled loop for two labels, else by recorded states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import gibbs as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.checks import check_variables
from herdner.base.seeds import Seed, generator
from herdner.graph.scan import fixed_scan
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.run import Run, begun
from herdner.inference.gibbs.setup import Setup
from herdner.inference.gibbs.sharing import Sharing, blanket_sharing
from herdner.inference.gibbs.start import given_start
from herdner.inference.record import Record
from herdner.studies.convergence.correlation import CorrelationEstimate
from herdner.studies.convergence.errors import ErrorParts
from herdner.studies.convergence.exact import Focus, by_others, joint_distribution
from herdner.studies.convergence.recorded import count_recorded, focus_of_labels

_PIECE = 2**19  # sweeps between looks for Ctrl-C
_NOTHING = Record(best=False, marginals=False)


@dataclass(frozen=True, slots=True, eq=False)
class VisitCounts:
    """What was visited in one run.

    Attributes:
        lengths: [N], the numbers of sweeps after each of which it was counted.
        visits: uint64[N, L, Z, K], samples by the weight that was used, the state of the others, the label of X.
        returns: uint64[K, Z], at the end, by the label that X had got when the same weight y was last used, and the new
            z.
    """

    focus: Focus
    lengths: tuple[int, ...]
    visits: NDArray[np.uint64]
    returns: NDArray[np.uint64]

    @property
    def errors(self) -> list[ErrorParts]:
        """The parts of the error after each length."""
        return [ErrorParts.of(visits, self.focus) for visits in self.visits]

    @property
    def correlation(self) -> CorrelationEstimate:
        """HGW19's estimate of what D^cor comes to, from the returns of these samples: those of a long Gibbs run.

        Raises:
            ValueError: The sharing is bins, whose weights see several probabilities, or there are more than two labels.
        """
        return CorrelationEstimate.of_returns(self.returns, self.focus)


@dataclass(frozen=True, slots=True, eq=False)
class CountingTables:
    """What the compiled loop of counting looks up by the state of all n variables, and what it counts; the engine reads
    and writes these by name (engine/fields.h).

    Attributes:
        odds: [n, 2^n], of each variable, whatever its own label in the state: the odds of label 0 against label 1.
        p: [n, 2^n], the probability of label 1 in 2^-32.
        keys: [n, 2^n], the key of its herding weight (of random bins the lower one).
        upper: Random bins: [n, 2^n], the chance of the upper key in 2^-32.
        aims: Random bins: [bins + 1], the p of each key.
        focus: The variable after whose update, the last of a sweep, states are counted.
        visits: [2, 2^n], samples of a state; row 1: those that used the upper one of two keys.
        returns: [2, 2^n], samples of a state by the label of the focus when its group was last met.
        groups: int32[2^n], the group of a state, whatever the focus's own label.
        last: int8[groups], that label, or -1.
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
    """Runs ``plan`` once for as many sweeps as the longest of the rising ``lengths`` says, and counts all it visits.

    Each sweep goes through all variables in their order, beginning after ``variable``, so that the state is taken right
    after the update of ``variable``. The scan, the sweeps, the records and the chains of the plan are not used;
    annealing is refused. Takes about 5 ns for each update of 8 variables of two labels. With more labels somewhere,
    where the definitions of HGW19 Sec. 4.3 hold as well, all states are kept (at most 2^27 labels).

    Args:
        variable: X; -1 is the last.
        seed: As for `Gibbs.infer`, to whose samples these are equal.
        sharing: Whose weights y the samples are grouped by, by default those of the plan, and the blanket where it has
            none, as Gibbs.
        start: As for `Gibbs.infer`.

    Raises:
        ValueError: Something does not fit.
    """
    compiled, ends = compile_tables(graph), [int(n) for n in lengths]
    n, focus_of = _checked(compiled, plan, ends, variable)
    own = plan.sharing if plan.herds else None
    drawn = own is not None and own.kind == "random-bins"
    if drawn and sharing is not None and sharing != own:
        raise ValueError("samples by random bins are grouped by these; leave sharing out")
    if not drawn and sharing is not None and sharing.kind == "random-bins":
        raise ValueError("only samples by random bins can be grouped by them; give another sharing")
    if (compiled.sizes != 2).any():
        labelled = focus_of_labels(compiled, plan, sharing or own or blanket_sharing(), focus_of)
        found = count_recorded(compiled, _bare(plan, ends[-1], focus_of, n), ends, labelled, seed, start)
        return VisitCounts(labelled, tuple(ends), *found)
    focus, groups = _focus(compiled, plan, own if sharing is None else sharing, focus_of)
    plan = _bare(plan, ends[-1], focus_of, n)
    first = None if start is None else given_start(compiled, start)
    (run,) = begun(Setup.of(plan, compiled), generator(seed), first)
    tables = CountingTables.of(n, plan, focus_of, groups)
    run.engine.fill_counting_tables(tables)
    taken: list[list[NDArray[np.uint64]]] = []
    done, n_layers = 0, 2 if drawn else 1
    for end in ends:
        while done < end:
            done = _advance(run, done, min(end, done + _PIECE))
        taken.append([by_others(layer.reshape((2,) * n), focus_of).copy() for layer in tables.visits[:n_layers]])
    met = np.stack([by_others(row.reshape((2,) * n), focus_of).sum(axis=1) for row in tables.returns])
    return VisitCounts(focus, tuple(ends), np.array(taken), met)


def focus_variable(graph: Graph, sharing: Sharing | None = None, variable: int = -1) -> Focus:
    """One variable of a small graph, its other states and the weights of a sharing, by default the blanket's."""
    compiled = compile_tables(graph)
    _, of = _checked(compiled, Gibbs(), [1], variable)
    if (compiled.sizes != 2).any():
        return focus_of_labels(compiled, Gibbs(), sharing or blanket_sharing(), of)
    return _focus(compiled, Gibbs(), sharing, of)[0]


def _checked(compiled: TableGraph, plan: Gibbs, lengths: list[int], variable: int) -> tuple[int, int]:
    """The number of variables and which one -1, .. is, where the graph and the plan can be counted."""
    n = len(compiled.sizes)
    if not 1 <= n <= loops.COUNTED_LIMIT and not (compiled.sizes != 2).any():
        raise ValueError(f"counting takes graphs of 1 to {loops.COUNTED_LIMIT} variables of two labels, not of {n}")
    if plan.annealing is not None:
        raise ValueError("counting compares with the graph's own distribution; leave annealing out")
    if not lengths or lengths[0] < 1 or any(b <= a for a, b in pairwise(lengths)):
        raise ValueError(f"lengths must be rising numbers of sweeps of at least 1, not {lengths}")
    check_variables(np.array([variable if variable >= 0 else variable + n]), n)
    return n, variable % n


def _bare(plan: Gibbs, n_sweeps: int, last: int, n: int) -> Gibbs:
    """The plan with nothing recorded, whose sweeps end with variable ``last``."""
    order = [(last + 1 + k) % n for k in range(n)]
    scan = plan.scan if plan.scan.kind == "systematic" and last == n - 1 else fixed_scan(order)
    return replace(plan, n_sweeps=n_sweeps, burn_in=0, scan=scan, n_chains=1, n_threads=None, record=_NOTHING)


def _focus(compiled: TableGraph, plan: Gibbs, sharing: Sharing | None, variable: int) -> tuple[Focus, Int32s]:
    """The focus, and the group int32[2^V] of each state."""
    n = len(compiled.sizes)
    sharing = blanket_sharing() if sharing is None else sharing
    dummies = plan.dummy_edges if sharing.kind == "blanket" else None
    herded = Gibbs(sharing=sharing, dummy_edges=dummies, record=_NOTHING)
    (run,) = begun(Setup.of(herded, compiled), np.random.default_rng(0), None)
    tables = CountingTables.of(n, herded, variable, np.zeros(1, np.int32))
    run.engine.fill_counting_tables(tables)
    by_z = by_others(tables.keys[variable].reshape((2,) * n), variable)[:, 0]
    found = Focus.of(joint_distribution(compiled), variable, by_z, sharing)
    groups = np.empty((2,) * n, np.int32)
    np.moveaxis(groups, variable, -1)[...] = found.keys[0].reshape((2,) * (n - 1))[..., None]
    return found, groups.ravel()


def _advance(run: Run, done: int, end: int) -> int:
    """Counts sweeps ``done`` to ``end`` - 1."""
    if run.driver is not None:
        steps = run.setup.n_steps
        run.engine.set_uniforms(run.driver(done * steps, end * steps), done * steps)
    run.check(*run.engine.count_states(done, end))
    return end
