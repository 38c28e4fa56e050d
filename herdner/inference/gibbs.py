"""The Gibbs family as one plan, scan x sharing x error bound x annealing (HGW19 Algorithm 6), and its named presets."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from numbers import Real
from time import perf_counter
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.graph.arrays import frozen
from herdner.graph.graph import FactorGraph
from herdner.graph.tables import TableGraph, compile_tables
from herdner.inference.runs import run_chains
from herdner.sampling.annealing import Annealing, as_annealing, linear
from herdner.sampling.driving import LFSR, Driving
from herdner.sampling.record import Record
from herdner.sampling.result import Result
from herdner.sampling.scan import Scan, checkerboard, given, jacobi, random_scan, systematic
from herdner.sampling.sharing import Sharing, bins, blanket, random_bins

__all__ = [
    "Gibbs", "annealed_gibbs", "bounded_error", "checkerboard", "dhg", "gibbs", "given", "herded_gibbs", "jacobi",
    "qmc_gibbs", "random_scan", "rdhg", "systematic",
]  # fmt: skip


_SYSTEMATIC, _BLANKET, _RECORD, _RISING, _REGISTER = systematic(), blanket(), Record(), linear(0.1, 4.0), LFSR()


@dataclass(frozen=True, slots=True)
class Gibbs:
    """Gibbs sampling and herded Gibbs sampling in all their variants.

    n_sweeps       traversals of the scan; ``burn_in`` of them are left out of marginals, counts and samples
    sharing        which herding weight an update uses (`herdner.sampling.sharing`); None draws at random: Gibbs
    error_bound    c of HGW19 Algorithms 7, 8: herd only where the largest weight exceeds c, otherwise draw at random; 0
                   always herds, infinity never does
    scan           the order of a sweep (`herdner.sampling.scan`)
    annealing      inverse temperatures; None is 1 throughout
    dummy_edges    [D, 2] pairs of variables that count as neighbours in ``blanket`` keys alone: pairs of coupling zero,
                   the steps between blanket and complete (HGW19 Sec. 3.2)
    form           "circular" adds the probability to the weight and then decides (HG16 eq. 9), "threshold" decides
                   first (HG16 Algorithm 1). For one fixed probability per weight they differ in the start only; where a
                   weight sees several (bins), circular decides by the present one
    numbers        "fixed": herding weights in units of 2^-32, exactly reproducible; "float64" for study
    driving        where uniform numbers come from: None is the generator, else `LFSR` or `Sobol` (quasi-random Gibbs)
    n_chains       independent chains, run side by side in threads: marginals are their averages, the state their best
    n_threads      threads; with one chain they share each sweep, which needs the scan ``checkerboard`` or ``jacobi``.
                   None: as many as there are processors for several chains, one for one. Never changes the result
    weight_memory  bytes that herding weights may take: a dense table, else a hash table of the keys that are met
    record         what is kept (`Record`)
    loop           "general" uses the loop that fits any graph, for study: it gives the same states
    """

    n_sweeps: int = 1000
    burn_in: int = 0
    sharing: Sharing | None = None
    error_bound: float = 0.0
    scan: Scan = field(default_factory=systematic)
    annealing: Annealing | ArrayLike | None = None
    dummy_edges: ArrayLike | None = None
    form: Literal["circular", "threshold"] = "circular"
    numbers: Literal["fixed", "float64"] = "fixed"
    driving: Driving | None = None
    n_chains: int = 1
    n_threads: int | None = None
    weight_memory: int = 2**30
    record: Record = field(default_factory=Record)
    loop: Literal["auto", "general"] = "auto"

    def __post_init__(self) -> None:
        _check_counts(self)
        _check_words(self)
        if not isinstance(self.error_bound, Real) or not self.error_bound >= 0:
            raise ValueError(f"error_bound must be a number of at least 0 (0 always herds), not {self.error_bound!r}")
        for name, kind in (("sharing", Sharing), ("scan", Scan), ("record", Record), ("driving", Driving)):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, kind.from_text(value))
            elif not (isinstance(value, kind) or (value is None and name in ("sharing", "driving"))):
                raise ValueError(f"{name} must be {kind.WORDS}, not {value!r}")
        if self.annealing is not None:
            schedule = as_annealing(self.annealing)
            schedule.betas(self.n_sweeps)
            object.__setattr__(self, "annealing", schedule)
        if self.dummy_edges is not None:
            edges = frozen(self.dummy_edges, np.int32, "dummy_edges")
            if edges.ndim != 2 or edges.shape[1] != 2 or (edges[:, 0] == edges[:, 1]).any():
                raise ValueError("dummy_edges must be pairs [D, 2] of two different variables each")
            if self.sharing is None or self.sharing.kind != "blanket":
                raise ValueError("dummy_edges widen the keys of sharing=blanket(); they have no meaning for others")
            object.__setattr__(self, "dummy_edges", tuple(map(tuple, edges.tolist())))
        parallel = self.n_chains == 1 and (self.n_threads or 1) > 1
        if parallel and self.scan.kind not in ("checkerboard", "jacobi"):
            raise ValueError("threads can share a sweep only with scan=checkerboard (or jacobi); or set n_threads=1")

    @property
    def herds(self) -> bool:
        """Some update may be herded; otherwise this is plain Gibbs sampling."""
        return self.sharing is not None and self.error_bound < math.inf

    @property
    def threads(self) -> int:
        """How many threads a run takes."""
        return self.n_threads or (min(self.n_chains, os.cpu_count() or 1) if self.n_chains > 1 else 1)

    def infer(
        self,
        graph: FactorGraph | TableGraph,
        seed: int | np.random.Generator | None = None,
        *,
        start: ArrayLike | None = None,
    ) -> Result:
        """Runs the plan on one graph; time O(n_sweeps x factors).

        ``start`` int[V]: the first state, of log-potential above -inf; None draws one, and looks for one that no -inf
        forbids. Ctrl-C raises `Interrupted`, a KeyboardInterrupt whose ``result`` is what was recorded until then.
        ValueError where the start or an option does not fit the graph, or where the weights need too much memory.
        """
        began = perf_counter()
        compiled = compile_tables(graph)
        if not len(compiled.sizes):
            raise ValueError("the graph has no variables; a sampler needs at least one")
        self.scan.check(len(compiled.sizes))
        return run_chains(self, compiled, np.random.default_rng(seed), start, began)


def _check_words(plan: Gibbs) -> None:
    wanted = {"form": ("circular", "threshold"), "numbers": ("fixed", "float64"), "loop": ("auto", "general")}
    for name, words in wanted.items():
        value = getattr(plan, name)
        if value not in words:
            raise ValueError(f"{name} must be {' or '.join(words)}, not {value!r}")


def _check_counts(plan: Gibbs) -> None:
    wanted = {"n_sweeps": 0, "burn_in": 0, "n_chains": 1, "weight_memory": 1}
    if plan.n_threads is not None:
        wanted["n_threads"] = 1
    for name, least in wanted.items():
        value = getattr(plan, name)
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if plan.burn_in and plan.burn_in >= plan.n_sweeps:
        raise ValueError(
            f"burn_in, {plan.burn_in}, leaves none of {plan.n_sweeps} sweeps to record; raise n_sweeps or lower burn_in"
        )


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
