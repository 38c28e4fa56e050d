"""Naive mean field."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext import mean_field as loops
from herdner.base.arrays import Floats
from herdner.base.seeds import Seed, generator
from herdner.graph.chains import constant_term, unary_table
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, Interrupted
from herdner.inference.backends.sweeps import check_message_memory, check_options
from herdner.inference.gibbs.start import check_start, probable_state
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class MeanField:
    """Naive mean field with damping: it approximates a graph by independent distributions, and bounds log Z from below.

    The variables are updated in their order (Murphy 2012, Sec. 21.3; HG16 Table 2): q_i <- (1 - damping) q_i +
    damping * b_i, where b_i is the best distribution of variable i given the others. Factors have any number of
    variables and states. Inference ends when no probability of q differs from b by more than ``tolerance`` in a sweep,
    or after ``n_sweeps``.

    The bound never decreases, with or without damping. It is -inf while q gives a forbidden joint state a positive
    probability (0 * -inf counts as 0). An update sets the probability of states with an expected log-potential of -inf
    to 0, whatever the damping. If that removes all states of a variable, each entry of -inf is treated as the limit of
    one large penalty. Then only the states with the smallest probability of forbidden entries keep a positive
    probability, which their finite log-potentials determine. Under hard constraints a product distribution covers few
    joint states, so samplers are better.

    Attributes:
        damping: Weight of the best distribution in an update; 1 is undamped.
        n_sweeps: Largest number of sweeps.
        tolerance: Largest distance of a probability from its best value that counts as convergence.
        start: Initial distributions. "unary": those under the unary factors. "uniform": uniform over the states that
            the unary factors allow. "random": drawn at random over the same states, which breaks symmetries.
        trace: Record the bound after each sweep, which takes a third to a half of the run time.
    """

    damping: float = 1.0
    n_sweeps: int = 100
    tolerance: float = 1e-6
    start: Literal["unary", "uniform", "random"] = "unary"
    trace: bool = True

    capabilities: ClassVar[Capabilities] = Capabilities("option", frozenset({"marginals", "trace"}))

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)
        if self.start not in ("unary", "uniform", "random"):
            raise ValueError(f"start must be 'unary', 'uniform' or 'random', not {self.start!r}")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Optimise the distributions of all variables of one graph. A sweep takes time O(cells of all tables + states).

        Args:
            graph: A graph of discrete variables.
            seed: Source of randomness of the random start.
            start: int[V], a joint state with a log-potential above -inf that initially has probability 1; None uses the
                option ``start``.
            record: Results to record; None uses the option ``trace``. Marginals are always recorded.

        Returns:
            q as marginals, the bound as log_z, whether q has converged, and the bound after each sweep as trace
            [1, number of sweeps]. The state is the mode of each variable, the smallest one among ties; if -inf entries
            forbid it, it is repaired.

        Raises:
            ImpossibleGraph: The graph is a set of chains, and -inf entries forbid every joint state.
            UnsupportedGraph: The graph is not a set of chains, and no allowed joint state was reached.
            UnsupportedRecord: ``record`` asks for more than marginals and a trace.
            Interrupted: Ctrl-C interrupted the sweeps.
        """
        began = perf_counter()
        self.capabilities.require(record, "mean-field")
        trace = self.trace if record is None else record.trace
        compiled = compile_tables(graph)
        check_message_memory(compiled, "mean-field", 4, 0)
        constant, conditionals = constant_term(compiled.factors), compiled.conditionals
        q = self._start(compiled, start, seed)
        loop = loops.MeanFieldLoop(conditionals.compiled, q, self.damping)
        n, n_updates, converged, interrupted = len(q), 0, False, False
        bounds: list[float] = []
        try:
            for _ in range(self.n_sweeps):
                at = 0
                while at < n:
                    at = loop.sweep(at)
                n_updates += n
                if trace:
                    bounds.append(constant + lower_bound(compiled, q))
                if loop.change <= self.tolerance:
                    converged = True
                    break
        except KeyboardInterrupt:
            interrupted = True
        state = probable_state(compiled, q, "mean-field")
        result = Result(
            state=state,
            log_potential=float(compiled.graph.log_potential(state)),
            log_z=bounds[-1] if bounds and not interrupted else constant + lower_bound(compiled, q),
            marginals=q,
            trace=np.array([bounds]) if trace else None,
            converged=converged,
            n_updates=n_updates,
            seconds=perf_counter() - began,
        )
        if interrupted:
            raise Interrupted(result)
        return result

    def _start(self, compiled: TableGraph, start: ArrayLike | None, seed: Seed) -> Floats:
        """Return the initial distributions of the variables, float64[V, K]; None uses the option ``start``."""
        if start is not None:
            return np.equal.outer(check_start(compiled, start), np.arange(compiled.n_states)).astype(np.float64)
        unary = unary_table(compiled.sizes, compiled.factors)
        if self.start == "unary":
            q = np.exp(unary - unary.max(axis=1, keepdims=True))
        elif self.start == "uniform":
            q = (unary > -np.inf).astype(np.float64)
        else:
            q = np.where(unary > -np.inf, generator(seed).exponential(size=unary.shape), 0.0)
        return q / q.sum(axis=1, keepdims=True)


def lower_bound(compiled: TableGraph, q: Floats) -> float:
    """Return a lower bound on log Z: the mean log-potential under q plus the entropy of q (Murphy 2012, eq. 21.24).

    Factors without variables are left out.

    Args:
        compiled: The graph.
        q: float64[V, K], independent distributions; states that a variable does not have must have probability 0.
    """
    parts: list[float] = []
    for group in compiled.factors:
        at = 0
        while group.arity and at < len(group):
            part, at = loops.expected(
                q, compiled.sizes, group.scopes, group.table_of_factor, group.scale, group.rows, at
            )
            parts.append(part)
    at = 0
    while at < len(q):
        part, at = loops.entropy(q, compiled.sizes, at)
        parts.append(part)
    return math.fsum(parts)
