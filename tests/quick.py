"""What the quick run leaves to the full one: most examples of Hypothesis, and what is left of a grid of options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from allpairspy import AllPairs
from hypothesis import settings

# The full run has as many examples as each law asks for; the quick one a fifth of them.
settings.register_profile("full", max_examples=100, deadline=None)
settings.register_profile("quick", max_examples=20, deadline=None)


def examples(full: int) -> settings:
    """``@examples(200)`` above ``@given``: 200 examples in the full run, in the quick one the share of its profile."""
    share = settings.get_profile(settings.get_current_profile_name()).max_examples / 100
    return settings(max_examples=max(3, round(share * full)), deadline=None)


def pairwise(*axes: Sequence[Any]) -> list[Any]:
    """Parameters of a test: every combination of the ``axes``.

    The quick run takes as many of them as it needs to meet each value of one axis with each value of every other;
    the rest is marked slow.
    """
    every = [()]
    for axis in axes:
        every = [(*combination, i) for combination in every for i in range(len(axis))]
    met = {tuple(combination) for combination in AllPairs([list(range(len(axis))) for axis in axes])}
    return [
        pytest.param(
            *(axis[i] for axis, i in zip(axes, combination, strict=True)),
            marks=() if combination in met else pytest.mark.slow,
        )
        for combination in every
    ]
