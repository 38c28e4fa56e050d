"""Plain values around sampling and inference."""

from __future__ import annotations

from herdner.sampling.annealing import Annealing, as_annealing, geometric, linear
from herdner.sampling.driving import LFSR, Driving, Sobol
from herdner.sampling.result import Result

__all__ = ["LFSR", "Annealing", "Driving", "Result", "Sobol", "as_annealing", "geometric", "linear"]
