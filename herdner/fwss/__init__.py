"""Frank-Wolfe Stein sampling and its relatives: continuous distributions as few, well-placed particles (FWSS18)."""

from __future__ import annotations

from herdner.fwss.chains import hmc, sgld
from herdner.fwss.diagnostics import effective_sample_size, mmd2
from herdner.fwss.kernels import MixtureMean, SampleMean, median_bandwidth
from herdner.fwss.laplace import Laplace, laplace
from herdner.fwss.lazy import lazy_fwss
from herdner.fwss.local import local_fwss
from herdner.fwss.optimisers import Adam, Diverged, GradientAscent
from herdner.fwss.polytope import MarginalPolytope
from herdner.fwss.quadrature import quadrature_variance, quadrature_weights, stein_weights
from herdner.fwss.regression import LogisticRegression, NeuralRegression
from herdner.fwss.sample import block_fwss, cached_fwss, fwss
from herdner.fwss.stein import SteinField, ksd, ksd_bandwidth, stein_kernel
from herdner.fwss.stein_points import stein_points
from herdner.fwss.svgd import svgd
from herdner.fwss.targets import Target, eleven_gaussians, gaussian_mixture, target
from herdner.sampling import Points

__all__ = [
    "Adam", "Diverged", "GradientAscent", "Laplace", "LogisticRegression", "MarginalPolytope", "MixtureMean",
    "NeuralRegression", "Points", "SampleMean", "SteinField", "Target", "block_fwss", "cached_fwss",
    "effective_sample_size", "eleven_gaussians", "fwss", "gaussian_mixture", "hmc", "ksd", "ksd_bandwidth", "laplace",
    "lazy_fwss", "local_fwss", "median_bandwidth", "mmd2", "quadrature_variance", "quadrature_weights", "sgld",
    "stein_kernel", "stein_points", "stein_weights", "svgd", "target",
]  # fmt: skip
