"""A backend that chooses between exact inference, belief propagation and tempered sampling."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.checks import check_integer
from herdner.base.memory import free_memory
from herdner.base.messages import format_size
from herdner.base.seeds import Seed, generator
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, Interrupted, UnsupportedGraph
from herdner.inference.backends.annealed_importance import AnnealedImportance
from herdner.inference.backends.belief_propagation import BeliefPropagation
from herdner.inference.backends.exact import (
    EliminationPlan,
    EliminationRun,
    Exact,
    needs_marginals,
    needs_only_sums,
    slow_reduction,
)
from herdner.inference.backends.gibbs import annealed_gibbs
from herdner.inference.backends.tempered import Tempered
from herdner.inference.elimination_order import OutOfTime, reduce_tables
from herdner.inference.record import Record
from herdner.inference.result import Result

logger = logging.getLogger(__name__)

CELL_SECONDS = 1.5e-8  # time of exact inference per table cell, for all passes
MEMORY_SHARE = 0.8  # largest part of the free memory that exact inference may use
# Fractions of the time limit for the search for an elimination order, and for exact inference as a whole:
_ORDER_SHARE = 0.1
_EXACT_SHARE = 0.85
_LEAST_REDUCTION_SECONDS = 1.0  # smallest time limit of the reduction of the graph
# Fractions of the time that remains for approximations:
_PROPAGATION_SHARE = 0.25
_SHORT_PROPAGATION_SHARE = 0.05  # if only samples are requested
_LONG_PROPAGATION_SHARE = 0.9  # if the time is too short for sampling; with the search
_SEARCH_SHARE = 0.1
_LONG_SEARCH_SHARE = 0.5  # if only the best state is requested
_ESTIMATION_SHARE = 0.2
_FIRST_SWEEPS = 100  # sweeps of the first annealed Gibbs run
_SWEEP_SECONDS = 2e-7  # approximate time of a Gibbs sweep per variable
_WIDE = 20.0  # width of an interval of log Z above which converged belief propagation is preferred
_AGREEMENT = 0.02  # largest disagreement of chains at which sampled marginals are preferred to converged propagation


@dataclass(frozen=True, slots=True)
class Auto:
    """Backend that chooses exact inference, tempered sampling or belief propagation, within a time limit.

    Exact inference is chosen if its predicted time and memory suffice; the prediction is the cost from `Exact.plan`.
    Exact inference is stopped if its speed shows that it would not end in time. Otherwise belief propagation takes up
    to a quarter of the time; it is restarted with more damping until it converges. If it never converges, annealed
    importance sampling estimates log Z. Annealed Gibbs sampling searches for a state of larger log-potential than that
    of belief propagation. Tempered sampling takes the rest of the time. Its marginals are the result if its chains
    agree, or if belief propagation does not converge. Steps whose results ``record`` does not request are left out. The
    chosen method and the reason are logged and stored in `Result.method`. Only exact results are independent of the
    speed of the machine.

    Attributes:
        seconds: Approximate time limit in seconds.
        max_log2_cells: Largest cost of exact inference, as log2 of the number of table cells; 0 excludes exact
            inference on graphs with more than one joint state.
        n_samples: Number of samples in the result. They are independent if inference is exact; otherwise they are
            states of tempered sampling, fewer if the time is short.
    """

    seconds: float = 60.0
    max_log2_cells: float = 60.0
    n_samples: int = 0

    capabilities: ClassVar[Capabilities] = Capabilities(record=frozenset({"marginals"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        if not 0 < self.seconds < float("inf"):
            raise ValueError(f"seconds must be a finite positive number, got {self.seconds!r}")
        if not 0 <= self.max_log2_cells <= 60:
            raise ValueError(f"max_log2_cells must be a number from 0 to 60, got {self.max_log2_cells!r}")
        check_integer(self.n_samples, "n_samples", 0)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Choose an algorithm, run it on one graph, and return its result.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Seed of the samplers.
            start: Ignored.
            record: Results to record; None records the best state and the marginals. If these and samples are not
                requested, most of the time is used for log_z.

        Returns:
            The state, log_z, the marginals, and the name of the method with the reason of the choice.

        Raises:
            ImpossibleGraph: Entries of -inf forbid every joint state.
            Interrupted: Ctrl-C stopped an approximation. The result in the error combines all results so far.
            UnsupportedGraph: No algorithm reached a joint state that the -inf entries allow, or the graph is too large
                for the time limit.
            UnsupportedRecord: ``record`` has fields other than best and marginals.
        """
        began = perf_counter()
        self.capabilities.require(record, "auto")
        compiled = compile_tables(graph)
        request = Record() if record is None else record
        limit = max(self.seconds, _LEAST_REDUCTION_SECONDS)
        prune = needs_only_sums(request) and self.max_log2_cells > 0
        try:
            reduce_tables(compiled, perf_counter() + limit, absorb=not prune)
            result, reason = self._exact(compiled, seed, request, began, prune)
            if result is None:
                reduce_tables(compiled, max(began + self.seconds, perf_counter() + _LEAST_REDUCTION_SECONDS))
        except OutOfTime:
            raise UnsupportedGraph(slow_reduction("auto", limit)) from None
        if result is None:
            result = self._approximate(compiled, seed, request, began)
            result = replace(result, method=f"{result.method}; {reason}")
        logger.info("auto: %s", result.method)
        return replace(result, seconds=perf_counter() - began)

    def _exact(
        self, compiled: TableGraph, seed: Seed, request: Record, began: float, prune: bool
    ) -> tuple[Result | None, str]:
        """Run exact inference, and return its result, or None and the reason why time or memory do not suffice."""
        exact, tables = Exact(n_samples=self.n_samples), "no elimination order yet"
        try:
            limit = min(self.max_log2_cells, math.log2(max(_EXACT_SHARE * self.seconds / CELL_SECONDS, 1.0)))
            seconds = _ORDER_SHARE * self.seconds if self.max_log2_cells else 0.0
            run = EliminationRun.prepare(compiled, seconds, limit, began + _EXACT_SHARE * self.seconds, prune=prune)
            plan = run.plan(needs_marginals(request))
            tables = str(plan)
            remaining = began + _EXACT_SHARE * self.seconds - perf_counter()
            reason = self._obstacle(plan, remaining)
            if reason is None:
                logger.info("auto: exact inference takes %s", plan)
                return replace(exact.run(run, seed, request, remaining), method=f"exact ({plan})"), ""
        except OutOfTime:
            reason = f"exact inference ({tables}) was too slow for the time limit"
        except MemoryError as error:
            logger.info("auto: %s", error)
            reason = "exact inference does not fit into memory"
        logger.info("auto: %s", reason)
        return None, reason

    def _obstacle(self, plan: EliminationPlan, seconds: float) -> str | None:
        """Return the reason why exact inference does not fit into its limits, or None if it fits.

        Args:
            plan: Predicted time and memory.
            seconds: Time that remains for exact inference.
        """
        if not math.isfinite(plan.log2_cells):
            return f"exact inference found {plan} within {_ORDER_SHARE * self.seconds:.2g} s"
        free, affordable = MEMORY_SHARE * free_memory(), math.log2(max(seconds / CELL_SECONDS, 1.0))
        if plan.log2_cells > self.max_log2_cells and self.max_log2_cells <= affordable:
            limit = f"`max_log2_cells` allows 2^{self.max_log2_cells:g} cells"
        elif plan.n_bytes >= free:
            limit = f"the free memory allows {format_size(free)}"
        elif plan.log2_cells > 59.9 or 2.0**plan.log2_cells * CELL_SECONDS > seconds:
            limit = f"the time limit allows 2^{affordable:.1f} cells"
        else:
            return None
        return f"exact inference takes {plan}, but {limit}"

    def _approximate(self, compiled: TableGraph, seed: Seed, request: Record, began: float) -> Result:
        """Run all approximations; if Ctrl-C stops one of them, raise `Interrupted` with the results so far."""
        results: list[Result] = []
        try:
            return self._run_approximations(compiled, generator(seed), request, began + self.seconds, results)
        except KeyboardInterrupt as interrupt:
            results += [interrupt.result] if isinstance(interrupt, Interrupted) else []
            if not results:
                raise
            raise Interrupted(replace(_combine_results(results), seconds=perf_counter() - began)) from None

    def _run_approximations(
        self, compiled: TableGraph, rng: np.random.Generator, request: Record, until: float, results: list[Result]
    ) -> Result:
        """Run belief propagation, a search for a better state, and tempered sampling; combine the results.

        The results of completed steps are appended to ``results``, for the case that Ctrl-C stops the next step.
        """
        began = perf_counter()
        seconds = max(until - began, 0.1 * self.seconds)
        until = began + seconds
        propagated, failure = None, None
        wants_more = request.best or request.marginals or not self.n_samples
        search_share = 0.0 if not request.best else _SEARCH_SHARE if request.marginals else _LONG_SEARCH_SHARE
        reduced, only_log_z = reduce_tables(compiled), not (request.best or request.marginals or self.n_samples)

        def is_long_enough(remaining: float) -> bool:
            if remaining <= 0:
                return False
            sampler = AnnealedImportance(seconds=remaining) if only_log_z else Tempered(seconds=remaining)
            return sampler.least_seconds(reduced) <= remaining

        share = _PROPAGATION_SHARE if wants_more else _SHORT_PROPAGATION_SHARE
        if not self.n_samples and not is_long_enough((1 - share - search_share) * seconds):
            share = _LONG_PROPAGATION_SHARE - search_share
        try:
            propagated = self._propagate(compiled, share * seconds)
            results.append(propagated)
            if search_share:
                propagated = self._search(compiled, propagated, rng, perf_counter() + search_share * seconds)
                results.append(propagated)
        except UnsupportedGraph as error:  # no allowed state was found; tempered sampling may find one
            failure = error
        has_converged = propagated is not None and propagated.converged is True
        estimated = None
        if only_log_z:
            remaining = until - perf_counter()
            if propagated is not None and not is_long_enough(remaining):
                return _only_propagated(propagated, "the time is too short for annealed importance sampling")
            estimated = self._estimate(compiled, rng, max(remaining, 0.1 * seconds))
            if estimated is not None:
                return self._better_log_z(propagated, estimated)
        elif not has_converged and request.best and request.marginals:
            estimated = self._estimate(compiled, rng, _ESTIMATION_SHARE * seconds)
            if estimated is not None:
                results.append(estimated)
        remaining = until - perf_counter()
        if propagated is not None and not self.n_samples and not is_long_enough(remaining):
            return _only_propagated(propagated, "the time is too short for tempered sampling")
        sampler = Tempered(seconds=max(remaining, 0.1 * seconds), n_samples=self.n_samples)
        try:
            possible = None if propagated is None else propagated.state
            sampled, disagreement = sampler.sample(compiled, rng, possible=possible, allow_whole_block=False)
        except UnsupportedGraph:
            if propagated is None:
                raise failure from None  # type: ignore[misc]
            return _only_propagated(propagated, "no sample was possible")
        if estimated is not None:
            sampled = replace(sampled, log_z=estimated.log_z, log_z_interval=estimated.log_z_interval)
        if propagated is None:
            return replace(sampled, method=f"tempered, chains differ by {disagreement:.2g}")
        best = max(propagated, sampled, key=lambda result: result.log_potential)
        if disagreement <= _AGREEMENT or not has_converged:
            convergence = "converged" if has_converged else "not converged"
            method = f"tempered, chains differ by {disagreement:.2g}; belief propagation {convergence}"
            log_z = propagated.log_z if estimated is None else estimated.log_z
            return replace(sampled, state=best.state, log_potential=best.log_potential, log_z=log_z, method=method)
        method = f"belief propagation, converged; the chains of tempered differ by {disagreement:.2g}"
        return replace(
            propagated, state=best.state, log_potential=best.log_potential, samples=sampled.samples, method=method
        )

    def _better_log_z(self, propagated: Result | None, estimated: Result) -> Result:
        """Return ``propagated`` if it has converged and ``estimated`` has a wide log Z interval, else ``estimated``."""
        assert estimated.log_z_interval is not None
        low, high = estimated.log_z_interval
        width = f"an interval of width {high - low:.2g}"
        if propagated is not None and propagated.converged and not high - low <= _WIDE:
            method = f"belief propagation, converged; annealed importance sampling has {width}"
            return replace(propagated, log_z_interval=None, method=method)
        return replace(estimated, method=f"annealed importance sampling with {width}")

    def _estimate(self, compiled: TableGraph, rng: np.random.Generator, seconds: float) -> Result | None:
        """Estimate log Z by annealed importance sampling; return None if every visited state has log-potential -inf."""
        try:
            return AnnealedImportance(seconds=seconds).infer(compiled, rng)
        except UnsupportedGraph:
            return None

    def _propagate(self, compiled: TableGraph, seconds: float) -> Result:
        """Run belief propagation with increasing damping until it converges or ``seconds`` have passed."""
        until = perf_counter() + seconds
        for damping in (1.0, 0.7, 0.5, 0.25, 0.1, 0.05):
            remaining = max(until - perf_counter(), 0.01)
            backend = BeliefPropagation(100_000, 1e-8, damping, "residual", remaining / 2)
            result = backend.infer(compiled)
            if result.converged or perf_counter() > until:
                break
        return result

    def _search(self, compiled: TableGraph, result: Result, rng: np.random.Generator, until: float) -> Result:
        """Search for a state of larger log-potential by annealed Gibbs runs, each twice as long as the one before."""
        affordable = (until - perf_counter()) / (_SWEEP_SECONDS * max(1, len(compiled.sizes)))
        n_sweeps = int(np.clip(affordable, 1, _FIRST_SWEEPS))
        while n_sweeps < 2**24:
            began = perf_counter()
            sample = annealed_gibbs(n_sweeps).infer(compiled, rng, start=result.state)
            if sample.log_potential > result.log_potential:
                result = replace(result, state=sample.state, log_potential=sample.log_potential)
            if perf_counter() + 2 * (perf_counter() - began) > until:
                break
            n_sweeps *= 2
        return result


def _combine_results(results: list[Result]) -> Result:
    """Combine the results of several methods: take the best state, and the latest available log Z and marginals.

    Args:
        results: At least one result, in the order in which the methods ran.
    """
    best = max(results, key=lambda result: result.log_potential)
    latest = results[-1]
    log_z = next((result for result in reversed(results) if result.log_z is not None), latest)
    return replace(
        latest,
        state=best.state,
        log_potential=best.log_potential,
        log_z=log_z.log_z,
        log_z_interval=log_z.log_z_interval,
        marginals=next((result.marginals for result in reversed(results) if result.marginals is not None), None),
        method="interrupted",
    )


def _only_propagated(propagated: Result, reason: str) -> Result:
    """Return the result of belief propagation; its `method` states why no other backend ran."""
    convergence = "converged" if propagated.converged else "not converged"
    return replace(propagated, method=f"belief propagation, {convergence}; {reason}")
