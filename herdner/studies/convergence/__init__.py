"""Convergence of samplers of the Gibbs family: measures and bounds of the parts of their error on small graphs.

The page "Which backend when" of the documentation recommends samplers by graph and number of sweeps.
"""

from __future__ import annotations

from herdner.studies.convergence.choice import ErrorBoundChoice, choose_error_bound
from herdner.studies.convergence.correlation import CorrelationEstimate
from herdner.studies.convergence.counts import VisitCounts, count_visits, focus_variable
from herdner.studies.convergence.errors import (
    ErrorParts,
    Lambdas,
    approx_bound,
    best_bins,
    choose_bins,
    expectation_error,
    herding_bound,
    rao_blackwell_bound,
    rao_blackwell_error,
)
from herdner.studies.convergence.exact import Focus, dobrushin_coefficient, gibbs_kernel, joint_distribution
from herdner.studies.convergence.theorem import Convergence

__all__ = [
    "Convergence", "CorrelationEstimate", "ErrorBoundChoice", "ErrorParts", "Focus", "Lambdas", "VisitCounts",
    "approx_bound", "best_bins", "choose_bins", "choose_error_bound", "count_visits", "dobrushin_coefficient",
    "expectation_error", "focus_variable", "gibbs_kernel", "herding_bound", "joint_distribution",
    "rao_blackwell_bound", "rao_blackwell_error",
]  # fmt: skip
