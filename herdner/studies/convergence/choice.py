"""Choice of the error bound c of bounded-error Gibbs, by the preliminary experiment of HGW19, Sec. 5.4."""

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

_RECORD = Record(best=False)
_HALVINGS = 3  # the decrease is fitted to T, T / 2, T / 4 and T / 8 sweeps
_MIN_FALL = 0.25  # smallest exponent a of a decrease T^-a; Gibbs sampling has 1 / 2, a constant bias has 0


@dataclass(frozen=True, slots=True, eq=False)
class ErrorBoundChoice:
    """Error bound that `choose_error_bound` selected, and the measured sampling error for each candidate bound.

    Attributes:
        error_bound: The smallest candidate c whose difference from Gibbs sampling still decreases at the end of the
            run. None if there is no such c; only Gibbs sampling has no bias then.
        candidates: The candidates for c, in increasing order.
        lengths: int64[4], the numbers of sweeps: an eighth, a quarter, half, and all.
        differences: float64[candidates, 4], the mean over runs and variables of ``|marginal - marginal of Gibbs
            sampling|``.
        falls: float64[candidates], the exponent a of the fitted decrease T^-a of each difference.
    """

    error_bound: float | None
    candidates: tuple[float, ...]
    lengths: Int64s
    differences: Floats
    falls: Floats


def choose_error_bound(
    graph: Graph,
    n_sweeps: int,
    candidates: Sequence[float] = (0.0, 1.0, 3.0, 10.0, 30.0),
    *,
    sharing: Sharing | None = None,
    runs: int = 8,
    seed: Seed = None,
) -> ErrorBoundChoice:
    """Choose the error bound c of bounded-error Gibbs for a run of ``n_sweeps`` sweeps (HGW19, Sec. 5.4).

    Each candidate is compared with Gibbs sampling. The difference of their marginals decreases like 1 / sqrt(T) until
    it is about as large as the bias of c; then the difference stops decreasing (HGW19, Sec. 5.4: "then we have to
    increase c"). The paper does not define when it stops; here a decrease slower than T^-1/4 counts as a stop. This
    criterion is a heuristic, not a bound. The choice takes about twice the time of ``runs * (1 + candidates)`` runs of
    ``n_sweeps`` sweeps.

    Args:
        graph: The graph.
        n_sweeps: Number of sweeps of the planned run, at least 8.
        candidates: Candidates for c, in increasing order.
        sharing: Weight sharing of the sampler; by default `blanket_sharing`.
        runs: Number of runs to average.
        seed: Random seed or generator.

    Returns:
        The smallest suitable error bound, and the measured differences of all candidates.

    Raises:
        ValueError: An argument is out of range.
    """
    n_sweeps, runs = check_integer(n_sweeps, "n_sweeps", 2**_HALVINGS), check_integer(runs, "runs", 1)
    values = tuple(float(c) for c in candidates)
    if not values or sorted(values) != list(values) or not all(c >= 0 for c in values):
        raise ValueError(f"`candidates` must be increasing error bounds of at least 0, got {list(candidates)}")
    compiled, rng = compile_tables(graph), generator(seed)
    sharing = blanket_sharing() if sharing is None else sharing
    lengths = np.array([n_sweeps >> k for k in reversed(range(_HALVINGS + 1))], np.int64)

    def marginals(plan: Gibbs, child: int) -> Floats:
        return np.array([replace(plan, n_sweeps=int(n)).infer(compiled, child).marginals for n in lengths])

    differences = np.zeros((len(values), len(lengths)))
    for one, other in rng.integers(0, 2**63, (runs, 2)).tolist():
        reference = marginals(plain_gibbs(record=_RECORD), one)
        for k, c in enumerate(values):
            plan = bounded_error_gibbs(error_bound=c, sharing=sharing, record=_RECORD)
            differences[k] += np.abs(marginals(plan, other) - reference).mean(axis=(1, 2)) / runs
    logs = np.log(np.maximum(differences, 1e-300))
    falls = -np.polyfit(np.log(lengths), logs.T, 1)[0]
    suitable: list[int] = np.flatnonzero(falls >= _MIN_FALL).tolist()
    return ErrorBoundChoice(values[suitable[0]] if suitable else None, values, lengths, differences, falls)
