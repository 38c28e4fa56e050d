"""Plain values around sampling and inference."""

from __future__ import annotations

from herdner.sampling.annealing import Annealing, as_annealing, geometric, linear
from herdner.sampling.driving import LFSR, Driving, Sobol
from herdner.sampling.order import block_ranges, sweep_order
from herdner.sampling.plan import Plan
from herdner.sampling.points import Points
from herdner.sampling.record import Record
from herdner.sampling.scan import Scan, checkerboard, given, jacobi, random_scan, systematic
from herdner.sampling.sharing import Sharing, bins, blanket, complete_sharing, neighbour_sum, random_bins

__all__ = [
    "LFSR", "Annealing", "Driving", "Plan", "Points", "Record", "Scan", "Sharing", "Sobol", "as_annealing", "bins",
    "blanket", "block_ranges", "checkerboard", "complete_sharing", "geometric", "given", "jacobi", "linear",
    "neighbour_sum", "random_bins", "random_scan", "sweep_order", "systematic",
]  # fmt: skip
