"""Denoising of pictures with a few labels by a Markov random field (HG16, Sec. 4.3; HGW19, Sec. 7)."""

from __future__ import annotations

from herdner.studies.denoising.estimation import estimate_parameters, pseudo_likelihood_coupling
from herdner.studies.denoising.model import DenoisedPicture, default_backend, denoise, posterior_graph
from herdner.studies.denoising.noise import (
    FlipNoise,
    GaussianNoise,
    Noise,
    estimate_flip_noise,
    estimate_gaussian_noise,
)

__all__ = [
    "DenoisedPicture", "FlipNoise", "GaussianNoise", "Noise", "default_backend", "denoise", "estimate_flip_noise",
    "estimate_gaussian_noise", "estimate_parameters", "posterior_graph", "pseudo_likelihood_coupling",
]  # fmt: skip
