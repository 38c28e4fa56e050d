"""The Gibbs family as one plan, scan x sharing x error bound x annealing: a plain value.

HGW19 Algorithm 6 is the cut between sharing, which weight, and the draw of the label; the other choices are others'.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import frozen
from herdner.base.checks import check_integer
from herdner.graph.scan import Scan, systematic_scan
from herdner.inference.gibbs.annealing import Annealing, as_annealing
from herdner.inference.gibbs.driving import Driving
from herdner.inference.gibbs.sharing import Sharing
from herdner.inference.record import Record

MOST_SWEEPS = 2**32 - 1  # counts have 32 bits
MOST_CHAINS = 2**16  # all are laid out before the first sweep
MOST_THREADS = 1024  # those that share a sweep wait for each other, so that all must be there


@dataclass(frozen=True, slots=True)
class Plan:
    """How a sampler of the Gibbs family goes about its work.

    Attributes:
        n_sweeps: Traversals of the scan; ``burn_in`` of them are left out of marginals, counts and samples.
        sharing: Which herding weight an update uses (`Sharing`); None draws at random: Gibbs.
        error_bound: c of HGW19 Algorithms 7, 8: herd only where the largest weight exceeds c, otherwise draw at random;
            0 always herds, infinity never does.
        scan: The order of a sweep (`Scan`).
        annealing: Inverse temperatures; None is 1 throughout.
        dummy_edges: [D, 2] pairs of variables that count as neighbours in ``blanket`` keys alone: pairs of coupling
            zero, the steps between blanket and complete (HGW19 Sec. 3.2).
        form: "threshold" decides by the sign of the weight and then adds the probability (HG16 Algorithm 1, HGW19
            Algorithm 5); "circular" adds it first, and the carry is the label. With one probability per weight they
            differ in the start only, as HG16 eq. 9 does, which turns the circle. Where a weight sees several (bins),
            circular decides by the present one: with few bins that is nearer to the truth, but not with one in long
            runs (scripts/papers/herding_forms.py).
        driving: Where uniform numbers come from: None is the generator, else `LFSR` or `Sobol` (quasi-random Gibbs).
        n_chains: Independent runs (Markov chains), side by side in threads: marginals are their averages, the state
            their best.
        n_threads: Threads; in one run they share each sweep, which needs the scan ``checkerboard`` or ``jacobi``.
            None: as many as there are processors for several runs, one for one. Never changes the result.
        weight_memory: Bytes that herding weights may take: a dense table, else a hash table of the keys that are met.
        record: What is kept (`Record`).
        loop: "general" uses the loop that fits any graph, for study: it gives the same states.
    """

    n_sweeps: int = 1000
    burn_in: int = 0
    sharing: Sharing | None = None
    error_bound: float = 0.0
    scan: Scan = field(default_factory=systematic_scan)
    annealing: Annealing | ArrayLike | None = None
    dummy_edges: ArrayLike | None = None
    form: Literal["circular", "threshold"] = "circular"
    driving: Driving | None = None
    n_chains: int = 1
    n_threads: int | None = None
    weight_memory: int = 2**30
    record: Record = field(default_factory=Record)
    loop: Literal["auto", "general"] = "auto"

    def __post_init__(self) -> None:
        _check_counts(self)
        for name, words in (("form", ("circular", "threshold")), ("loop", ("auto", "general"))):
            if getattr(self, name) not in words:
                raise ValueError(f"{name} must be {' or '.join(words)}, not {getattr(self, name)!r}")
        if not isinstance(self.error_bound, Real) or not self.error_bound >= 0:
            raise ValueError(f"error_bound must be a number of at least 0 (0 always herds), not {self.error_bound!r}")
        for name, kind in (("sharing", Sharing), ("scan", Scan), ("record", Record), ("driving", Driving)):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, kind.from_text(value))
            elif not (isinstance(value, kind) or (value is None and name in ("sharing", "driving"))):
                raise ValueError(f"{name} must be {kind.SYNTAX}, not {value!r}")
        if self.error_bound and self.sharing is None:
            raise ValueError("error_bound is about herding weights: give a sharing too, such as blanket()")
        if self.driving is not None and not self.draws:
            raise ValueError(f"driving feeds random draws, of which sharing={self.sharing} makes none; leave it out")
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
            object.__setattr__(self, "dummy_edges", tuple((left, right) for left, right in edges.tolist()))
        parallel = self.n_chains == 1 and (self.n_threads or 1) > 1
        if parallel and self.scan.kind not in ("checkerboard", "jacobi"):
            raise ValueError("threads can share a sweep only with scan=checkerboard (or jacobi); or set n_threads=1")

    @property
    def herds(self) -> bool:
        """Some update may be herded; otherwise this is plain Gibbs sampling."""
        return self.sharing is not None and self.error_bound < math.inf

    @property
    def draws(self) -> bool:
        """Some update may take a uniform number."""
        return self.sharing is None or self.error_bound > 0 or self.sharing.kind == "random-bins"

    @property
    def threads(self) -> int:
        """How many threads a run takes."""
        return self.n_threads or (min(self.n_chains, os.cpu_count() or 1) if self.n_chains > 1 else 1)


def _check_counts(plan: Plan) -> None:
    wanted = {"n_sweeps": 0, "burn_in": 0, "n_chains": 1, "weight_memory": 1}
    if plan.n_threads is not None:
        wanted["n_threads"] = 1
    for name, least in wanted.items():
        check_integer(getattr(plan, name), name, least)
    if plan.n_sweeps > MOST_SWEEPS:
        raise ValueError(f"n_sweeps must be at most {MOST_SWEEPS}, not {plan.n_sweeps}; make several runs (n_chains)")
    for name, most in (("n_chains", MOST_CHAINS), ("n_threads", MOST_THREADS)):
        if (getattr(plan, name) or 0) > most:
            raise ValueError(
                f"{name} must be at most {most}, not {getattr(plan, name)}; run the plan with several seeds"
            )
    if plan.burn_in and plan.burn_in >= plan.n_sweeps:
        raise ValueError(
            f"burn_in, {plan.burn_in}, leaves none of {plan.n_sweeps} sweeps to record; raise n_sweeps or lower burn_in"
        )
