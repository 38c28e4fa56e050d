"""A backend that chooses between exact inference, belief propagation and tempered sampling."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.memory import free_memory
from herdner.base.seeds import Seed, generator
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, UnsupportedGraph
from herdner.inference.backends.annealed_importance import AnnealedImportance
from herdner.inference.backends.belief_propagation import BeliefPropagation
from herdner.inference.backends.exact import Exact
from herdner.inference.backends.gibbs import annealed_gibbs
from herdner.inference.backends.tempered import Tempered
from herdner.inference.record import Record
from herdner.inference.result import Result

logger = logging.getLogger(__name__)

CELL_SECONDS = 4e-8  # time of exact inference per table cell, for both passes
MEMORY_SHARE = 0.8  # largest part of the free memory that exact inference may use
_PROPAGATION_SHARE = 0.25  # parts of the time limit
_SEARCH_SHARE = 0.1
_ESTIMATION_SHARE = 0.2
_AGREEMENT = 0.02  # largest difference between chains of which the sampled marginals are preferred


@dataclass(frozen=True, slots=True)
class Auto:
    """Backend that chooses exact inference, tempered sampling or belief propagation, within a time limit.

    Exact inference is chosen if its predicted time and memory suffice; the prediction is the cost from `Exact.plan`.
    Otherwise belief propagation takes up to a quarter of the time; it starts again with more damping as long as it does
    not converge. If it never converges, annealed importance sampling estimates log Z. Annealed Gibbs sampling searches
    for a state of larger log-potential. Tempered sampling takes the rest of the time. Its marginals are the result if
    its chains agree, or if belief propagation does not converge. The chosen method and the reason are logged and stored
    in `Result.method`. Only exact results are independent of the speed of the machine.

    Attributes:
        seconds: Approximate time limit in seconds.
        max_log2_cells: Largest cost of exact inference, as log2 of the number of table cells; 0 excludes exact
            inference on graphs with more than one joint state.
    """

    seconds: float = 60.0
    max_log2_cells: float = 60.0

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        if not 0 < self.seconds < float("inf"):
            raise ValueError(f"seconds must be a positive number, got {self.seconds!r}")
        if not 0 <= self.max_log2_cells <= 60:
            raise ValueError(f"max_log2_cells must be a number from 0 to 60, got {self.max_log2_cells!r}")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Choose an algorithm, run it on one graph, and return its result.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Seed of the samplers.
            start: Ignored.
            record: Contents of the result; None is the best state and the marginals.

        Returns:
            The state, log_z, the marginals, and the name of the method with the reason of the choice.

        Raises:
            ImpossibleGraph: Entries of -inf forbid every joint state.
            UnsupportedGraph: No algorithm reached a joint state that the -inf entries allow.
            UnsupportedRecord: ``record`` has fields other than best and marginals.
        """
        began = perf_counter()
        self.capabilities.require(record, "auto")
        compiled = compile_tables(graph)
        exact = Exact()
        plan = exact.plan(compiled)
        wanted = Record() if record is None else record
        fits = plan.n_bytes < MEMORY_SHARE * free_memory() and plan.log2_cells <= min(self.max_log2_cells, 59.9)
        if fits and 2.0**plan.log2_cells * CELL_SECONDS < self.seconds:
            logger.info("auto: exact inference, 2^%.1f table cells, width %d", plan.log2_cells, plan.width)
            return replace(exact.infer(compiled, seed, record=wanted), method="exact")
        logger.info("auto: exact inference would take 2^%.1f table cells", plan.log2_cells)
        result = self._approximate(compiled, generator(seed), began)
        logger.info("auto: %s", result.method)
        return replace(result, seconds=perf_counter() - began)

    def _approximate(self, compiled: TableGraph, rng: np.random.Generator, began: float) -> Result:
        """Run belief propagation, a search for a better state, and tempered sampling; return the better result."""
        propagated, has_converged, failure = None, False, None
        try:
            propagated, has_converged = self._propagate(compiled)
            propagated = self._search(compiled, propagated, rng, perf_counter() + _SEARCH_SHARE * self.seconds)
        except UnsupportedGraph as error:  # no state that the -inf entries allow: tempered sampling may find one
            failure = error
        estimated = None if has_converged else self._estimate(compiled, rng)
        remaining = max(began + self.seconds - perf_counter(), 0.1 * self.seconds)
        try:
            sampled, disagreement = Tempered(seconds=remaining).sample(compiled, rng)
        except UnsupportedGraph:
            if propagated is None:
                raise failure from None  # type: ignore[misc]
            return replace(
                propagated, method=f"belief propagation, {_convergence_text(has_converged)}; no sample was possible"
            )
        if estimated is not None:
            sampled = replace(sampled, log_z=estimated.log_z, log_z_interval=estimated.log_z_interval)
        if propagated is None:
            return replace(sampled, method=f"tempered, chains differ by {disagreement:.2g}")
        best = max(propagated, sampled, key=lambda result: result.log_potential)
        if disagreement <= _AGREEMENT or not has_converged:
            method = (
                f"tempered, chains differ by {disagreement:.2g}; belief propagation {_convergence_text(has_converged)}"
            )
            log_z = propagated.log_z if estimated is None else estimated.log_z
            return replace(sampled, state=best.state, log_potential=best.log_potential, log_z=log_z, method=method)
        method = f"belief propagation, converged; the chains of tempered differ by {disagreement:.2g}"
        return replace(propagated, state=best.state, log_potential=best.log_potential, method=method)

    def _estimate(self, compiled: TableGraph, rng: np.random.Generator) -> Result | None:
        """Estimate log Z by annealed importance sampling; return None if no state was possible."""
        try:
            return AnnealedImportance(seconds=_ESTIMATION_SHARE * self.seconds).infer(compiled, rng)
        except UnsupportedGraph:
            return None

    def _propagate(self, compiled: TableGraph) -> tuple[Result, bool]:
        """Run belief propagation with increasing damping until it converges or its part of the time has passed.

        Returns:
            The result of the last run, and whether its messages converged.
        """
        until = perf_counter() + _PROPAGATION_SHARE * self.seconds
        for damping in (1.0, 0.7, 0.5, 0.25, 0.1, 0.05):
            remaining = max(until - perf_counter(), 0.01)
            backend = BeliefPropagation(100_000, 1e-8, damping, "residual", remaining / 2)
            result = backend.infer(compiled)
            has_converged = result.converged is True
            if has_converged or perf_counter() > until:
                break
        return result, has_converged

    def _search(self, compiled: TableGraph, result: Result, rng: np.random.Generator, until: float) -> Result:
        """Search for a state of larger log-potential by annealed Gibbs sampling; double the sweeps after each round."""
        n_sweeps = 100
        while n_sweeps < 2**24:
            began = perf_counter()
            sample = annealed_gibbs(n_sweeps).infer(compiled, rng, start=result.state)
            if sample.log_potential > result.log_potential:
                result = replace(result, state=sample.state, log_potential=sample.log_potential)
            if perf_counter() + 2 * (perf_counter() - began) > until:
                break
            n_sweeps *= 2
        return result


def _convergence_text(has_converged: bool) -> str:
    """Return "converged" or "not converged"."""
    return "converged" if has_converged else "not converged"
