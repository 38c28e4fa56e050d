"""Time limits for backends without the option ``seconds``: runs of increasing length until the time is over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from herdner.base.seeds import Seed, generator
from herdner.graph.tables import Graph, compile_tables
from herdner.inference.backend import SAMPLER_CAPABILITIES, Backend, Capabilities, Interrupted, UnsupportedRecord
from herdner.inference.gibbs.plan import MOST_SWEEPS
from herdner.inference.record import Record
from herdner.inference.result import Result

# The option of which each run has more than the run before, with its values in the first and in the longest run.
_LENGTHS = {"n_starts": (1, MOST_SWEEPS), "n_sweeps": (4, MOST_SWEEPS), "max_log2_cells": (4.0, 30.0)}
_LARGEST_GROWTH = 16.0  # of the length of a run, relative to the run before
_SHARE = 0.9  # fraction of the remaining time that the next run may take
_CLOSE = 1e-6  # difference of bounds on log Z that need no further run


@dataclass(frozen=True, slots=True)
class TimeLimited:
    """Backend that repeats another backend with more and more sweeps; the last run takes most of the time.

    For `ICM`, the number of starts grows in place of the number of sweeps; for `MiniBucket`, the number of table cells.
    No run follows a run that has converged. A backend without such an option, such as `Viterbi`, runs once. The first
    run is short (four sweeps), but it is completed even if it exceeds the limit.

    Attributes:
        backend: The backend.
        seconds: Time limit in seconds; None runs the backend once, with its own number of sweeps.
        n_samples: Number of joint states in the result, from all chains at equal distances; 0 records none.
        largest: Largest value of the option that grows; None is unlimited.
    """

    backend: Backend
    seconds: float | None = None
    n_samples: int = 0
    largest: float | None = None

    capabilities: ClassVar[Capabilities] = SAMPLER_CAPABILITIES

    def __post_init__(self) -> None:
        """Raise `UnsupportedRecord` if the backend draws no samples of the distribution, but samples are requested."""
        annealing = getattr(self.backend, "annealing", None)
        if self.n_samples and ("every" not in self.backend.capabilities.record or annealing is not None):
            raise UnsupportedRecord("the backend draws no samples of the distribution; use a sampler such as 'gibbs'")

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Run the backend on one graph, longer and longer until the time is over.

        Args:
            graph: A graph that the backend supports.
            seed: Source of randomness of all runs.
            start: Start state of all runs, as for the backend.
            record: Results to record, as for the backend; ignored if ``n_samples`` is positive.

        Returns:
            The result of the longest run, with the best state and the closest bounds on log Z of all runs.

        Raises:
            Interrupted: Ctrl-C stopped a run. The result in the error is that of the completed runs.
            Exception: The first run raised an error.
        """
        began, rng, compiled = perf_counter(), generator(seed), compile_tables(graph)
        name = "" if self.seconds is None else length_option(self.backend)
        first, largest = _LENGTHS[name] if name else (0, 0)
        largest = largest if self.largest is None else min(largest, self.largest)
        length = min(max(first, 2 * getattr(self.backend, "burn_in", 0)), largest)
        result = None
        while True:
            now = perf_counter()
            backend = replace(self.backend, **{name: length}) if name else self.backend  # type: ignore[type-var]
            try:
                latest = self._run(backend, compiled, rng, start, record)
            except KeyboardInterrupt:
                if result is None:
                    raise
                raise Interrupted(result) from None
            except (MemoryError, ValueError):  # too large a table, or too many herding weights
                if result is None:
                    raise
                return result
            seconds = perf_counter() - now
            result = replace(_combine(result, latest), seconds=perf_counter() - began)
            if not name or length >= largest or _has_converged(latest):
                return result
            assert self.seconds is not None
            growth = min(_SHARE * (self.seconds - result.seconds) / seconds, _LARGEST_GROWTH)
            if growth < 2:
                return result
            length = length + 1.0 if name == "max_log2_cells" else min(int(growth * length), largest)

    def _run(self, backend: Any, graph: Graph, seed: Seed, start: ArrayLike | None, record: Record | None) -> Result:
        """Run a backend once; record ``n_samples`` joint states if samples are requested."""
        if self.n_samples:
            per_chain = -(-self.n_samples // backend.n_chains)
            if self.seconds is None:
                backend = replace(backend, n_sweeps=max(backend.n_sweeps, backend.burn_in + per_chain))
            every = max(1, (backend.n_sweeps - backend.burn_in) // per_chain)
            record = Record(best=False, marginals=False, every=every)
            result = backend.infer(graph, seed, start=start, record=record)
            assert result.samples is not None
            assert result.sample_sweeps is not None
            last = slice(-per_chain, None)
            return replace(result, samples=result.samples[:, last], sample_sweeps=result.sample_sweeps[last])
        return backend.infer(graph, seed, start=start, record=record)


def length_option(backend: Backend) -> str:
    """Return the name of the option of a backend that `TimeLimited` increases; an empty string if there is none.

    Args:
        backend: The backend.
    """
    return next((each for each in _LENGTHS if hasattr(backend, each)), "")


def _combine(previous: Result | None, result: Result) -> Result:
    """Return ``result`` with the better state and the tighter bounds on log Z of ``previous`` and ``result``."""
    if previous is None:
        return result
    if previous.log_potential > result.log_potential:
        result = replace(result, state=previous.state, log_potential=previous.log_potential)
    if result.log_z_bounds is not None and previous.log_z_bounds is not None:
        lows, highs = zip(previous.log_z_bounds, result.log_z_bounds, strict=True)
        result = replace(result, log_z_bounds=(max(lows), min(highs)))
    return result


def _has_converged(result: Result) -> bool:
    """Return True if a longer run would give the same result."""
    if (bounds := result.log_z_bounds) is not None and (result.log_z is not None or bounds[1] - bounds[0] < _CLOSE):
        return True
    return result.converged is True
