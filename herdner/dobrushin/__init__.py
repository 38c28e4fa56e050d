"""Dobrushin influence, what it certifies of a scan, and scans that are optimised by it (Mitliagkas & Mackey 2017)."""

from __future__ import annotations

from herdner.dobrushin.block_scans import certified_order, optimise_blocks
from herdner.dobrushin.blocks import BlockInfluence, block_influence
from herdner.dobrushin.certificate import Certificate
from herdner.dobrushin.estimate import InfluenceEstimate
from herdner.dobrushin.influence import (
    Influence,
    TotalInfluence,
    binary_bound,
    binary_pairwise_bound,
    exact_influence,
    pairwise_bound,
    tightest,
)
from herdner.dobrushin.marginals import MarginalBounds, marginal_bounds
from herdner.dobrushin.optimise import OptimisedScan, Search, optimise_scan, shortest_scan
from herdner.dobrushin.rates import rate_bound
from herdner.dobrushin.target_variables import Targets, everything, uncertain, variables
from herdner.dobrushin.variation import (
    Importance,
    Steps,
    coupling_bounds,
    dobrushin_variation,
    importance_of,
    marginal_bound,
    targets,
    variation_curve,
    weighted_bound,
)

__all__ = [
    "BlockInfluence", "Certificate", "Importance", "Influence", "InfluenceEstimate", "MarginalBounds", "OptimisedScan",
    "Search", "Steps", "Targets", "TotalInfluence", "binary_bound", "binary_pairwise_bound", "block_influence",
    "certified_order", "coupling_bounds", "dobrushin_variation", "everything", "exact_influence", "importance_of",
    "marginal_bound", "marginal_bounds", "optimise_blocks", "optimise_scan", "pairwise_bound", "rate_bound",
    "shortest_scan", "targets", "tightest", "uncertain", "variables", "variation_curve", "weighted_bound",
]  # fmt: skip
