"""Parallel tempering with blocked updates, for graphs with many modes or hard constraints."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Int32s
from herdner.base.checks import check_integer
from herdner.base.seeds import Seed, generator
from herdner.graph.tables import Graph, TableGraph, compile_tables
from herdner.inference.backend import Capabilities, Interrupted, UnsupportedGraph
from herdner.inference.backends.sweeps import check_seconds
from herdner.inference.elimination_order import ReducedGraph, reduce_tables
from herdner.inference.gibbs.start import check_start
from herdner.inference.record import Record
from herdner.inference.result import Result
from herdner.inference.tempering import (
    WIDTH,
    Ensemble,
    TemperedRun,
    affordable_replicas,
    affordable_whole_log2_cells,
    affordable_width,
    find_whole_block,
    set_up_seconds,
    update_seconds,
)

_SEARCH_SHARE = 0.05  # fraction of the time limit for the search for a block with all variables
_TUNING_SHARE = 0.25  # fraction of the time limit in which the temperatures are tuned


@dataclass(frozen=True, slots=True)
class Tempered:
    """Parallel tempering with blocked Gibbs updates, for factors of any arity, many modes and hard constraints.

    Each chain has replicas of the graph at several temperatures, which exchange their states. A round updates blocks
    that together contain all variables: each block is drawn from its joint distribution given the other variables, and
    then exchanges are proposed. Blocks of width 1 are spanning forests (Hamze and de Freitas 2004). At all temperatures
    but the first, entries of -inf have finite penalties, so replicas cross hard constraints. The temperatures are tuned
    before the recorded rounds.

    Attributes:
        n_rounds: Number of recorded rounds.
        burn_in: Number of unrecorded rounds at the start, in which the temperatures are tuned.
        seconds: Time limit that replaces ``n_rounds`` and ``burn_in``; None is no limit. With a limit, results depend
            on the speed of the machine.
        n_replicas: Number of temperatures of each chain, fewer if a time limit is short; 1 is sampling without
            tempering.
        width: Largest number of variables that a variable of a block depends on when it is eliminated: 0 is plain Gibbs
            sampling, 1 gives spanning forests. The time of an update grows exponentially with the width, so the width
            is 1 if a time limit is short. None draws all variables as one block if an update of this block takes at
            most about 10 ms or, with a time limit, at most 1/8 of each chain's share of the limit: then states are
            independent, the marginals are exact, and each chain has one replica. On other graphs, None is the width 8.
        n_chains: Number of independent chains.
        n_threads: Number of threads; None is one for each chain, up to the number of processors. Results do not depend
            on it.
        n_samples: Number of joint states in the result, taken in turn from all chains at equal distances; fewer if
            ``n_rounds`` or the time is too short. 0 records none.
    """

    n_rounds: int = 1000
    burn_in: int = 250
    seconds: float | None = None
    n_replicas: int = 8
    width: int | None = None
    n_chains: int = 2
    n_threads: int | None = None
    n_samples: int = 0

    capabilities: ClassVar[Capabilities] = Capabilities("state", frozenset({"marginals"}), linked=False)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for options out of range."""
        check_integer(self.n_rounds, "n_rounds")
        check_integer(self.burn_in, "burn_in", 0)
        check_integer(self.n_samples, "n_samples", 0)
        check_integer(self.n_replicas, "n_replicas")
        if self.width is not None:
            check_integer(self.width, "width", 0)
        check_integer(self.n_chains, "n_chains")
        if self.n_threads is not None:
            check_integer(self.n_threads, "n_threads")
        check_seconds(self.seconds)

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Sample from one graph, and return the result of all chains.

        Args:
            graph: A graph of discrete variables and tables.
            seed: Source of randomness; the same seed gives the same result unless ``seconds`` is set.
            start: int[V], a joint state with a log-potential above -inf, the first state of all replicas; None draws
                the states.
            record: Requested results, which are only checked; the best state and the marginals are always computed.

        Returns:
            The best visited state, the marginals as averages of the blocks' marginals given all other variables, and
            the samples.

        Raises:
            UnsupportedGraph: No visited state has a log-potential above -inf.
            Interrupted: Ctrl-C stopped the rounds after a possible state was visited.
            ImpossibleGraph: Arc consistency shows that -inf entries forbid every joint state.
            NotEnoughMemory: The tables of all replicas do not fit into memory.
            UnsupportedRecord: ``record`` has fields other than best and marginals.
            ValueError: The start does not fit the graph.
        """
        self.capabilities.require(record, "tempered")
        compiled = compile_tables(graph)
        return self.sample(compiled, seed, None if start is None else check_start(compiled, start).astype(np.int32))[0]

    def sample(
        self, compiled: TableGraph, seed: Seed, start: Int32s | None = None, possible: Int32s | None = None
    ) -> tuple[Result, float]:
        """Sample from a compiled graph; return the result, and the mean difference between the marginals of the chains.

        Args:
            compiled: The graph.
            seed: Source of randomness.
            start: int32[V], a joint state with a log-potential above -inf; None draws the start states.
            possible: int32[V], a joint state with a log-potential above -inf for chains that do not find one; None if
                no such state is known.

        Returns:
            The result, and the mean over the variables of the largest difference between the chains' marginals.

        Raises:
            Interrupted: Ctrl-C stopped the rounds after a possible state was visited.
            UnsupportedGraph: No visited state has a log-potential above -inf.
            ImpossibleGraph: Arc consistency shows that -inf entries forbid every joint state.
            NotEnoughMemory: The tables of all replicas do not fit into memory.
        """
        began = perf_counter()
        reduced = reduce_tables(compiled)
        first = None if start is None else reduced.reduced_state(start)
        children = generator(seed).spawn(self.n_chains)
        limit = None if self.seconds is None else self.seconds / self.n_chains
        block, n_replicas = None, 1
        if self.width is None and first is None:
            search_seconds = math.inf if self.seconds is None else _SEARCH_SHARE * self.seconds
            block = find_whole_block(reduced, affordable_whole_log2_cells(limit, self.n_chains), search_seconds)
        if block is not None:
            ensembles = [Ensemble.of_whole_block(reduced, block, rng) for rng in children]
        else:
            width = WIDTH if self.width is None else self.width
            width = affordable_width(width, least_seconds(reduced, width, self.n_chains), self.seconds)
            n_replicas = affordable_replicas(reduced, width, self.n_replicas, limit)
            ensembles = [Ensemble.of(reduced, n_replicas, width, rng, first) for rng in children]
        run = TemperedRun(reduced, ensembles, self.n_threads or min(self.n_chains, os.cpu_count() or 1))
        samples: list[Int32s] = []
        is_interrupted = False
        try:
            possible = None if possible is None else reduced.reduced_state(possible)
            self._sample(run, began, possible, samples, has_whole_block=block is not None)
        except KeyboardInterrupt:
            is_interrupted = True
            if run.best() is None:
                raise
            if not run.n_recorded:
                run.make_possible()
                run.advance(1, record=True)
            if self.n_samples and not samples:
                samples.append(run.states())
        best, marginals = run.best(), run.marginals()
        if best is None or marginals is None:
            raise UnsupportedGraph(
                "'tempered' found no joint state that the -inf entries allow; increase `n_rounds` or `seconds`, pass"
                " `start`, or use the backend 'exact' if the treewidth is small"
            )
        state = reduced.original_states(best[None])[0]
        result = Result(
            state=state,
            log_potential=float(compiled.graph.log_potential(state)),
            marginals=reduced.original_marginals(marginals, compiled.sizes),
            samples=_original_samples(reduced, samples),
            n_updates=run.n_recorded * self.n_chains * n_replicas * len(reduced.variables),
            seconds=perf_counter() - began,
        )
        if is_interrupted:
            raise Interrupted(result)
        return result, run.disagreement()

    def _sample(
        self, run: TemperedRun, began: float, possible: Int32s | None, samples: list[Int32s], has_whole_block: bool
    ) -> None:
        """Tune and run all chains, and append their states, int32[chains, variables], to ``samples`` at intervals.

        At least one round is recorded. Chains with one block of all variables need no tuning: their rounds are
        independent.
        """
        if self.seconds is None:
            run.tune(1 if has_whole_block else self.burn_in, possible=possible)
        else:
            run.tune(1 if has_whole_block else 2**62, began + _TUNING_SHARE * self.seconds, possible)
        n_times = -(-self.n_samples // self.n_chains)
        until = math.inf if self.seconds is None else began + self.seconds
        if not n_times:
            n_rounds = self.n_rounds if self.seconds is None else 2**62
            if not run.advance(n_rounds, record=True, until=until):
                run.advance(1, record=True)
            return
        done, first, last = 0, perf_counter(), self.n_rounds
        while len(samples) < n_times and (not samples or perf_counter() < until):
            if self.seconds is not None:
                now = perf_counter()
                last = done + (int(done / (now - first) * (until - now)) if done else 1)  # by the speed of the rounds
            spacing = max(1, (last - done) // (n_times - len(samples)))
            if self.seconds is None and done >= self.n_rounds:
                break
            rounds = run.advance(spacing, record=True, until=until) or run.advance(not samples, record=True)
            if not rounds:
                break
            done += rounds
            samples.append(run.states())


def least_seconds(reduced: ReducedGraph, width: int, n_chains: int = 2) -> float:
    """Return the approximate time, in seconds, of a minimal run of `Tempered`: one tuning round and one recorded round.

    Each chain of this run has two replicas.

    Args:
        reduced: The graph.
        width: Largest number of variables of a separator in a block.
        n_chains: Number of chains.
    """
    n_updates = n_chains * 2 * 2  # a round of tuning and a recorded round, for two replicas of each chain
    return n_chains * set_up_seconds(reduced) + n_updates * update_seconds(reduced, width)


def _original_samples(reduced: ReducedGraph, samples: list[Int32s]) -> Int32s | None:
    """Convert recorded states of a reduced graph to samples int32[chains, records, V] of the original graph."""
    if not samples:
        return None
    stacked = np.stack(samples, axis=1)
    n_chains, n_records, n = stacked.shape
    states = reduced.original_states(stacked.reshape(n_chains * n_records, n))
    return states.reshape(n_chains, n_records, states.shape[1])
