"""Denoising of pictures with two or a few labels by a Markov random field (HG16 Sec. 4.3, HGW19 Sec. 7)."""

from __future__ import annotations

from herdner.studies.denoising.estimation import estimate_parameters, pseudo_likelihood_coupling
from herdner.studies.denoising.model import Denoised, default_backend, denoise, posterior
from herdner.studies.denoising.noise import Flip, Gaussian, Noise, first_flip, first_gaussian

__all__ = [
    "Denoised", "Flip", "Gaussian", "Noise", "default_backend", "denoise", "estimate_parameters", "first_flip",
    "first_gaussian", "posterior", "pseudo_likelihood_coupling",
]  # fmt: skip
