"""Blocks and temperatures of tempered sampling on any graph of tables.

A block is a set of variables whose joint distribution given the other variables is cheap to sample, because it has an
elimination order with small separators. With separators of at most one variable the block is a spanning forest (Hamze
and de Freitas 2004, "From fields to trees"); larger separators give w-cutset sampling (Bidyuk and Dechter 2007). If the
tables of one block with all variables are small, states are independent exact samples, and their conditional marginals
are the exact marginals.

Parallel tempering runs replicas of a graph at inverse temperatures of at most 1 and exchanges their states. At the
inverse temperature 0 all joint states are equally probable, so the replica moves freely. An entry of -inf gets a finite
penalty at all temperatures but the first, so that replicas cross constraints. The temperatures are tuned until all
exchanges are rejected equally often (Syed et al. 2022, "Non-reversible parallel tempering").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from herdner._ext.elimination_order import find_block
from herdner._ext.replicas import Replicas
from herdner.base.arrays import Floats, Int32s
from herdner.base.memory import check_memory, free_memory
from herdner.graph.tables import compile_tables
from herdner.inference.elimination_order import ReducedGraph, adjacency, find_elimination_order
from herdner.inference.gibbs.start import resolve_conflicts
from herdner.inference.satisfiability import find_possible_state, has_solver

MOST_LOG2_CELLS = 14.0  # log2 of the largest number of cells of a bucket in a block
LEAST_BLOCKS = 4  # blocks with different outer variables mix better than few blocks
WIDTH = 8  # largest number of variables of a separator, unless the caller chooses it
WHOLE_LOG2_CELLS = 18.0  # log2 of the largest number of cells of a block with all variables; about 10 ms for an update
MOST_WHOLE_LOG2_CELLS = 24.0  # the same with a long time limit; about 0.7 s and 0.5 GB
PENALTY = 2.0  # penalty of an entry of -inf at the inverse temperature 1/2, in nats
MOST_REJECTIONS = 0.6  # largest rejection rate of exchanges that the temperatures are tuned for
_UPDATE_SECONDS = 7e-8  # approximate time in which one update of a replica reads a table cell, for each unit of width
_WHOLE_CELL_SECONDS = 4e-8  # approximate time of an update of a block with all variables, for each cell of a bucket
_WHOLE_CELL_BYTES = 48.0  # twice the memory of a block for each cell of a bucket
_WHOLE_SHARE = 1 / 8  # largest fraction of the time limit that one update of a block with all variables may take
_SET_UP_SECONDS = 7e-6  # approximate time to lay out the blocks of one factor or one variable
_FIRST_ROUNDS = 16  # rounds before the first change of the temperatures
_SLICE_SECONDS = 0.1  # approximate time between two checks of the clock and of Ctrl-C
_SHARED_ROUNDS = 32  # largest number of rounds between these checks at which several threads share a round


def find_blocks(
    sizes: Sequence[int], scopes: Sequence[tuple[int, ...]], width: int, rng: np.random.Generator
) -> list[Int32s]:
    """Search for blocks of variables that together contain all variables.

    The search for a block eliminates variables greedily, the cheapest first. If every elimination would be too
    expensive, a variable of high degree is left out of the block. Variables that are in no earlier block are left out
    last.

    Args:
        sizes: Number of states of each variable.
        scopes: Variables of each factor.
        width: Largest number of variables of a separator: 0 gives single variables, 1 gives forests.
        rng: Source of randomness for ties.

    Returns:
        int32[k] for each block, its variables in the order of their elimination.
    """
    n = len(sizes)
    if width == 0:
        return list(np.arange(n, dtype=np.int32).reshape(n, 1))
    starts, neighbours = adjacency(n, scopes)
    log_sizes = np.log2(np.asarray(sizes, np.float64))
    is_missing = np.ones(n, np.uint8)
    blocks: list[Int32s] = []
    while is_missing.any() or len(blocks) < LEAST_BLOCKS:
        ties = rng.random(n)
        blocks.append(find_block(starts, neighbours, log_sizes, width, MOST_LOG2_CELLS, ties, is_missing))
    return blocks


def find_whole_block(reduced: ReducedGraph, log2_cells: float, seconds: float = math.inf) -> Int32s | None:
    """Search for an elimination order of all variables, as exact inference does.

    Args:
        reduced: The graph.
        log2_cells: log2 of the largest number of cells of all buckets together.
        seconds: Approximate time limit of the search in seconds.

    Returns:
        int32[n], the variables in the order of their elimination; None if no order was found.
    """
    sizes = np.array(reduced.sizes, np.int32)
    order = find_elimination_order(sizes, reduced.scopes, seconds=seconds, limit=log2_cells)
    return order.order if order.log2_cells <= log2_cells else None


def affordable_whole_log2_cells(seconds: float, n_chains: int) -> float:
    """Return log2 of the number of table cells up to which time and memory allow one block of all variables.

    Args:
        seconds: The time limit of one `Ensemble` in seconds; infinity is no limit.
        n_chains: Number of ensembles, which have tables of their own.
    """
    if seconds == math.inf:
        return WHOLE_LOG2_CELLS
    n_cells = min(_WHOLE_SHARE * seconds / _WHOLE_CELL_SECONDS, free_memory() / (_WHOLE_CELL_BYTES * n_chains))
    return float(np.clip(math.log2(max(n_cells, 1.0)), 0.0, MOST_WHOLE_LOG2_CELLS))


def set_up_seconds(reduced: ReducedGraph) -> float:
    """Return the approximate time in seconds to build an `Ensemble`, the replicas of a graph at several temperatures.

    Args:
        reduced: The graph.
    """
    return _SET_UP_SECONDS * (len(reduced.scopes) + len(reduced.variables))


def update_seconds(reduced: ReducedGraph, width: int) -> float:
    """Return the approximate time of one update of all blocks of one replica, in seconds.

    Args:
        reduced: The graph.
        width: Largest number of variables of a separator in a block.
    """
    return _UPDATE_SECONDS * max(width, 1) * sum([table.size for table in reduced.tables])


def affordable_width(reduced: ReducedGraph, width: int, n_updates: int, seconds: float) -> int:
    """Halve ``width``, the width of blocks, until a number of updates fit into a time limit, but not below 1.

    Args:
        reduced: The graph.
        width: The preferred width.
        n_updates: Number of updates of all blocks of one replica.
        seconds: Time limit of one ensemble in seconds, with the time to build it; infinity is no limit.

    Returns:
        The width, at most ``width``.
    """
    limit = seconds - set_up_seconds(reduced)
    while width > 1 and n_updates * update_seconds(reduced, width) > limit:
        width //= 2
    return width


def affordable_replicas(reduced: ReducedGraph, width: int, n_replicas: int, seconds: float) -> int:
    """Reduce ``n_replicas`` until about 16 rounds of one ensemble fit into a time limit, but not below 2.

    Args:
        reduced: The graph.
        width: Largest number of variables of a separator in a block.
        n_replicas: Largest number of replicas.
        seconds: The time limit in seconds; infinity is no limit.

    Returns:
        Number of replicas, at most ``n_replicas``.
    """
    most = seconds / (_FIRST_ROUNDS * max(update_seconds(reduced, width), 1e-9))
    return max(min(n_replicas, 2), int(min(n_replicas, most)))


def penalties_of(betas: Floats) -> Floats:
    """Return the penalty for -inf entries at each inverse temperature: from 0 at beta = 0 to infinity at beta = 1.

    Args:
        betas: float64[R], inverse temperatures from 0 to 1.

    Returns:
        float64[R], the log-potential that is subtracted for each -inf entry.
    """
    with np.errstate(divide="ignore"):
        return PENALTY * betas / (1 - betas)


def equalise_rejections(betas: Floats, rejection_rates: Floats) -> Floats:
    """Choose inverse temperatures so that all exchanges are rejected equally often, at a rate of at most 0.6.

    The sum of the rejection rates between the inverse temperatures 1 and beta depends little on the temperatures in
    between. The sum is interpolated linearly in beta (Syed et al. 2022, Algorithm 4). If the temperatures are too few
    to reach 0 at this rate, the last inverse temperature is positive.

    Args:
        betas: float64[R], inverse temperatures from 1 down, R >= 2.
        rejection_rates: float64[R - 1], the rejection rate between neighbouring temperatures.

    Returns:
        float64[R], the new inverse temperatures, from 1 down.
    """
    n_replicas, target = len(betas), MOST_REJECTIONS * (len(betas) - 1)
    barrier: Floats = np.zeros(n_replicas)
    barrier[1:] = np.cumsum(np.maximum(rejection_rates, 1e-3))
    if barrier[-1] < target and betas[-1] > 0:  # the rates below the last one are unknown: extend in steps
        betas, barrier = np.append(betas, betas[-1] / 2 if betas[-1] > 0.01 else 0.0), np.append(barrier, target)
    return np.interp(np.linspace(0, min(float(barrier[-1]), target), n_replicas), barrier, betas)


def mixing_ratio(half: tuple[Floats, Floats], whole: tuple[Floats, Floats]) -> float:
    """Return the ratio of the differences between chains to the differences within chains.

    The result is the larger ratio of the means over all variables, and of the largest differences of a variable. The
    second ratio is large if only a few variables stay in different modes.

    Args:
        half: Sums of marginals after half of the rounds, and counts of summands (see `TemperedRun.sums`).
        whole: The same after all rounds.

    Returns:
        About 1 if all chains mix, and more if chains stay in different modes; infinity if a variable has no record.
    """
    counts = whole[1] - half[1]
    if not whole[0].size or (half[1] == 0).any() or (counts == 0).any():
        return math.inf
    first, second = half[0] / half[1], (whole[0] - half[0]) / counts
    # [chains, n]: mean difference of each variable between one half of a chain and the other half of the k-th previous
    differences = np.array([np.abs(first - np.roll(second, k, axis=0)).mean(axis=(0, 2)) for k in range(len(first))])
    own, others = differences[0], differences[1:].mean(axis=0)
    return float(max(others.mean() / max(own.mean(), 1e-12), others.max() / max(own.max(), 1e-12)))


@dataclass(slots=True, eq=False)
class Ensemble:
    """Replicas of one graph at several inverse temperatures, and the tuning of these temperatures.

    Attributes:
        replicas: The replicas; replica 0 has the inverse temperature 1.
        betas: float64[R], the inverse temperatures.
    """

    replicas: Replicas
    betas: Floats

    @classmethod
    def of(
        cls, reduced: ReducedGraph, n_replicas: int, width: int, rng: np.random.Generator, start: Int32s | None = None
    ) -> Ensemble:
        """Build replicas with the state ``start`` or random states, and evenly spaced inverse temperatures from 1 to 0.

        Args:
            reduced: The graph.
            n_replicas: Number of replicas; a single replica has the inverse temperature 1.
            width: Largest number of variables of a separator in a block.
            rng: Source of randomness.
            start: int32[n], the initial state of all replicas; None draws their states.

        Returns:
            The ensemble.

        Raises:
            NotEnoughMemory: The tables of all replicas do not fit into memory.
        """
        n_bytes = 8.0 * (n_replicas + 1) * sum(table.size for table in reduced.tables)
        check_memory(n_bytes, f"{n_replicas} replicas of this graph", "use fewer replicas")
        return cls.with_blocks(reduced, n_replicas, find_blocks(reduced.sizes, reduced.scopes, width, rng), rng, start)

    @classmethod
    def of_whole_block(cls, reduced: ReducedGraph, block: Int32s, rng: np.random.Generator) -> Ensemble:
        """Build one replica that is updated as one block, and draw its state from the graph.

        Args:
            reduced: The graph.
            block: int32[n], all variables in the order of their elimination.
            rng: Source of randomness.

        Returns:
            The ensemble. Its state is impossible only if -inf entries forbid every joint state.
        """
        ensemble = cls.with_blocks(reduced, 1, [block], rng)
        ensemble.advance(1, False)
        return ensemble

    @classmethod
    def with_blocks(
        cls,
        reduced: ReducedGraph,
        n_replicas: int,
        blocks: list[Int32s],
        rng: np.random.Generator,
        start: Int32s | None = None,
    ) -> Ensemble:
        """Build replicas that are updated in the given blocks; `Ensemble.of` chooses the blocks itself.

        Args:
            reduced: The graph.
            n_replicas: Number of replicas.
            blocks: The variables of each block, in the order of their elimination.
            rng: Source of randomness.
            start: int32[n], the initial state of all replicas; None draws their states.

        Returns:
            The ensemble before its first round.
        """
        betas = np.linspace(1, 0, n_replicas) if n_replicas > 1 else np.ones(1)
        key = int(rng.integers(2**62))
        replicas = Replicas(reduced.sizes, reduced.scopes, reduced.tables, blocks, betas, penalties_of(betas), key)
        if start is not None:
            replicas.states = np.tile(start, (n_replicas, 1))
        return cls(replicas, betas)

    def advance(self, n_rounds: int, record: bool) -> None:
        """Run rounds of tempered sampling.

        Args:
            n_rounds: Number of rounds.
            record: Add up the conditional marginals of replica 0.
        """
        while n_rounds > 0:
            n_rounds -= self.replicas.advance(n_rounds, record)

    def adapt(self) -> None:
        """Change the temperatures to equalise the rejection rates, provided that a possible state has been visited."""
        if len(self.betas) > 1 and self.replicas.best_log_potential > -math.inf:
            self.betas = equalise_rejections(self.betas, self.replicas.rejection_rates)
            self.replicas.set_temperatures(self.betas, penalties_of(self.betas))

    def make_possible(self, possible: Int32s | None = None) -> None:
        """Give replica 0 a possible state if -inf entries of the graph forbid its state.

        The new state is the best state that the ensemble has visited or, if it has visited no possible state,
        ``possible``.

        Args:
            possible: int32[n], a possible state for ensembles that have not visited one.
        """
        if self.replicas.best_log_potential > -math.inf:
            possible = self.replicas.best
        if self.replicas.energies[0, 1] > 0 and possible is not None:
            states = self.replicas.states
            states[0] = possible
            self.replicas.states = states


@dataclass(slots=True, eq=False)
class TemperedRun:
    """Run of independent ensembles in threads. Results do not depend on the number of threads.

    If there are at least twice as many threads as ensembles and a round takes milliseconds, the threads share the
    replicas of each ensemble. They wait for each other before each exchange of states.

    Attributes:
        reduced: The graph.
        ensembles: The ensembles.
        n_threads: Number of threads.
        piece: Number of rounds between two checks of the clock; it adapts to the speed of the rounds.
        n_recorded: Number of completed rounds that were recorded.
    """

    reduced: ReducedGraph
    ensembles: list[Ensemble]
    n_threads: int
    piece: int = field(default=1, init=False)
    n_recorded: int = field(default=0, init=False)

    def tune(self, n_rounds: int, until: float = math.inf, possible: Int32s | None = None) -> None:
        """Run all ensembles in stages of 16, 32, 64, ... rounds, and adapt the temperatures after each stage.

        Args:
            n_rounds: Total number of rounds.
            until: Reading of `time.perf_counter` at which the tuning ends early. The search by min-conflicts may then
                take as long as the tuning.
            possible: int32[n], a possible state for ensembles that have not visited one; None searches for a state by
                min-conflicts, and then by a solver for satisfiability if it is installed.

        Raises:
            ImpossibleGraph: No possible state was visited, and a solver proved that there is none.
        """
        length, budget = _FIRST_ROUNDS, until - perf_counter()
        while n_rounds > 0 and perf_counter() < until:
            done = self.advance(min(length, n_rounds), until=until)
            if done >= _FIRST_ROUNDS:
                for ensemble in self.ensembles:
                    ensemble.adapt()
            n_rounds, length = n_rounds - done, 2 * length
        if possible is None and self.best() is None:
            compiled, latest = compile_tables(self.reduced.factor_graph()), perf_counter() + budget
            repaired = (resolve_conflicts(compiled, state, key, latest) for key, state in enumerate(self.states()))
            possible = next((state for state in repaired if state is not None), None)
            if possible is None and has_solver():
                possible = find_possible_state(self.reduced)
        for ensemble in self.ensembles:
            ensemble.make_possible(possible)

    def make_possible(self) -> None:
        """Replace forbidden states at the inverse temperature 1 by the best allowed states found so far.

        Each ensemble (the replicas of one chain) uses its own best state or, if it has visited no allowed state, the
        best state of all ensembles. If no ensemble has visited an allowed state, nothing changes.
        """
        best = self.best()
        for ensemble in self.ensembles:
            ensemble.make_possible(best)

    def states(self) -> Int32s:
        """Return the states of all ensembles at the inverse temperature 1, int32[ensembles, variables]."""
        return np.array([ensemble.replicas.states[0] for ensemble in self.ensembles], np.int32)

    def advance(self, n_rounds: int, *, record: bool = False, until: float = math.inf) -> int:
        """Run all ensembles for a number of rounds or until a deadline; return the number of completed rounds.

        Args:
            n_rounds: Largest number of rounds.
            record: Record the marginals of the replicas at the inverse temperature 1.
            until: Reading of `time.perf_counter` at which the run ends early.
        """
        done = 0
        n_workers = min(self.n_threads // len(self.ensembles), min(len(each.betas) for each in self.ensembles))
        for each in self.ensembles:
            if each.replicas.n_workers < n_workers:
                each.replicas.n_workers = n_workers
        with ThreadPoolExecutor(self.n_threads) as pool:
            while done < n_rounds and (perf_counter() < until):
                began, length = perf_counter(), min(self.piece, n_rounds - done)
                if n_workers > 1 and self.piece <= _SHARED_ROUNDS:
                    self._share_rounds(pool, length, record)
                else:
                    for future in [pool.submit(each.advance, length, record) for each in self.ensembles]:
                        future.result()
                done += length
                self.n_recorded += length * record
                seconds = perf_counter() - began
                if seconds < _SLICE_SECONDS / 2 and length == self.piece:
                    self.piece *= 2
                elif seconds > 2 * _SLICE_SECONDS:
                    self.piece = max(1, self.piece // 2)
        return done

    def _share_rounds(self, pool: ThreadPoolExecutor, n_rounds: int, record: bool) -> None:
        """Run rounds of all ensembles; the replicas of each ensemble are updated by several threads."""
        parts = [(each.replicas, worker) for each in self.ensembles for worker in range(each.replicas.n_workers)]
        for _ in range(n_rounds):
            for future in [pool.submit(replicas.update_share, worker, record) for replicas, worker in parts]:
                future.result()
            for each in self.ensembles:
                each.replicas.exchange_states()

    def marginals(self) -> Floats | None:
        """Return the averages of the recorded conditional marginals of all variables, concatenated in one array.

        The result is None if a variable has no record.

        Returns:
            float64, one entry for each state of each variable; or None.
        """
        sums, counts = (each.sum(axis=0) for each in self.sums())
        if (counts == 0).any():
            return None
        rows = zip(sums / counts, self.reduced.sizes, strict=True)
        return np.concatenate([np.zeros(0), *(row[:size] for row, size in rows)])

    def sums(self) -> tuple[Floats, Floats]:
        """Return sums of recorded conditional marginals [ensembles, n, K], and counts of summands [ensembles, n, 1]."""
        pairs = [each.replicas.marginal_sums for each in self.ensembles]
        return np.array([sums for sums, _ in pairs]), np.array([counts[:, None] for _, counts in pairs], np.float64)

    def disagreement(self) -> float:
        """Return how much the marginals of two halves of the ensembles differ.

        The result is the mean over the variables of the largest difference of a state's probability. It is infinite if
        there is one ensemble, or if an ensemble has no record of a variable.
        """
        sums, counts = self.sums()
        if len(sums) == 1 or (counts == 0).any():
            return math.inf
        marginals = sums / counts
        difference = np.abs(marginals[::2].mean(axis=0) - marginals[1::2].mean(axis=0))
        return float(difference.max(axis=1, initial=0.0).mean()) if marginals.size else 0.0

    def best(self) -> Int32s | None:
        """Return the best joint state of all ensembles, int32[n]; return None if no possible state was visited."""
        replicas = max((each.replicas for each in self.ensembles), key=lambda each: each.best_log_potential)
        return replicas.best if replicas.best_log_potential > -math.inf else None
