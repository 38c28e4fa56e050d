"""What the quick run leaves to the full one: most examples of Hypothesis, and what is left of a grid of options."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
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


def pairwise(*axes: Sequence[Any], fits: Callable[[Any, Any], bool] = lambda first, second: True) -> list[Any]:
    """Parameters of a test: every combination of the ``axes`` whose first two values ``fits`` lets through.

    The quick run takes as many of them as it needs to meet each value of one axis with each value of every other;
    the rest is marked slow.
    """

    def allowed(places: Sequence[int]) -> bool:
        return len(places) < 2 or fits(axes[0][places[0]], axes[1][places[1]])

    places = [range(len(axis)) for axis in axes]
    met = {tuple(chosen) for chosen in AllPairs([list(axis) for axis in places], filter_func=allowed)}
    return [
        pytest.param(
            *(axis[i] for axis, i in zip(axes, chosen, strict=True)), marks=() if chosen in met else pytest.mark.slow
        )
        for chosen in filter(allowed, itertools.product(*places))
    ]
