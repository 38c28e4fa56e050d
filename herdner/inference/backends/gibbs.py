"""The Gibbs family as a backend, and its named presets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.seeds import generator
from herdner.graph.graph import FactorGraph
from herdner.graph.tables import TableGraph, compile_tables
from herdner.inference.backend import SAMPLES, Takes
from herdner.inference.gibbs.run import sample
from herdner.inference.result import Result
from herdner.sampling.annealing import Annealing, linear
from herdner.sampling.driving import LFSR, Driving
from herdner.sampling.plan import Plan
from herdner.sampling.record import Record
from herdner.sampling.scan import Scan, systematic
from herdner.sampling.sharing import Sharing, bins, blanket, random_bins

_SYSTEMATIC, _BLANKET, _RECORD, _RISING, _REGISTER = systematic(), blanket(), Record(), linear(0.1, 4.0), LFSR()


@dataclass(frozen=True, slots=True)
class Gibbs(Plan):
    """Gibbs sampling and herded Gibbs sampling in all their variants: a plan that can be run.

    The options are those of `herdner.sampling.Plan`, which describes them.
    """

    takes: ClassVar[Takes] = SAMPLES

    def infer(
        self,
        graph: FactorGraph | TableGraph,
        seed: int | np.random.Generator | None = None,
        *,
        start: ArrayLike | None = None,
        record: Record | None = None,
    ) -> Result:
        """Runs the plan on one graph; time O(n_sweeps x factors).

        ``start`` int[V]: the first state, of log-potential above -inf; None draws one, and looks for one that no -inf
        forbids. Entries of -inf, as of tag schemes, can cut the states into parts between which no change of one
        variable leads: a run stays in the part of its start, and its marginals are of that part. Ctrl-C raises
        `Interrupted`, a KeyboardInterrupt whose ``result`` is what was recorded until then.
        ValueError where the start or an option does not fit the graph, or where the weights need too much memory.
        """
        began = perf_counter()
        compiled = compile_tables(graph)
        if not len(compiled.sizes):
            raise ValueError("the graph has no variables; a sampler needs at least one")
        self.scan.check(len(compiled.sizes))
        plan = self if record is None else replace(self, record=record)
        return sample(plan, compiled, generator(seed), start, began)


def gibbs(
    n_sweeps: int = 1000,
    burn_in: int = 0,
    scan: Scan = _SYSTEMATIC,
    n_chains: int = 1,
    n_threads: int | None = None,
    record: Record = _RECORD,
) -> Gibbs:
    """Gibbs sampling: each label drawn at random from its full conditional (HGW19 Algorithm 1)."""
    return Gibbs(n_sweeps, burn_in, scan=scan, n_chains=n_chains, n_threads=n_threads, record=record)


def annealed_gibbs(
    n_sweeps: int = 1000,
    annealing: Annealing = _RISING,
    scan: Scan = _SYSTEMATIC,
    n_chains: int = 1,
    n_threads: int | None = None,
    record: Record = _RECORD,
) -> Gibbs:
    """Gibbs sampling whose inverse temperature rises, in search of the best state (HG16 Sec. 4.4)."""
    return Gibbs(n_sweeps, scan=scan, annealing=annealing, n_chains=n_chains, n_threads=n_threads, record=record)


def herded_gibbs(
    n_sweeps: int = 1000,
    burn_in: int = 0,
    sharing: Sharing = _BLANKET,
    scan: Scan = _SYSTEMATIC,
    form: Literal["circular", "threshold"] = "circular",
    n_chains: int = 1,
    n_threads: int | None = None,
    weight_memory: int = 2**30,
    record: Record = _RECORD,
) -> Gibbs:
    """Herded Gibbs: each label decided by herding weights, by default one for each state of the blanket (HG16)."""
    return Gibbs(
        n_sweeps, burn_in, sharing, scan=scan, form=form, n_chains=n_chains, n_threads=n_threads,
        weight_memory=weight_memory, record=record,
    )  # fmt: skip


def dhg(
    n_sweeps: int = 1000,
    burn_in: int = 0,
    n_bins: int = 16,
    scan: Scan = _SYSTEMATIC,
    form: Literal["circular", "threshold"] = "circular",
    n_chains: int = 1,
    n_threads: int | None = None,
    record: Record = _RECORD,
) -> Gibbs:
    """Discretized herded Gibbs: one weight for each bin of the conditional probability (HGW19 Algorithm 5)."""
    return herded_gibbs(n_sweeps, burn_in, bins(n_bins), scan, form, n_chains, n_threads, record=record)


def rdhg(
    n_sweeps: int = 1000,
    burn_in: int = 0,
    n_bins: int = 16,
    scan: Scan = _SYSTEMATIC,
    n_chains: int = 1,
    n_threads: int | None = None,
    record: Record = _RECORD,
) -> Gibbs:
    """Randomly discretized herded Gibbs: a neighbouring grid probability, drawn, is herded (HGW19 Algorithm 9)."""
    return herded_gibbs(
        n_sweeps, burn_in, random_bins(n_bins), scan, n_chains=n_chains, n_threads=n_threads, record=record
    )


def bounded_error(
    n_sweeps: int = 1000,
    burn_in: int = 0,
    error_bound: float = 1.0,
    sharing: Sharing = _BLANKET,
    scan: Scan = _SYSTEMATIC,
    n_chains: int = 1,
    n_threads: int | None = None,
    weight_memory: int = 2**30,
    record: Record = _RECORD,
) -> Gibbs:
    """Bounded-error Gibbs: random draws, herded only where a weight exceeds the bound (HGW19 Algorithms 7 and 8)."""
    return Gibbs(
        n_sweeps, burn_in, sharing, error_bound, scan, form="threshold", n_chains=n_chains, n_threads=n_threads,
        weight_memory=weight_memory, record=record,
    )  # fmt: skip


def qmc_gibbs(
    n_sweeps: int = 1000,
    burn_in: int = 0,
    driving: Driving = _REGISTER,
    scan: Scan = _SYSTEMATIC,
    n_chains: int = 1,
    n_threads: int | None = None,
    record: Record = _RECORD,
) -> Gibbs:
    """Quasi-random Gibbs: the uniform numbers come from a driving sequence (MCQMC; HG16 Sec. 4.1, HGW19 Sec. 7)."""
    return Gibbs(n_sweeps, burn_in, scan=scan, driving=driving, n_chains=n_chains, n_threads=n_threads, record=record)
