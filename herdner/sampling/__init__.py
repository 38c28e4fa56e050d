"""Plain values around sampling and inference."""

from __future__ import annotations

from herdner.sampling.annealing import Annealing, as_annealing, geometric, linear
from herdner.sampling.result import Result

__all__ = ["Annealing", "Result", "as_annealing", "geometric", "linear"]
