"""Reduction of the quick run: fewer examples of Hypothesis, and a part of each grid of options."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import settings

# The full run has as many examples as each law asks for; the quick one a fifth of them.
settings.register_profile("full", max_examples=100, deadline=None)
settings.register_profile("quick", max_examples=20, deadline=None)


def examples(full: int) -> settings:
    """``@examples(200)`` above ``@given``: 200 examples in the full run, in the quick one the share of its profile."""
    share = settings.default.max_examples / 100
    return settings(max_examples=max(3, round(share * full)), deadline=None)


def pairwise(*axes: Sequence[Any], fits: Callable[[Any, Any], bool] = lambda first, second: True) -> list[Any]:
    """Parameters of a test: every combination of the ``axes`` whose first two values ``fits`` lets through.

    The quick run takes as many of them as it needs to meet each value of one axis with each value of every other;
    the rest is marked slow.
    """
    places = itertools.product(*(range(len(axis)) for axis in axes))
    every = [chosen for chosen in places if fits(axes[0][chosen[0]], axes[1][chosen[1]])]
    quick = _meeting_all_pairs(every)
    return [
        pytest.param(
            *(axis[i] for axis, i in zip(axes, chosen, strict=True)), marks=() if chosen in quick else pytest.mark.slow
        )
        for chosen in every
    ]


def _meeting_all_pairs(combinations: list[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Select repeatedly the combination with most new pairs, until no pair is new."""
    pairs = {chosen: set(itertools.combinations(enumerate(chosen), 2)) for chosen in combinations}
    missing, met = set().union(*pairs.values()), set()
    while missing:
        best = max(pairs, key=lambda chosen: len(pairs[chosen] & missing))
        met.add(best)
        missing -= pairs[best]
    return met
