"""Plans of Gibbs samplers and their parts, and the runs of a plan."""

from __future__ import annotations

from herdner.inference.gibbs.annealing import Annealing, as_annealing, geometric_annealing, linear_annealing
from herdner.inference.gibbs.driving import LFSR, DrivingSequence, Sobol
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.sharing import (
    Sharing,
    bin_sharing,
    blanket_sharing,
    complete_sharing,
    neighbour_sum_sharing,
    random_bin_sharing,
)

__all__ = [
    "LFSR", "Annealing", "DrivingSequence", "Plan", "Sharing", "Sobol", "as_annealing", "bin_sharing",
    "blanket_sharing", "complete_sharing", "geometric_annealing", "linear_annealing", "neighbour_sum_sharing",
    "random_bin_sharing",
]  # fmt: skip
