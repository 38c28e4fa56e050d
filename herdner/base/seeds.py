"""Random numbers: seeds as generators."""

from __future__ import annotations

import numpy as np


def generator(seed: int | np.random.Generator | None) -> np.random.Generator:
    """The generator of a seed, or the one that was given; None takes fresh entropy. ValueError for anything else."""
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
