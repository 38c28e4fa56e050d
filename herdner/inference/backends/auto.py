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

CELL_SECONDS = 4e-8  # of exact inference, two passes over one table cell
MEMORY_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Auto:
    """Exact inference if the graph allows it within the time, else loopy belief propagation until the time is up.

    The predicted cost decides (`Exact.plan`). Belief propagation damps its messages more and more while they do not
    converge; annealed Gibbs sampling then looks for a better state than the one of the largest beliefs. The choice is
    logged, and `Result.method` names it. Beyond exact inference, results depend on the speed of the machine.

    Attributes:
        seconds: Time that inference may take, approximately.
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
        """Choose a method and run it.

        Args:
            graph: Any graph of discrete variables and tables.
            seed: Seed of the search for a good state.
            start: Ignored.
            record: Contents of the result; None asks for the best state and the marginals.

        Returns:
            The state, log_z, marginals and the method.

        Raises:
            ImpossibleGraph: Entries of -inf forbid every joint state.
            UnsupportedRecord: ``record`` asks for more than marginals.
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
        """Run belief propagation with more and more damping until it converges or three quarters of the time are up."""
        for damping in (0.9, 0.5, 0.25, 0.1, 0.05):
            left = 0.75 * self.seconds - (perf_counter() - began)
            backend = BeliefPropagation(n_sweeps=100_000, tolerance=1e-8, damping=damping, seconds=max(left / 2, 0.01))
            result, has_converged = backend.propagate(compiled)
            if has_converged:
                return result, "belief propagation, converged"
            if left < 0.05 * self.seconds:
                break
        return result, "belief propagation, not converged"

    def _improve(self, compiled: TableGraph, result: Result, seed: Seed, method: str, began: float) -> Result:
        """Search for a state of larger log-potential by annealed Gibbs sampling."""
        n_sweeps, generation = 100, 0
        while perf_counter() - began < 0.9 * self.seconds and n_sweeps < 2**24:
            round_began = perf_counter()
            found = annealed_gibbs(n_sweeps).infer(compiled, generation if seed is None else seed, start=result.state)
            if found.log_potential > result.log_potential:
                result = replace(result, state=found.state, log_potential=found.log_potential)
            if 3 * (perf_counter() - round_began) > self.seconds - (perf_counter() - began):
                break
            n_sweeps, generation = 2 * n_sweeps, generation + 1
        return replace(result, method=method, seconds=perf_counter() - began)
