"""Dobrushin influence, certificates of Gibbs scans, and optimised scans (Mitliagkas and Mackey 2017, DoGS17)."""

from __future__ import annotations

from herdner.dobrushin.blocks import BlockInfluence, block_influence, certify_block_order, optimise_blocks
from herdner.dobrushin.certificate import Certificate
from herdner.dobrushin.influence import (
    Influence,
    TotalInfluence,
    binary_bound,
    binary_pairwise_bound,
    exact_influence,
    pairwise_bound,
    tightest_influence,
)
from herdner.dobrushin.marginals import MarginalBounds, marginal_bounds
from herdner.dobrushin.optimise import InfluenceEstimate, OptimisedScan, ScanSearch, optimise_scan, shortest_scan
from herdner.dobrushin.variation import (
    Importance,
    ScanSteps,
    TargetVariables,
    all_variables,
    coupling_bounds,
    dense_importance,
    dobrushin_variation,
    marginal_bound,
    rate_bound,
    selected_variables,
    uncertain_variables,
    unit_importance,
    variation_curve,
    weighted_bound,
)

__all__ = [
    "BlockInfluence", "Certificate", "Importance", "Influence", "InfluenceEstimate", "MarginalBounds",
    "OptimisedScan", "ScanSearch", "ScanSteps", "TargetVariables", "TotalInfluence", "all_variables",
    "binary_bound", "binary_pairwise_bound", "block_influence", "certify_block_order", "coupling_bounds",
    "dense_importance", "dobrushin_variation", "exact_influence", "marginal_bound", "marginal_bounds",
    "optimise_blocks", "optimise_scan", "pairwise_bound", "rate_bound", "selected_variables", "shortest_scan",
    "tightest_influence", "uncertain_variables", "unit_importance", "variation_curve", "weighted_bound",
]  # fmt: skip
