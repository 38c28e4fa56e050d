"""Tree-reweighted belief propagation: an upper bound on log Z."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.checks import check_integer
from herdner.base.seeds import Seed
from herdner.graph.tables import Graph, compile_tables
from herdner.inference.backend import Capabilities, Interrupted
from herdner.inference.backends.sweeps import check_options, check_seconds
from herdner.inference.elimination_order import ReducedGraph, log_z_margin, reduce_tables
from herdner.inference.factor_messages import FactorLayout, MessagePassing
from herdner.inference.gibbs.start import probable_state
from herdner.inference.record import Record
from herdner.inference.result import Result
from herdner.inference.spanning_forests import ForestDistribution

_ROUNDING = 2.0**-50  # relative widening of the bound for rounding errors, per slot


@dataclass(frozen=True, slots=True)
class TreeReweighted:
    """Tree-reweighted belief propagation: an upper bound on log Z for factors of any arity (Wainwright et al. 2005).

    The graph is written as a mean of spanning forests, each with log-potentials of its own. Since log Z is convex, it
    is at most the mean of the forests' log Z. Message passing minimises this mean. The bound is this mean, with log Z
    computed exactly on every forest. So it also holds for messages that have not converged, but is then larger.

    The first forests contain every factor once or more often. Then each update adds the forest with the largest mutual
    information, which lowers the bound further (Wainwright, Jaakkola and Willsky 2005, Sec. V). The best bound is kept.

    Attributes:
        n_sweeps: Largest number of sweeps for each distribution over forests.
        tolerance: Messages have converged if no message, on a scale from 0 to 1, and no marginal probability changes by
            more than this in an undamped sweep.
        damping: Weight of a new message against the previous one, in the log domain; 1 is undamped.
        n_forests: Number of forests that are added to the initial forests.
        seconds: Time limit in seconds; None is unlimited.
    """

    n_sweeps: int = 1000
    tolerance: float = 1e-6
    damping: float = 0.5
    n_forests: int = 10
    seconds: float | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)
        check_seconds(self.seconds)
        check_integer(self.n_forests, "n_forests", 0, 10_000)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Compute an upper bound on log Z of one graph.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Ignored.
            start: Ignored.
            record: Requested results, which are only checked; the state and the marginals are always computed.

        Returns:
            log_z_bounds, whose lower bound is the log-potential of the state minus a rounding error; log_z if the graph
            is a forest and the messages have converged, because the upper bound is then exact; the marginals that
            belong to the upper bound; the most probable state of each variable, repaired if -inf entries forbid this
            joint state; and whether the messages have converged.

        Raises:
            ImpossibleGraph: Arc consistency or the repair shows that -inf entries forbid every joint state.
            Interrupted: Ctrl-C stopped the sweeps; the bound in the error holds.
            NotEnoughMemory: The tables and messages do not fit into memory.
            UnsupportedRecord: ``record`` has fields other than best and marginals.
        """
        began = perf_counter()
        self.capabilities.require(record, "tree-reweighted")
        compiled = compile_tables(graph)
        reduced = reduce_tables(compiled)
        best, interrupted = self._minimise(reduced, began)
        run = best.run
        marginals = reduced.original_marginals(run.loop.marginals, compiled.sizes)
        state = probable_state(compiled, marginals, "tree-reweighted")
        log_potential, margin = float(compiled.graph.log_potential(state)), log_z_margin(compiled)
        is_forest = bool((run.layout.weights == 1).all())
        result = Result(
            state=state,
            log_potential=log_potential,
            log_z=best.bound if is_forest and run.converged else None,
            log_z_bounds=(log_potential - margin, best.bound + best.rounding + margin),
            marginals=marginals,
            converged=run.converged,
            n_updates=run.n_messages,
            seconds=perf_counter() - began,
        )
        if interrupted:
            raise Interrupted(result)
        return result

    def _minimise(self, reduced: ReducedGraph, began: float) -> tuple[_ForestBound, bool]:
        """Minimise the upper bound on log Z over distributions of spanning forests, by repeated message passing.

        Returns:
            The smallest upper bound, and True if Ctrl-C was pressed.
        """
        forests = ForestDistribution.cover_factors(reduced.scopes, len(reduced.sizes))
        best: _ForestBound | None = None
        for number in range(self.n_forests + 1):
            remaining = math.inf if self.seconds is None else began + self.seconds - perf_counter()
            if best is not None and remaining <= 0:
                break
            layout = FactorLayout.of(reduced, forests.appearance_probabilities())
            seconds = None if self.seconds is None else max(remaining, 0.0)
            run = MessagePassing(layout, self.n_sweeps, self.tolerance, self.damping, "flooding", seconds)
            run.run()
            latest = _forest_bound(run, forests, reduced.constant)
            if best is None or latest.bound < best.bound:
                best = latest
            if run.interrupted or len(forests.forests) == 1:  # a single forest is the whole graph: the bound is exact
                return best, run.interrupted
            information = run.loop.mutual_information()[: len(reduced.scopes)]
            forests = forests.mix_with(forests.heaviest(information), 2 / (number + 4))
        assert best is not None
        return best, False


class _ForestBound(NamedTuple):
    """Upper bound on log Z, and the messages from which it was computed.

    Attributes:
        bound: Upper bound on log Z: the mean of log Z over a distribution of spanning forests.
        rounding: Bound on the rounding error of ``bound``.
        run: The messages.
    """

    bound: float
    rounding: float
    run: MessagePassing


def _forest_bound(run: MessagePassing, forests: ForestDistribution, constant: float) -> _ForestBound:
    """Compute an upper bound on log Z: the mean of log Z over a distribution of spanning forests.

    ``constant`` is the log-potential of all factors without variables.
    """
    layout = run.layout
    isolated = np.arange(sum(len(scope) for scope in forests.scopes), len(layout.scope), dtype=np.int32)
    values = [run.loop.forest_log_z(np.concatenate([forest.receivers, isolated])) for forest in forests.forests]
    tables = np.where(np.isfinite(layout.tables), np.abs(layout.tables), 0.0)
    n_cells = np.multiply.reduceat(layout.sizes[layout.scope].astype(np.int64), layout.factor_at[:-1])
    size = abs(constant) + float(np.maximum.reduceat(tables, np.cumsum(n_cells) - n_cells).sum())
    mean = math.fsum(p * value for p, value in zip(forests.probabilities, values, strict=True))
    rounding = _ROUNDING * (1 + len(layout.scope)) * (1 + size + abs(mean))
    return _ForestBound(constant + mean, rounding, run)
