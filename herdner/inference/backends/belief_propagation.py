"""Loopy sum-product for factors of any arity."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.seeds import Seed
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities
from herdner.inference.backends.sweeps import check_options
from herdner.inference.elimination_order import reduce_graph
from herdner.inference.factor_messages import FactorMessages
from herdner.inference.gibbs.start import repair
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class BeliefPropagation:
    """Loopy belief propagation for factors of any arity.

    Each sweep updates all messages simultaneously, in the log domain.

    The result is exact on trees. Impossible states (-inf entries) are removed first. `SumProduct` is faster on graphs
    whose factors have at most two variables.

    Attributes:
        n_sweeps: Largest number of sweeps.
        tolerance: Messages have converged if no marginal probability changes by more than this in an undamped sweep.
        damping: Weight of a new message against the previous one, in the log domain; 1 is undamped.
        seconds: Time in seconds after which no sweep begins; None is unlimited.
    """

    n_sweeps: int = 1000
    tolerance: float = 1e-6
    damping: float = 0.5
    seconds: float | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError(f"seconds must be a positive number or None, got {self.seconds!r}")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Run belief propagation on one graph until the messages converge, and return the result.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Ignored.
            start: Ignored.
            record: Checked only; the state and the marginals are always computed.

        Returns:
            The approximate marginals, log_z by the Bethe approximation, and the most probable state of each variable.
            If -inf entries forbid this joint state, it is repaired.

        Raises:
            ImpossibleGraph: Arc consistency or the repair shows that -inf entries forbid every joint state.
            UnsupportedRecord: ``record`` has fields other than best and marginals.
        """
        self.capabilities.require(record, "belief-propagation")
        return self.propagate(compile_tables(graph))[0]

    def propagate(self, compiled: TableGraph) -> tuple[Result, bool]:
        """Run belief propagation on a compiled graph until the messages converge, and return the result.

        Args:
            compiled: The graph.

        Returns:
            The result, and whether the messages have converged.

        Raises:
            ImpossibleGraph: Entries of -inf forbid every joint state, as in `infer`.
        """
        began = perf_counter()
        reduced = reduce_graph(compiled.sizes, compiled.factors)
        messages = FactorMessages(reduced, self.damping)
        change = np.inf
        for _ in range(self.n_sweeps):
            change = messages.sweep()
            if change <= self.tolerance * self.damping:
                break
            if self.seconds is not None and perf_counter() - began > self.seconds:
                break
        marginals = reduced.original_marginals(messages.beliefs(), compiled.sizes)
        state = marginals.argmax(axis=1).astype(np.int32)
        log_potential = float(compiled.graph.log_potential(state))
        if log_potential == -np.inf:
            state = repair(compiled, state, 0, "belief-propagation")
            log_potential = float(compiled.graph.log_potential(state))
        result = Result(
            state=state, log_potential=log_potential, log_z=messages.log_z(), marginals=marginals,
            seconds=perf_counter() - began,
        )  # fmt: skip
        return result, change <= self.tolerance * self.damping
