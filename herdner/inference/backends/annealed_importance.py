"""Annealed importance sampling: an estimate of log Z with an interval."""

from __future__ import annotations

import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s
from herdner.base.checks import check_counts
from herdner.base.seeds import Seed, generator
from herdner.graph.tables import Graph, compile_tables
from herdner.inference.backend import Capabilities, Interrupted, UnsupportedGraph
from herdner.inference.backends.sweeps import check_seconds
from herdner.inference.elimination_order import ReducedGraph, reduce_tables
from herdner.inference.gibbs.start import check_start
from herdner.inference.importance import bennett_estimate, importance_interval, log_mean_exp
from herdner.inference.record import Record
from herdner.inference.result import Result
from herdner.inference.tempering import (
    Ensemble,
    TemperedRun,
    affordable_replicas,
    affordable_width,
    penalties_of,
    set_up_seconds,
    update_seconds,
)

_TUNING_SHARE = 0.2  # fraction of the time limit in which tempered sampling tunes the temperatures
_SAMPLING_SHARE = 0.2  # fraction of the time limit in which the start states of reverse runs are sampled
_LEAST_PARTICLES = 2  # smallest number of particles of each worker, even if the time limit is short
_LEAST_TEMPERATURES = 4  # smallest number of temperatures of a run, even if the time limit is short
_WORKERS = 2  # independent ensembles, a fixed number so that results do not depend on threads


