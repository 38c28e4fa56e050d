"""How samplers of the Gibbs family converge: parts of their error, measured and bounded, on small graphs."""

from __future__ import annotations

from herdner.convergence.correlation import Correlation
from herdner.convergence.counts import Counts, count, focus
from herdner.convergence.enumeration import dobrushin_coefficient, gibbs_kernel, joint
from herdner.convergence.errors import (
    Errors,
    Lambdas,
    approx_bound,
    best_bins,
    choose_bins,
    expectation_error,
    herding_bound,
)
from herdner.convergence.focus import Focus
from herdner.convergence.theorem import Convergence

__all__ = [
    "Convergence", "Correlation", "Counts", "Errors", "Focus", "Lambdas", "approx_bound", "best_bins", "choose_bins",
    "count", "dobrushin_coefficient", "expectation_error", "focus", "gibbs_kernel", "herding_bound", "joint",
]  # fmt: skip
