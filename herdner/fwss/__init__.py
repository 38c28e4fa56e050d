"""Frank-Wolfe Stein sampling and its relatives: continuous distributions as few, well-placed particles (FWSS18)."""

from __future__ import annotations

from herdner.fwss.regression import LogisticRegression, NeuralRegression
from herdner.fwss.targets import Target, eleven_gaussians, gaussian_mixture, target

__all__ = [
    "LogisticRegression",
    "NeuralRegression",
    "Target",
    "eleven_gaussians",
    "gaussian_mixture",
    "target",
]
