"""A backend that chooses between exact inference and belief propagation."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

from numpy.typing import ArrayLike

from herdner.base.memory import free_memory
from herdner.base.seeds import Seed
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities
from herdner.inference.backends.belief_propagation import BeliefPropagation
from herdner.inference.backends.exact import Exact
from herdner.inference.backends.gibbs import annealed_gibbs
from herdner.inference.record import Record
from herdner.inference.result import Result

logger = logging.getLogger(__name__)

CELL_SECONDS = 4e-8  # time of exact inference per table cell, for both passes
MEMORY_SHARE = 0.8  # largest part of the free memory that exact inference may use


@dataclass(frozen=True, slots=True)
class Auto:
    """Backend that chooses exact inference if its predicted time is short, else belief propagation within a time limit.

    The prediction is the cost from `Exact.plan`. Belief propagation starts again with more damping as long as it does
    not converge. Annealed Gibbs sampling then searches for a state of larger log-potential. The chosen method is logged
    and stored in `Result.method`. Only exact results are independent of the speed of the machine.

    Attributes:
        seconds: Approximate time limit in seconds.
    """

    seconds: float = 60.0

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` unless ``seconds`` is positive."""
        if not 0 < self.seconds < float("inf"):
            raise ValueError(f"seconds must be a positive number, got {self.seconds!r}")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Choose exact inference or belief propagation, run it on one graph, and return its result.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Seed of annealed Gibbs sampling.
            start: Ignored.
            record: Contents of the result; None is the best state and the marginals.

        Returns:
            The state, log_z, the marginals and the name of the method.

        Raises:
            ImpossibleGraph: Entries of -inf forbid every joint state.
            UnsupportedRecord: ``record`` has fields other than best and marginals.
        """
        began = perf_counter()
        self.capabilities.require(record, "auto")
        compiled = compile_tables(graph)
        exact = Exact()
        plan = exact.plan(compiled)
        wanted = Record() if record is None else record
        fits = plan.n_bytes < MEMORY_SHARE * free_memory()
        if fits and plan.log2_cells < 60 and 2.0**plan.log2_cells * CELL_SECONDS < self.seconds:
            logger.info("auto: exact inference, 2^%.1f table cells, width %d", plan.log2_cells, plan.width)
            return replace(exact.infer(compiled, seed, record=wanted), method="exact")
        logger.info("auto: exact inference would take 2^%.1f table cells; belief propagation instead", plan.log2_cells)
        result, method = self._propagate(compiled, began)
        return self._improve(compiled, result, seed, method, began)

    def _propagate(self, compiled: TableGraph, began: float) -> tuple[Result, str]:
        """Run belief propagation with increasing damping until it converges or 3/4 of the time limit has passed.

        Returns:
            The result of the last run, and the name of the method.
        """
        for damping in (0.9, 0.5, 0.25, 0.1, 0.05):
            remaining = 0.75 * self.seconds - (perf_counter() - began)
            backend = BeliefPropagation(100_000, tolerance=1e-8, damping=damping, seconds=max(remaining / 2, 0.01))
            result, has_converged = backend.propagate(compiled)
            if has_converged:
                return result, "belief propagation, converged"
            if remaining < 0.05 * self.seconds:
                break
        return result, "belief propagation, not converged"

    def _improve(self, compiled: TableGraph, result: Result, seed: Seed, method: str, began: float) -> Result:
        """Search for a state of larger log-potential by annealed Gibbs sampling; double the sweeps after each round."""
        n_sweeps, generation = 100, 0
        while perf_counter() - began < 0.9 * self.seconds and n_sweeps < 2**24:
            round_began = perf_counter()
            sample = annealed_gibbs(n_sweeps).infer(compiled, generation if seed is None else seed, start=result.state)
            if sample.log_potential > result.log_potential:
                result = replace(result, state=sample.state, log_potential=sample.log_potential)
            if 3 * (perf_counter() - round_began) > self.seconds - (perf_counter() - began):
                break
            n_sweeps, generation = 2 * n_sweeps, generation + 1
        return replace(result, method=method, seconds=perf_counter() - began)
