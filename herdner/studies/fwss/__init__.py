"""Frank-Wolfe Stein sampling and related samplers: weighted particles for continuous distributions (FWSS18)."""

from __future__ import annotations

from herdner.studies.fwss.chains import hmc, sgld
from herdner.studies.fwss.common import Adam, DivergenceError, GradientAscent
from herdner.studies.fwss.kernels import MixtureMean, SampleMean, median_bandwidth
from herdner.studies.fwss.lazy import lazy_fwss
from herdner.studies.fwss.local import LaplaceApproximation, fit_laplace, local_fwss
from herdner.studies.fwss.particles import stein_points, svgd
from herdner.studies.fwss.points import Points, effective_sample_size, mmd2
from herdner.studies.fwss.polytope import MarginalPolytope
from herdner.studies.fwss.quadrature import quadrature_variance, quadrature_weights, stein_weights
from herdner.studies.fwss.regression import LogisticRegression, NeuralRegression
from herdner.studies.fwss.sample import block_fwss, cached_fwss, fwss
from herdner.studies.fwss.stein import SteinField, ksd, ksd_bandwidth, stein_kernel
from herdner.studies.fwss.targets import Target, density_target, eleven_gaussians, gaussian_mixture

__all__ = [
    "Adam", "DivergenceError", "GradientAscent", "LaplaceApproximation", "LogisticRegression", "MarginalPolytope",
    "MixtureMean", "NeuralRegression", "Points", "SampleMean", "SteinField", "Target", "block_fwss", "cached_fwss",
    "density_target", "effective_sample_size", "eleven_gaussians", "fit_laplace", "fwss", "gaussian_mixture", "hmc",
    "ksd", "ksd_bandwidth", "lazy_fwss", "local_fwss", "median_bandwidth", "mmd2", "quadrature_variance",
    "quadrature_weights", "sgld", "stein_kernel", "stein_points", "stein_weights", "svgd",
]  # fmt: skip
