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
from herdner.base.checks import check_counts
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
    mixing_ratio,
    set_up_seconds,
    update_seconds,
)

_SEARCH_SHARE = 0.05  # fraction of the time limit for the search for a block with all variables
_TUNING_SHARE = 0.25  # fraction of the time limit in which the temperatures are tuned
_MANY_ROUNDS = 1000  # rounds for which the width of blocks is reduced
_LEAST_UPDATES = 4  # updates of a chain in a minimal run: two rounds of two replicas
_MIXING_SHARE = 0.1  # fraction of the time limit for the decision whether chains mix without tempering
_MIXING_CHAINS = 8  # number of chains for this decision
_MIXING_RATIO = 2.0  # largest ratio of differences between chains and within chains; 1 if all chains mix
_LEAST_ROUNDS = 16  # smallest number of rounds for this decision


@dataclass(frozen=True, slots=True)
class Tempered:
    """Parallel tempering with blocked Gibbs updates, for factors of any arity, many modes and hard constraints.

    Each chain has replicas of the graph at several temperatures, which exchange their states. A round updates blocks
    that together contain all variables: each block is drawn from its joint distribution given the other variables, and
    then exchanges are proposed. Blocks of width 1 are spanning forests (Hamze and de Freitas 2004). At all temperatures
    but the first, entries of -inf have finite penalties, so replicas cross hard constraints. The temperatures are tuned
    before the recorded rounds.

    With a time limit, eight chains of single-site Gibbs sampling run first, for a tenth of the time, unless entries of
    -inf forbid joint states. If two chains differ little more than the two halves of one chain, tempering is
    not needed, and these chains continue instead of tempered chains.

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
            independent, the marginals are exact, and each chain has one replica. With a time limit and without samples,
            one such chain gets the whole limit, because its marginals are exact. On other graphs, None is the width 8
            or, with a time limit, the largest of 8, 4, 2 and 1 with which about 1000 rounds fit into the limit. Other
            values exclude the chains of single-site Gibbs sampling.
        n_chains: Number of independent chains. With a time limit, there are eight if single-site Gibbs sampling mixes,
            and one that draws all variables as one block if there are no samples (see ``width``).
        n_threads: Number of threads; None is one for each replica of each chain, up to the number of processors.
            Two or more threads for each chain share its replicas if a round takes milliseconds. Results
            do not depend on the number of threads.
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
        check_counts(self, n_rounds=1, burn_in=0, n_replicas=1, width=0, n_chains=1, n_threads=1, n_samples=0)
        check_seconds(self.seconds)

    @property
    def _limit(self) -> float:
        """Time limit in seconds; infinity is no limit."""
        return math.inf if self.seconds is None else self.seconds

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
        self,
        compiled: TableGraph,
        seed: Seed,
        start: Int32s | None = None,
        possible: Int32s | None = None,
        *,
        allow_whole_block: bool = True,
    ) -> tuple[Result, float]:
        """Sample from a compiled graph; return the result, and the mean difference between the marginals of the chains.

        Args:
            compiled: The graph.
            seed: Source of randomness.
            start: int32[V], a joint state with a log-potential above -inf; None draws the start states.
            possible: int32[V], a joint state with a log-potential above -inf for chains that do not find one; None if
                no such state is known.
            allow_whole_block: Draw all variables as one block if that is cheap.

        Returns:
            The result, and the mean over the variables of the largest difference between the marginals of two halves of
            the chains.

        Raises:
            Interrupted: Ctrl-C stopped the rounds after a possible state was visited.
            UnsupportedGraph: No visited state has a log-potential above -inf.
            ImpossibleGraph: Arc consistency shows that -inf entries forbid every joint state.
            NotEnoughMemory: The tables of all replicas do not fit into memory.
        """
        began = perf_counter()
        reduced = reduce_tables(compiled)
        first = None if start is None else reduced.reduced_state(start)
        rng = generator(seed)
        children = rng.spawn(self.n_chains)
        block = self._whole_block(reduced) if first is None and allow_whole_block else None
        run, is_interrupted = self._mixing_chains(reduced, rng, began, first) if block is None else (None, False)
        is_tuned = block is not None or run is not None
        if run is None:
            run = self._new_run(reduced, children, block, first)
        samples: list[Int32s] = []
        try:
            if not is_interrupted:
                possible = None if possible is None else reduced.reduced_state(possible)
                self._sample(run, began, possible, samples, is_tuned)
        except KeyboardInterrupt:
            if run.best() is None:
                raise
            is_interrupted = True
        if is_interrupted:
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
            n_updates=run.n_recorded * sum(len(each.betas) for each in run.ensembles) * len(reduced.variables),
            seconds=perf_counter() - began,
        )
        if is_interrupted:
            raise Interrupted(result)
        return result, run.disagreement()

    def _whole_block(self, reduced: ReducedGraph) -> Int32s | None:
        """Return an order of elimination, int32[n], to draw all variables as one block; None if that is too slow."""
        if self.width is not None:
            return None
        n_chains = self._n_whole_chains()
        log2_cells = affordable_whole_log2_cells(self._limit / n_chains, n_chains)
        return find_whole_block(reduced, log2_cells, _SEARCH_SHARE * self._limit)

    def _n_whole_chains(self) -> int:
        """Return the number of chains that draw all variables as one block."""
        return self.n_chains if self.seconds is None or self.n_samples else 1

    def _new_run(
        self,
        reduced: ReducedGraph,
        generators: list[np.random.Generator],
        block: Int32s | None,
        first: Int32s | None,
    ) -> TemperedRun:
        """Build one chain for each generator, or a single chain if one is enough (see `_n_whole_chains`).

        A chain updates all variables as the one block ``block``, or, if ``block`` is None, it has replicas at several
        temperatures, whose blocks have limited width.
        """
        if block is not None:
            chosen = generators[: self._n_whole_chains()]
            ensembles = [Ensemble.of_whole_block(reduced, block, rng) for rng in chosen]
            return self._run_of(reduced, ensembles)
        width = self._affordable_width(reduced)
        n_replicas = affordable_replicas(reduced, width, self.n_replicas, self._limit / self.n_chains)
        ensembles = [Ensemble.of(reduced, n_replicas, width, rng, first) for rng in generators]
        return self._run_of(reduced, ensembles)

    def _run_of(self, reduced: ReducedGraph, ensembles: list[Ensemble]) -> TemperedRun:
        """Return a run of the ensembles with the option ``n_threads``, or one thread for each replica."""
        n_threads = self.n_threads or min(sum(len(each.betas) for each in ensembles), os.cpu_count() or 1)
        return TemperedRun(reduced, ensembles, n_threads)

    def least_seconds(self, reduced: ReducedGraph) -> float:
        """Return the approximate time of a minimal run, in seconds: one tuning round and one recorded round.

        Each chain of this run has two replicas, whose blocks have the width that the time limit allows.

        Args:
            reduced: The graph.
        """
        seconds = _LEAST_UPDATES * update_seconds(reduced, self._affordable_width(reduced))
        return self.n_chains * (set_up_seconds(reduced) + seconds)

    def _affordable_width(self, reduced: ReducedGraph) -> int:
        """Return the width of blocks, reduced if the time limit is short."""
        limit = self._limit / self.n_chains
        if self.width is None:
            return affordable_width(reduced, WIDTH, _MANY_ROUNDS * self.n_replicas, limit)
        return affordable_width(reduced, self.width, 2 * _LEAST_UPDATES, limit)

    def _mixing_chains(
        self, reduced: ReducedGraph, rng: np.random.Generator, began: float, first: Int32s | None
    ) -> tuple[TemperedRun | None, bool]:
        """Run chains of single-site Gibbs sampling for a tenth of the time limit; return them if they mix.

        Chains that stay in different modes differ more from each other than the two halves of each chain.

        Returns:
            The chains or None, and True if Ctrl-C stopped them, so that their states so far are the result.
        """
        if self.seconds is None or self.width is not None or first is not None or self.n_replicas == 1:
            return None, False
        until = began + _MIXING_SHARE * self.seconds
        is_short = _MIXING_CHAINS * set_up_seconds(reduced) > (until - perf_counter()) / 3
        if is_short or not all(np.isfinite(table).all() for table in reduced.tables):
            return None, False
        ensembles = [Ensemble.of(reduced, 1, 0, child) for child in rng.spawn(_MIXING_CHAINS)]
        run = self._run_of(reduced, ensembles)
        try:
            n_rounds = run.advance(2**62, until=perf_counter() + (until - perf_counter()) / 3)
            if run.advance(n_rounds, record=True, until=until) < _LEAST_ROUNDS:
                return None, False
            half = run.sums()
            run.advance(n_rounds, record=True, until=2 * until - began)
        except KeyboardInterrupt:
            return run, True
        return (run if mixing_ratio(half, run.sums()) < _MIXING_RATIO else None), False

    def _sample(
        self, run: TemperedRun, began: float, possible: Int32s | None, samples: list[Int32s], is_tuned: bool
    ) -> None:
        """Tune and run all chains, and append their states, int32[chains, variables], to ``samples`` at intervals.

        At least one round is recorded.
        """
        burn_in, n_rounds = (self.burn_in, self.n_rounds) if self.seconds is None else (2**62, 2**62)
        run.tune(1 if is_tuned else burn_in, began + _TUNING_SHARE * self._limit, possible)
        n_times = -(-self.n_samples // len(run.ensembles))
        until = began + self._limit
        if not n_times:
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


def _original_samples(reduced: ReducedGraph, samples: list[Int32s]) -> Int32s | None:
    """Convert recorded states of a reduced graph to samples int32[chains, records, V] of the original graph."""
    if not samples:
        return None
    stacked = np.stack(samples, axis=1)
    n_chains, n_records, n = stacked.shape
    states = reduced.original_states(stacked.reshape(n_chains * n_records, n))
    return states.reshape(n_chains, n_records, states.shape[1])
