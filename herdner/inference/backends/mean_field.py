"""Naive mean field: the independent distributions that bound log Z best."""

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
from herdner.graph.chains import unary_table
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, Interrupted
from herdner.inference.backends.sweeps import check_options, check_room, constant
from herdner.inference.gibbs.start import given_start, repaired
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class MeanField:
    """Mean field with damping: independent distributions, and a lower bound of log Z.

    Sequential updates in the order of the variables (Murphy 2012, Sec. 21.3; HG16 Table 2), q_i <- (1 - damping) q_i +
    damping * its best distribution given the others; ``damping`` = 1 is undamped. Any factors of any numbers of labels.
    Stops after ``n_sweeps``, or when in a sweep no probability is more than ``tolerance`` from its best value.

    The bound never falls, with damping neither. 0 * -inf counts as 0 in it, so it is -inf as long as q gives any
    forbidden state a probability; an update gives 0 at once to labels whose expected log-potential is -inf, whatever
    the damping. Where that leaves a variable no label, -inf is taken as the limit of one large penalty per
    entry: the labels which meet the least probability of forbidden entries share the variable, by their finite parts.
    With hard constraints q can only hold a product of allowed labels, so that samplers are better there.

    Attributes:
        start: "unary", the distributions under the unary factors alone; "uniform", over the labels that they allow;
            "random", a distribution over these drawn for each variable, which breaks symmetries.
    """

    damping: float = 1.0
    n_sweeps: int = 100
    tolerance: float = 1e-6
    start: Literal["unary", "uniform", "random"] = "unary"
    trace: bool = True

    capabilities: ClassVar[Capabilities] = Capabilities("option", frozenset({"marginals", "trace"}))

    def __post_init__(self) -> None:
        check_options(n_sweeps=self.n_sweeps, tolerance=self.tolerance, damping=self.damping)
        if self.start not in ("unary", "uniform", "random"):
            raise ValueError(f"start must be 'unary', 'uniform' or 'random', not {self.start!r}")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Time of a sweep O(cells of all tables + labels). ``seed`` matters to the random start only.

        marginals: q; state: their modes, ties to the smallest label, or, if -inf entries forbid these, a repaired one;
        log_z: the bound; trace [1, n_sweeps]: the bound after each sweep, unless ``trace`` is false, which saves a
        third to a half of the time.

        Args:
            start: int[V], a state of log-potential above -inf that q is certain of at first; None is the option's.

        Raises:
            ImpossibleGraph: The graph is chains, and -inf entries forbid every state.
            UnsupportedGraph: No allowed state was found in any other graph.
        """
        began = perf_counter()
        self.capabilities.check("mean-field", record)
        trace = self.trace if record is None else record.trace
        compiled = compile_tables(graph)
        check_room(compiled, "mean-field", 4, 0)
        fixed, conditionals = constant(compiled), compiled.conditionals
        q = self._start(compiled, seed) if start is None else _certain(compiled, start)
        loop = loops.MeanField(conditionals, q, self.damping)
        n, n_updates, stopped = len(q), 0, False
        bounds: list[float] = []
        try:
            for _ in range(self.n_sweeps):
                at = 0
                while at < n:
                    at = loop.sweep(at)
                n_updates += n
                if trace:
                    bounds.append(fixed + lower_bound(compiled, q))
                if loop.change <= self.tolerance:
                    break
        except KeyboardInterrupt:
            stopped = True
        state = q.argmax(axis=1).astype(np.int32)
        if compiled.graph.log_potential(state) == -np.inf:
            state = repaired(compiled, state, 0, "mean-field")
        result = Result(
            state=state,
            log_potential=float(compiled.graph.log_potential(state)),
            log_z=bounds[-1] if bounds and not stopped else fixed + lower_bound(compiled, q),
            marginals=q,
            trace=np.array([bounds]) if trace else None,
            n_updates=n_updates,
            seconds=perf_counter() - began,
        )
        if stopped:
            raise Interrupted(result)
        return result

    def _start(self, compiled: TableGraph, seed: Seed) -> Floats:
        unary = unary_table(compiled.sizes, compiled.factors)
        if self.start == "unary":
            q = np.exp(unary - unary.max(axis=1, keepdims=True))
        elif self.start == "uniform":
            q = (unary > -np.inf).astype(np.float64)
        else:
            q = np.where(unary > -np.inf, generator(seed).exponential(size=unary.shape), 0.0)
        return q / q.sum(axis=1, keepdims=True)


def _certain(compiled: TableGraph, start: ArrayLike) -> Floats:
    """[V, K]: probability 1 for the labels of a state."""
    state = given_start(compiled, start)
    q = np.zeros((len(state), compiled.n_states))
    q[np.arange(len(state)), state] = 1.0
    return q


def lower_bound(compiled: TableGraph, q: Floats) -> float:
    """The expected log-potential under independent distributions ``q`` [V, K] plus their entropy, constants left out:
    never above log Z (Murphy 2012, eq. 21.24). Labels that a variable has not must have probability 0.
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
