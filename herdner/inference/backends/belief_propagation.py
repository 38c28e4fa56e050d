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
from herdner.inference.elimination import reduce_graph
from herdner.inference.factor_messages import FactorMessages
from herdner.inference.gibbs.start import repair
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class BeliefPropagation:
    """Loopy belief propagation with factors of any arity: all messages change at once, in the log domain.

    Exact on trees. Impossible states are removed before. `SumProduct` is faster on pairs of variables.

    Attributes:
        n_sweeps: Largest number of sweeps.
        tolerance: Largest change of a probability that counts as convergence.
        damping: Weight of a new message in the log domain; 1 is undamped.
        seconds: Time after which no sweep begins; None is unlimited.
    """

    n_sweeps: int = 1000
    tolerance: float = 1e-6
    damping: float = 0.5
    seconds: float | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Pass messages until they converge.

        Args:
            graph: Any graph of discrete variables and tables.
            seed: Ignored.
            start: Ignored.
            record: Contents of the result; marginals are always computed.

        Returns:
            Marginals are beliefs, log_z is the Bethe approximation. The state has the largest beliefs, repaired if -inf
            entries forbid it.

        Raises:
            ImpossibleGraph: Entries of -inf forbid every joint state, as far as arc consistency shows.
            UnsupportedRecord: ``record`` asks for more than marginals.
        """
        self.capabilities.require(record, "belief-propagation")
        return self.propagate(compile_tables(graph))[0]

    def propagate(self, compiled: TableGraph) -> tuple[Result, bool]:
        """Return the result, and whether the messages have converged."""
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
        beliefs = messages.beliefs()
        sizes = compiled.sizes
        marginals = np.zeros((len(sizes), int(sizes.max(initial=1))))
        for v, possible in enumerate(reduced.states):
            marginals[v, possible[0]] = 1.0
        for column, v in enumerate(reduced.variables.tolist()):
            marginals[v, reduced.states[v]] = beliefs[column, : len(reduced.states[v])]
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
