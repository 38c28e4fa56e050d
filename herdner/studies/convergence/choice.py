"""Which error bound c a run of bounded-error Gibbs should have, by the preliminary experiment of HGW19 Sec. 5.4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from herdner.base.arrays import Floats, Int64s
from herdner.base.checks import check_integer
from herdner.base.seeds import Seed, generator
from herdner.graph.tables import Graph, compile_tables
from herdner.inference.backends.gibbs import Gibbs, bounded_error_gibbs, plain_gibbs
from herdner.inference.gibbs.sharing import Sharing, blanket_sharing
from herdner.inference.record import Record

_KEPT = Record(best=False)
_HALVINGS = 3  # over which the fall is told
_LEAST_FALL = 0.25  # exponent of 1 / T; that of Gibbs sampling is 1 / 2, of a bias 0


@dataclass(frozen=True, slots=True, eq=False)
class ErrorBoundChoice:
    """The error bound of a sampler that `choose_error_bound` found best, and what it tried.

    Attributes:
        error_bound: The smallest c of those tried whose difference from Gibbs sampling still falls at the end of the
            run; None where none does, as Gibbs sampling alone has no bias then.
        tried: The values of c, rising.
        lengths: int64[4], an eighth, a quarter, half of the sweeps and all.
        differences: float64[tried, 4], the mean over runs and variables of ``|marginal - marginal of Gibbs sampling|``.
        falls: float64[tried], the exponents of 1 / T that these fall by.
    """

    error_bound: float | None
    tried: tuple[float, ...]
    lengths: Int64s
    differences: Floats
    falls: Floats


def choose_error_bound(
    graph: Graph,
    n_sweeps: int,
    tried: Sequence[float] = (0.0, 1.0, 3.0, 10.0, 30.0),
    *,
    sharing: Sharing | None = None,
    runs: int = 8,
    seed: Seed = None,
) -> ErrorBoundChoice:
    """Runs bounded-error Gibbs with each c beside Gibbs sampling, for the very number of sweeps that are wanted.

    As long as the bias of c does not show, their marginals come nearer to each other like 1 / sqrt(T); where it shows,
    they stop (HGW19 Sec. 5.4: "then we have to increase c"). A fall by less than T^-1/4 counts as a stop: the paper
    gives no number. A rule of thumb, no bound. Time: twice that of ``runs`` (1 + len(tried)) runs.
    """
    n_sweeps, runs = check_integer(n_sweeps, "n_sweeps", 2**_HALVINGS), check_integer(runs, "runs", 1)
    values = tuple(float(c) for c in tried)
    if not values or sorted(values) != list(values) or values[0] < 0:
        raise ValueError(f"tried must be rising error bounds of at least 0, not {list(tried)}")
    compiled, rng = compile_tables(graph), generator(seed)
    lengths = np.array([n_sweeps >> k for k in reversed(range(_HALVINGS + 1))], np.int64)

    def marginals(plan: Gibbs, child: int) -> Floats:
        results = [replace(plan, n_sweeps=int(n)).infer(compiled, child).marginals for n in lengths]
        return np.array(results)

    differences = np.zeros((len(values), len(lengths)))
    for one, other in rng.integers(0, 2**63, (runs, 2)).tolist():
        reference = marginals(plain_gibbs(record=_KEPT), one)
        for k, c in enumerate(values):
            plan = bounded_error_gibbs(
                error_bound=c, sharing=blanket_sharing() if sharing is None else sharing, record=_KEPT
            )
            differences[k] += np.abs(marginals(plan, other) - reference).mean(axis=(1, 2)) / runs
    logs = np.log(np.maximum(differences, 1e-300))
    falls = -np.polyfit(np.log(lengths), logs.T, 1)[0]
    enough: list[int] = np.flatnonzero(falls >= _LEAST_FALL).tolist()
    return ErrorBoundChoice(values[enough[0]] if enough else None, values, lengths, differences, falls)
