"""Dobrushin influence, what it certifies of a scan, and scans that are optimised by it (Mitliagkas & Mackey 2017)."""

from __future__ import annotations

from herdner.dobrushin.blocks import BlockInfluence, block_influence, certified_order, optimise_blocks
from herdner.dobrushin.certificate import Certificate
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
from herdner.dobrushin.optimise import InfluenceEstimate, OptimisedScan, Search, optimise_scan, shortest_scan
from herdner.dobrushin.variation import (
    Importance,
    Steps,
    Targets,
    coupling_bounds,
    dobrushin_variation,
    everything,
    importance_of,
    marginal_bound,
    rate_bound,
    targets,
    uncertain,
    variables,
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
