"""Iterated conditional modes."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext.ascent import Ascent
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.seeds import Seed, generator
from herdner.graph.chains import unary_table
from herdner.graph.conditionals import Conditionals
from herdner.graph.tables import Graph, compile_tables
from herdner.inference.backend import Capabilities, Interrupted
from herdner.inference.backends.sweeps import check_options, constant
from herdner.inference.gibbs.start import given_start, repaired
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class ICM:
    """Iterated conditional modes: from a start uphill, each variable in turn taking its best label given the others.

    Besag 1986, Sec. 2.5. Any factors of any numbers of labels. The log-potential never falls. A run stops when a
    sweep changes nothing, at a state that no change of a single variable makes better, or after ``n_sweeps``. A
    variable keeps its label where that is as good as any; otherwise ties go to the smallest label.

    Starts that -inf entries of other than unary factors forbid are first moved to a state nearby that is allowed.

    Attributes:
        n_sweeps: At most, of each run.
        n_starts: So many runs are made and the best state returned.
        start: "unary", the first of them starts at each variable's best label under its unary factors; "random", it
            starts like all others at labels drawn uniformly from those that the unary factors allow.
    """

    n_sweeps: int = 1000
    n_starts: int = 1
    start: Literal["unary", "random"] = "unary"

    capabilities: ClassVar[Capabilities] = Capabilities("option", frozenset({"trace"}))

    def __post_init__(self) -> None:
        check_options(n_sweeps=self.n_sweeps, n_starts=self.n_starts)
        if self.start not in ("unary", "random"):
            raise ValueError(f"start must be 'unary' or 'random', not {self.start!r}")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Time of a sweep O(factors x labels). ``seed`` matters to random starts only.

        trace [n_starts, n_sweeps]: the log-potential after each sweep, constant from where a run has stopped.

        Args:
            start: int[V], where the first run begins, a state of log-potential above -inf; None is the option's.

        Raises:
            UnsupportedGraph: No state that is allowed was found to start from.
        """
        began = perf_counter()
        self.capabilities.check("icm", record)
        compiled = compile_tables(graph)
        constant(compiled)
        unary = unary_table(compiled.sizes, compiled.factors)
        conditionals = compiled.conditionals
        first = None if start is None else given_start(compiled, start).astype(np.int32)
        rng, best, top = generator(seed), np.empty(0, np.int32), -np.inf
        traces: list[list[float]] = []
        stopped = False
        for run in range(self.n_starts):
            if run == 0 and first is not None:
                state = first
            elif run == 0 and self.start == "unary":
                state = repaired(compiled, unary.argmax(axis=1).astype(np.int32), 0, "icm")
            else:
                drawn = _drawn(unary, rng).astype(np.int32)
                state = repaired(compiled, drawn, int(rng.integers(1 << 63)), "icm")
            traces.append(reached := [float(compiled.graph.log_potential(state))])
            try:
                self._climb(conditionals, state, reached)
            except KeyboardInterrupt:
                stopped = True
            reached[-1] = float(compiled.graph.log_potential(state))
            if reached[-1] > top:
                best, top = state, reached[-1]
            if stopped:
                break
        longest = max(map(len, traces))
        result = Result(
            state=best,
            log_potential=top,
            trace=np.array([np.pad(trace, (0, longest - len(trace)), "edge") for trace in traces])[:, 1:],
            n_updates=len(best) * sum(len(trace) - 1 for trace in traces),
            seconds=perf_counter() - began,
        )
        if stopped:
            raise Interrupted(result)
        return result

    def _climb(self, conditionals: Conditionals, state: Int32s, reached: list[float]) -> None:
        """Moves ``state`` uphill; appends the log-potential after each sweep."""
        loop = Ascent(conditionals, state)
        for _ in range(self.n_sweeps):
            at = 0
            while at < len(state):
                at = loop.climb(at)
            reached.append(reached[-1] + loop.gain)
            if not loop.moved:
                break


def _drawn(unary: Floats, rng: np.random.Generator) -> Int64s:
    """A label for each variable, uniformly from those whose entry of ``unary`` [V, K] is above -inf."""
    return np.where(unary > -np.inf, rng.random(unary.shape), -1.0).argmax(axis=1)
