"""Random numbers: seeds as generators."""

from __future__ import annotations

import numpy as np

Seed = int | np.random.Generator | None
"""A seed, or a generator; None takes fresh entropy."""


def generator(seed: Seed) -> np.random.Generator:
    """The generator of a seed, or the one that was given. ValueError for anything else."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(
            f"seed must be a whole number of at least 0, a numpy Generator, or None, not {seed!r}"
        ) from None


def child(seed: int | None, number: int) -> np.random.Generator:
    """The generator of child ``number`` of a seed: its numbers depend on these two alone."""
    try:
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    except (TypeError, ValueError):
        raise ValueError(f"seed must be a whole number of at least 0, or None, not {seed!r}") from None
