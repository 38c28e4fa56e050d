"""The plan of a sampler of the Gibbs family: scan, sharing, error bound, annealing and other options as one value.

As in HGW19 Algorithm 6, an update has two parts: sharing selects a weight, then the state is drawn.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext.gibbs import ENUMERATIONS
from herdner.base.arrays import frozen
from herdner.base.checks import check_counts
from herdner.graph.scan import Scan, systematic_scan
from herdner.inference.gibbs.annealing import Annealing, as_annealing
from herdner.inference.gibbs.driving import DrivingSequence
from herdner.inference.gibbs.sharing import Sharing
from herdner.inference.record import Record

MOST_SWEEPS = 2**32 - 1  # counts have 32 bits
MOST_CHAINS = 2**16  # the arrays of all chains are allocated before the first sweep
MOST_THREADS = 1024  # threads that share a sweep wait for each other, so all must exist at once


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of Gibbs sampling and herded Gibbs sampling.

    Attributes:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that marginals, counts and samples leave out.
        sharing: Rule that selects the herding weight of an update; None draws at random (Gibbs sampling).
        error_bound: Constant c of HGW19 Algorithms 7 and 8: herd if the largest weight exceeds c, else draw at random.
            0 always herds, infinity never does.
        scan: Order of the updates in a sweep.
        annealing: Inverse temperatures; None is 1 throughout.
        dummy_edges: int[D, 2], additional pairs of neighbours in the keys of ``blanket`` sharing, which have the effect
            of pairs with coupling zero. With all pairs, blanket sharing becomes complete sharing (HGW19 Sec. 3.2).
        form: Herding update. "threshold" draws by the sign of the weight and then adds the probability (HG16 Algorithm
            1, HGW19 Algorithm 5); "circular" adds the probability first and draws by the carry. With one probability
            per weight, the forms differ only in the initial weights (HG16 eq. 9). If several probabilities share a
            weight (bins), the draw of the circular form depends on the probability of the current update. The error of
            the circular form is then smaller for few bins, but not for one bin in long runs
            (scripts/papers/herding_forms.py).
        driving: Sequence of uniform numbers for quasi-Monte Carlo Gibbs, `LFSR` or `Sobol`; None is a random generator.
        n_chains: Number of independent runs; the result holds the average of their marginals and their best state.
        n_threads: Number of threads. None is one for each run, up to the number of processors. In a single run, several
            threads share each sweep, which requires a ``checkerboard`` or ``jacobi`` scan. The result does not depend
            on the number of threads.
        weight_memory: Largest number of bytes for herding weights. They are stored in a dense table or, if it would be
            too large, in a hash table of the keys that occur.
        record: Results to record.
        loop: "general" uses the loop for arbitrary graphs, for comparison; it gives the same states as "auto".
    """

    n_sweeps: int = 1000
    burn_in: int = 0
    sharing: Sharing | None = None
    error_bound: float = 0.0
    scan: Scan = field(default_factory=systematic_scan)
    annealing: Annealing | ArrayLike | None = None
    dummy_edges: ArrayLike | None = None
    form: Literal["circular", "threshold"] = "circular"
    driving: DrivingSequence | None = None
    n_chains: int = 1
    n_threads: int | None = None
    weight_memory: int = 2**30
    record: Record = field(default_factory=Record)
    loop: Literal["auto", "general"] = "auto"

    def __post_init__(self) -> None:
        """Convert options that are strings; raise ``ValueError`` for options that are out of range or inconsistent."""
        _check_counts(self)
        for name, words in (("form", ENUMERATIONS["form"]), ("loop", ("auto", "general"))):
            if getattr(self, name) not in words:
                raise ValueError(f"{name} must be {' or '.join(words)}, not {getattr(self, name)!r}")
        if not isinstance(self.error_bound, Real) or not self.error_bound >= 0:
            raise ValueError(
                f"error_bound must be a number of at least 0 (0 makes every update herded), not {self.error_bound!r}"
            )
        for name, kind in (("sharing", Sharing), ("scan", Scan), ("record", Record), ("driving", DrivingSequence)):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, kind.from_text(value))
            elif not (isinstance(value, kind) or (value is None and name in ("sharing", "driving"))):
                raise ValueError(f"{name} must be {kind.SYNTAX}, not {value!r}")
        if self.error_bound and self.sharing is None:
            raise ValueError(
                f"error_bound={self.error_bound} needs herding weights, but sharing is not set; set for example"
                " sharing=blanket"
            )
        if self.driving is not None and not self.draws:
            raise ValueError(
                f"`driving` replaces random draws, but a sampler with sharing={self.sharing} makes no random draws;"
                " remove `driving`"
            )
        if self.annealing is not None:
            schedule = as_annealing(self.annealing)
            schedule.betas(self.n_sweeps)
            object.__setattr__(self, "annealing", schedule)
        if self.dummy_edges is not None:
            edges = frozen(self.dummy_edges, np.int32, "dummy_edges")
            if edges.ndim != 2 or edges.shape[1] != 2 or (edges[:, 0] == edges[:, 1]).any():
                raise ValueError(
                    f"dummy_edges must be pairs of different variables, of shape [D, 2], got {edges.tolist()!s:.80}"
                )
            if self.sharing is None or self.sharing.kind != "blanket":
                raise ValueError(
                    f"dummy_edges requires sharing=blanket, got sharing={self.sharing}; set sharing=blanket, or remove"
                    " dummy_edges"
                )
            object.__setattr__(self, "dummy_edges", tuple((left, right) for left, right in edges.tolist()))
        shares_sweeps = self.n_chains == 1 and (self.n_threads or 1) > 1
        if shares_sweeps and self.scan.kind not in ("checkerboard", "jacobi"):
            raise ValueError(
                f"several threads can share a sweep only if scan is checkerboard or jacobi, got scan={self.scan.kind}"
                f" and n_threads={self.n_threads}; set scan=checkerboard, or n_threads=1"
            )

    @property
    def herds(self) -> bool:
        """True if updates may use herding weights; False for plain Gibbs sampling."""
        return self.sharing is not None and self.error_bound < math.inf

    @property
    def draws(self) -> bool:
        """True if updates may use uniform random numbers."""
        return self.sharing is None or self.error_bound > 0 or self.sharing.kind == "random-bins"

    @property
    def threads(self) -> int:
        """Number of threads, which run several chains in parallel or share the sweeps of one chain."""
        return self.n_threads or (min(self.n_chains, os.cpu_count() or 1) if self.n_chains > 1 else 1)


def _check_counts(plan: Plan) -> None:
    """Raise ``ValueError`` if a number of sweeps, chains or threads is out of range."""
    check_counts(plan, n_sweeps=0, burn_in=0, n_chains=1, n_threads=1, weight_memory=1)
    for name, most, advice in (
        ("n_sweeps", MOST_SWEEPS, "use several runs (n_chains)"),
        ("n_chains", MOST_CHAINS, "run the plan with several seeds"),
        ("n_threads", MOST_THREADS, "None uses all processors"),
    ):
        if (number := getattr(plan, name) or 0) > most:
            raise ValueError(f"{name} must be at most {most}, not {number}; {advice}")
    if plan.burn_in and plan.burn_in >= plan.n_sweeps:
        raise ValueError(
            f"burn_in must be below n_sweeps={plan.n_sweeps}, got {plan.burn_in}; increase n_sweeps, or decrease"
            " burn_in"
        )
