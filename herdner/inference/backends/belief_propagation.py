"""Loopy sum-product for factors of any arity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

from numpy.typing import ArrayLike

from herdner.base.seeds import Seed
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, Interrupted
from herdner.inference.backends.sweeps import check_options, check_seconds
from herdner.inference.elimination_order import ReducedGraph, reduce_tables
from herdner.inference.factor_messages import FactorLayout, MessagePassing, Schedule
from herdner.inference.gibbs.start import probable_state
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class BeliefPropagation:
    """Loopy belief propagation for factors of any arity.

    The schedule "flooding" updates all messages simultaneously in each sweep, in the log domain. The schedule
    "residual" sends the message that makes the largest change first (Elidan, McGraw and Koller 2006). It estimates the
    change from the messages on which a message depends (Sutton and McCallum 2007), and often converges where flooding
    does not.

    The result is exact on trees. Impossible states (-inf entries) are removed first. `SumProduct` is faster on graphs
    whose factors have at most two variables.

    Attributes:
        n_sweeps: Largest number of sweeps. The residual schedule computes at most as many messages as this number of
            sweeps.
        tolerance: Messages have converged if no message, on a scale from 0 to 1, and no marginal probability changes by
            more than this in an undamped sweep.
        damping: Weight of a new message against the previous one, in the log domain; 1 is undamped.
        schedule: Order of the messages.
        seconds: Time limit in seconds; None is unlimited.
    """

    n_sweeps: int = 1000
    tolerance: float = 1e-6
    damping: float = 1.0
    schedule: Schedule = "residual"
    seconds: float | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)
        if self.schedule not in ("flooding", "residual"):
            raise ValueError(f"schedule must be 'flooding' or 'residual', got {self.schedule!r}")
        check_seconds(self.seconds)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Run belief propagation on one graph until convergence or a limit on sweeps or time, and return the result.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Ignored.
            start: Ignored.
            record: Requested results, which are only checked; the state and the marginals are always computed.

        Returns:
            The approximate marginals, log_z by the Bethe approximation, the most probable state of each variable, and
            whether the messages have converged. If -inf entries forbid this joint state, it is repaired.

        Raises:
            ImpossibleGraph: Arc consistency or the repair shows that -inf entries forbid every joint state.
            Interrupted: Ctrl-C stopped the sweeps.
            NotEnoughMemory: The tables and messages do not fit into memory.
            UnsupportedRecord: ``record`` has fields other than best and marginals.
        """
        began = perf_counter()
        self.capabilities.require(record, "belief-propagation")
        compiled = compile_tables(graph)
        reduced = reduce_tables(compiled)
        layout = FactorLayout.of(reduced)
        run = MessagePassing(layout, self.n_sweeps, self.tolerance, self.damping, self.schedule, self.seconds)
        result = propagate(run, compiled, reduced, "belief-propagation")
        result = replace(result, log_z=reduced.constant + run.loop.log_z(), seconds=perf_counter() - began)
        if run.interrupted:
            raise Interrupted(result)
        return result


def propagate(run: MessagePassing, compiled: TableGraph, reduced: ReducedGraph, backend: str) -> Result:
    """Pass messages, and return the marginals and the most probable state of each variable, repaired if necessary.

    Args:
        run: The messages before the first sweep, by sums or maxima.
        compiled: The graph.
        reduced: The reduced graph of the messages.
        backend: Name of the backend in error messages.

    Returns:
        The result; ``run.interrupted`` is true if Ctrl-C stopped the run.

    Raises:
        ImpossibleGraph: The messages or the repair show that -inf entries forbid every joint state.
        UnsupportedGraph: The repair reached no allowed state.
    """
    run.run()
    marginals = reduced.original_marginals(run.loop.marginals, compiled.sizes)
    state = probable_state(compiled, marginals, backend)
    return Result(
        state=state,
        log_potential=float(compiled.graph.log_potential(state)),
        marginals=marginals,
        converged=run.converged,
        n_updates=run.n_messages,
    )
