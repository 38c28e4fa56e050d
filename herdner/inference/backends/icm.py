"""Iterated conditional modes."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext.ascent import Ascent
from herdner.base.arrays import Int32s
from herdner.base.seeds import Seed, generator
from herdner.graph.chains import constant_term, unary_table
from herdner.graph.conditionals import Conditionals
from herdner.graph.tables import Graph, compile_tables
from herdner.inference.backend import Capabilities, Interrupted
from herdner.inference.backends.sweeps import check_options
from herdner.inference.gibbs.start import check_start, repair
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class ICM:
    """Iterated conditional modes (ICM): each variable in turn is set to its best state, given all other variables.

    See Besag 1986, Sec. 2.5. Factors have any number of variables and states. The log-potential never decreases. A run
    ends when a sweep changes no variable, or after ``n_sweeps``. A variable keeps its state if no other state is
    better; among several better states of equal log-potential it takes the smallest. A start that -inf entries forbid
    is first repaired to an allowed state near it.

    Attributes:
        n_sweeps: Largest number of sweeps of each run.
        n_starts: Number of runs; the result holds the best state of all runs.
        start: Start of the first run: "unary" is each variable's best state under its unary factors; "random" draws
            each state uniformly from the states that the unary factors allow. Further runs always start at random
            states.
    """

    n_sweeps: int = 1000
    n_starts: int = 1
    start: Literal["unary", "random"] = "unary"

    capabilities: ClassVar[Capabilities] = Capabilities("option", frozenset({"trace"}))

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        check_options(n_sweeps=self.n_sweeps, n_starts=self.n_starts)
        if self.start not in ("unary", "random"):
            raise ValueError(f"start must be 'unary' or 'random', not {self.start!r}")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Run ICM on one graph from one or more start states; a sweep takes time O(factors x states).

        Args:
            graph: A graph of discrete variables.
            seed: Source of randomness of random starts.
            start: int[V], the start of the first run, with a log-potential above -inf; None uses the option ``start``.
            record: Requested results, which are only checked; a trace is always recorded.

        Returns:
            The best state, and as trace [n_starts, number of sweeps of the longest run] the log-potential after each
            sweep. The trace of a shorter run repeats its last value.

        Raises:
            UnsupportedGraph: No allowed start was reached.
            UnsupportedRecord: ``record`` asks for more than a trace.
            ImpossibleGraph: Entries of -inf forbid all states of a variable.
            Interrupted: Ctrl-C interrupted the sweeps.
        """
        began = perf_counter()
        self.capabilities.require(record, "icm")
        compiled = compile_tables(graph)
        constant_term(compiled.factors)  # raises ImpossibleGraph if it is -inf
        unary = unary_table(compiled.sizes, compiled.factors)
        conditionals = compiled.conditionals
        first = None if start is None else check_start(compiled, start).astype(np.int32)
        rng, best, top = generator(seed), np.empty(0, np.int32), -np.inf
        traces: list[list[float]] = []
        interrupted = False
        for run in range(self.n_starts):
            if run == 0 and first is not None:
                state = first
            elif run == 0 and self.start == "unary":
                state = repair(compiled, unary.argmax(axis=1).astype(np.int32), 0, "icm")
            else:
                # uniformly from the states with a unary log-potential above -inf
                drawn = np.where(unary > -np.inf, rng.random(unary.shape), -1.0).argmax(axis=1).astype(np.int32)
                state = repair(compiled, drawn, int(rng.integers(1 << 63)), "icm")
            traces.append(trace := [float(compiled.graph.log_potential(state))])
            try:
                self._climb(conditionals, state, trace)
            except KeyboardInterrupt:
                interrupted = True
            trace[-1] = float(compiled.graph.log_potential(state))
            if trace[-1] > top:
                best, top = state, trace[-1]
            if interrupted:
                break
        longest = max(map(len, traces))
        result = Result(
            state=best,
            log_potential=top,
            trace=np.array([np.pad(trace, (0, longest - len(trace)), "edge") for trace in traces])[:, 1:],
            n_updates=len(best) * sum(len(trace) - 1 for trace in traces),
            seconds=perf_counter() - began,
        )
        if interrupted:
            raise Interrupted(result)
        return result

    def _climb(self, conditionals: Conditionals, state: Int32s, trace: list[float]) -> None:
        """Improve ``state`` in place by sweeps of ICM until no variable changes.

        The log-potential after each sweep is appended to ``trace``.
        """
        loop = Ascent(conditionals.compiled, state)
        try:
            for _ in range(self.n_sweeps):
                at = 0
                while at < len(state):
                    at = loop.climb(at)
                trace.append(trace[-1] + loop.gain)
                if not loop.moved:
                    break
        finally:  # an interrupted climb keeps its state
            state[:] = loop.state