@dataclass(frozen=True, slots=True)
class AnnealedImportance:
    """Estimation of log Z with a confidence interval, by forward and reverse runs of annealed importance sampling.

    Forward runs start at uniform states, and reverse runs at samples of `Tempered`. Both pass through the same
    temperatures with blocked updates. Bennett's acceptance ratio combines their weights. The interval contains log Z in
    about 95 of 100 runs if tempered sampling reaches all modes.

    Attributes:
        n_particles: Largest number of runs in each direction; there are fewer if a time limit is short.
        n_temperatures: Number of temperatures of a run; more temperatures give a narrower interval.
        seconds: Approximate time limit that replaces ``n_temperatures`` and ``n_rounds``; None is no limit. With a
            limit, results depend on the speed of the machine.
        n_rounds: Rounds of tempered sampling that tune the temperatures.
        spacing: Rounds of tempered sampling between two samples; fewer if a time limit is short.
        n_replicas: Number of temperatures of tempered sampling; fewer if a time limit is short.
        width: Largest number of variables of a separator in a block, as in `Tempered`; with a time limit, it is halved
            until runs of ``n_temperatures`` fit into the limit.
        n_threads: Number of threads, at most 2; None is 2 if the machine has two processors. Results do not depend on
            it.
    """

    n_particles: int = 50
    n_temperatures: int = 200
    seconds: float | None = None
    n_rounds: int = 300
    spacing: int = 5
    n_replicas: int = 8
    width: int = 4
    n_threads: int | None = None

    capabilities: ClassVar[Capabilities] = Capabilities("state", frozenset({"marginals"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        check_counts(self, n_particles=2, n_temperatures=2, n_rounds=0, spacing=1, n_replicas=1, width=0, n_threads=1)
        check_seconds(self.seconds)

    @property
    def _limit(self) -> float:
        """Time limit in seconds; infinity is no limit."""
        return math.inf if self.seconds is None else self.seconds

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Estimate log Z of one graph, and return the estimate with a confidence interval.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Source of randomness; the same seed gives the same result unless ``seconds`` is set.
            start: int[V], a joint state with a log-potential above -inf, the first state of tempered sampling;
                None draws states.
            record: Requested results, which are only checked; the best state and the marginals are always computed.

        Returns:
            log_z and log_z_interval, the best visited state, and the marginals of tempered sampling.

        Raises:
            Interrupted: Ctrl-C stopped the annealing. The estimate in the error is that of the completed runs.
            UnsupportedGraph: No visited state has a log-potential above -inf.
            ImpossibleGraph: Arc consistency shows that -inf entries forbid every joint state.
            NotEnoughMemory: The tables of all replicas do not fit into memory.
            UnsupportedRecord: ``record`` has fields other than best and marginals.
            ValueError: The start does not fit the graph.
        """
        began = perf_counter()
        self.capabilities.require(record, "annealed-importance")
        compiled = compile_tables(graph)
        reduced = reduce_tables(compiled)
        first = None if start is None else reduced.reduced_state(check_start(compiled, start).astype(np.int32))
        rng = generator(seed)
        n_threads = min(_WORKERS, self.n_threads or os.cpu_count() or 1)
        limit = (_TUNING_SHARE + _SAMPLING_SHARE) * self._limit
        width = self._affordable_width(reduced)
        n_replicas = affordable_replicas(reduced, width, self.n_replicas, limit / _WORKERS)
        ensembles = [Ensemble.of(reduced, n_replicas, width, r, first) for r in rng.spawn(_WORKERS)]
        run = TemperedRun(reduced, ensembles, n_threads)
        try:
            run.tune(self.n_rounds if self.seconds is None else 2**62, began + _TUNING_SHARE * self._limit)
            states, is_interrupted = self._samples(run, began + limit), False
        except KeyboardInterrupt:
            if run.best() is None:
                raise
            run.make_possible()
            states, is_interrupted = self._samples(run, -math.inf), True  # as few runs as possible
        forward, reverse, is_stopped = self._weights(run, states, -math.inf if is_interrupted else began)
        log_z = float(bennett_estimate(forward, reverse))
        if log_z == -math.inf:  # no forward run ended at a possible state
            log_z = -float(log_mean_exp(-reverse))
        interval = importance_interval(forward, reverse, rng)
        constant = reduced.constant + float(np.log(np.array(reduced.sizes, float)).sum())  # log Z at beta = 0
        best, marginals = run.best(), run.marginals()
        assert best is not None
        assert marginals is not None
        state = reduced.original_states(best[None])[0]
        result = Result(
            state=state,
            log_potential=float(compiled.graph.log_potential(state)),
            log_z=constant + log_z,
            log_z_interval=(constant + interval[0], constant + interval[1]),
            marginals=reduced.original_marginals(marginals, compiled.sizes),
            seconds=perf_counter() - began,
        )
        if is_interrupted or is_stopped:
            raise Interrupted(result)
        return result

    def least_seconds(self, reduced: ReducedGraph) -> float:
        """Return the approximate time of the shortest run under the time limit, in seconds.

        Args:
            reduced: The graph.
        """
        n_rounds = 1 + _LEAST_PARTICLES  # of two replicas
        n_updates = _WORKERS * (2 * n_rounds + 2 * _LEAST_PARTICLES * (_LEAST_TEMPERATURES - 1)) + 1
        seconds = n_updates * update_seconds(reduced, self._affordable_width(reduced))
        return _WORKERS * set_up_seconds(reduced) + seconds

    def _affordable_width(self, reduced: ReducedGraph) -> int:
        """Return the width of blocks, reduced if the time limit is short."""
        limit = (1 - _TUNING_SHARE - _SAMPLING_SHARE) * self._limit
        n_updates = self.n_particles * self.n_temperatures  # of a worker: half of the runs, in both directions
        return affordable_width(reduced, self.width, n_updates, limit)

    def _samples(self, run: TemperedRun, until: float = math.inf) -> list[Int32s]:
        """Draw the start states of all reverse runs by tempered sampling: one array int32[runs, variables] per worker.

        If the time ``until`` passes, there are fewer particles than ``n_particles``.
        """
        states: list[list[Int32s]] = [[] for _ in run.ensembles]
        for number in range(self.n_particles):
            worker, is_late = number % _WORKERS, perf_counter() > until
            if number >= _WORKERS * _LEAST_PARTICLES and is_late:
                break
            if worker == 0 or not is_late:
                run.advance(1, record=True)
            if not is_late:
                share = _SAMPLING_SHARE * self._limit / self.n_particles
                run.advance(self.spacing - 1, record=True, until=min(perf_counter() + share, until))
            if number == 0 and (run.best() is None or run.marginals() is None):
                raise UnsupportedGraph(
                    "'annealed-importance' found no joint state that the -inf entries allow; increase `n_rounds` or"
                    " `seconds`, pass `start`, or use the backend 'exact' if the treewidth is small"
                )
            run.ensembles[worker].make_possible(run.best())
            states[worker].append(run.ensembles[worker].replicas.states[0])
        return [np.array(each, np.int32).reshape(len(each), -1) for each in states]

    def _weights(self, run: TemperedRun, states: list[Int32s], began: float) -> tuple[Floats, Floats, bool]:
        """Make the forward and reverse runs, and return their log-weights.

        Each worker makes at least one pair of runs, even after Ctrl-C or the time limit.

        If ``began``, the time at which the time limit began, is -inf, the runs have as few temperatures as possible.

        The runs use the first replica of each ensemble, whose tempered sampling is over.

        Returns:
            The forward log-weights, the negative reverse log-weights, and True if Ctrl-C stopped the runs.
        """
        tuned = np.mean([ensemble.betas for ensemble in run.ensembles], axis=0)
        n_temperatures = self.n_temperatures
        if began == -math.inf:
            n_temperatures = _LEAST_TEMPERATURES
        elif self.seconds is not None:
            n_temperatures = self._affordable(run.ensembles[0], sum(map(len, states)), began)
        places = np.linspace(0, len(tuned), n_temperatures)
        betas = np.interp(places, np.arange(len(tuned) + 1), np.append(tuned, 0.0))
        penalties = penalties_of(betas)
        until = math.inf if self.seconds is None else began + self.seconds
        is_interrupted = threading.Event()

        def anneal(ensemble: Ensemble, starts: Int32s) -> tuple[list[float], list[float]]:
            replicas = ensemble.replicas
            forward: list[float] = []
            reverse: list[float] = []
            for start in starts:
                if is_interrupted.is_set() and reverse:
                    break
                if len(reverse) >= _LEAST_PARTICLES and perf_counter() > until:
                    break
                replicas.draw_uniform(0)
                forward.append(replicas.anneal(0, betas[::-1], penalties[::-1]))
                states = replicas.states
                states[0] = start
                replicas.states = states
                reverse.append(-replicas.anneal(0, betas, penalties, reverse=True))
            return forward, reverse

        with ThreadPoolExecutor(run.n_threads) as pool:
            futures = [pool.submit(anneal, *arguments) for arguments in zip(run.ensembles, states, strict=True)]
            try:
                weights = [future.result() for future in futures]
            except KeyboardInterrupt:
                is_interrupted.set()
                weights = [future.result() for future in futures]
        forward, reverse = (np.concatenate([pair[side] for pair in weights]) for side in range(2))
        return forward, reverse, is_interrupted.is_set()

    def _affordable(self, ensemble: Ensemble, n_particles: int, began: float) -> int:
        """Return the number of temperatures with which all remaining runs finish within the time limit."""
        measured = perf_counter()
        ensemble.replicas.anneal(0, np.ones(2), np.ones(2))
        seconds = perf_counter() - measured
        remaining = max(0.0, self._limit - (perf_counter() - began))
        return int(np.clip(remaining / (2 * n_particles * max(seconds, 1e-7)), _LEAST_TEMPERATURES, 20_000))
