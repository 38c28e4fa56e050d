"""Random number generators from seeds."""

from __future__ import annotations

import numpy as np

Seed = int | np.random.Generator | None
"""A non-negative integer, a generator, or None for fresh entropy."""


def generator(seed: Seed) -> np.random.Generator:
    """Convert a seed to a NumPy random number generator.

    Args:
        seed: A seed, or a generator that is returned as it is.

    Returns:
        The generator.

    Raises:
        ValueError: The seed is invalid.
    """
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(
            f"seed must be a whole number of at least 0, a numpy Generator, or None, not {seed!r}"
        ) from None


def child(seed: int | None, number: int) -> np.random.Generator:
    """Create the random number generator for part ``number`` of a computation; the parts have independent generators.

    Args:
        seed: The seed of the computation; None for fresh entropy.
        number: Index of the part. Equal seeds and indices give equal generators.

    Returns:
        The generator.

    Raises:
        ValueError: The seed is invalid.
    """
    try:
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    except (TypeError, ValueError):
        raise ValueError(f"seed must be a whole number of at least 0, or None, not {seed!r}") from None
