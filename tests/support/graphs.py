"""Random small graphs for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from herdner.graph import FactorGraph, TableFactors


def random_group(rng, sizes, scopes, *, forbidden=0.0, integers=False, scaled=True) -> TableFactors:
    """Factors over ``scopes``, all of variables with the same numbers of labels; some share tables."""
    shape = [sizes[i] for i in scopes[0]]
    n_tables = int(rng.integers(1, len(scopes) + 1))
    tables = rng.normal(size=(n_tables, *shape)) * 2
    if integers:
        tables = np.round(tables)
    tables[rng.random(tables.shape) < forbidden] = -np.inf
    scale = rng.integers(1, 4, len(scopes)).astype(float) if scaled else None
    return TableFactors(np.array(scopes), tables, rng.integers(0, n_tables, len(scopes)), scale)


def grouped(sizes, scopes) -> list[list[tuple[int, ...]]]:
    """The scopes that can form one group each: equal numbers of labels."""
    groups: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for scope in scopes:
        groups.setdefault(tuple(sizes[i] for i in scope), []).append(scope)
    return list(groups.values())


@st.composite
def any_graphs(draw, *, max_variables=5, forbidden=(0.0, 0.15), integers=False):
    """Factors of 0 to 3 variables over up to 5 variables of 1 to 3 labels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(0, max_variables))
    sizes = rng.integers(1, 4, n)
    scopes = [tuple(rng.choice(n, a, replace=False).tolist()) for a in rng.integers(0, min(n, 3) + 1, 6)]
    share = draw(st.sampled_from(forbidden))
    groups = [random_group(rng, sizes, part, forbidden=share, integers=integers) for part in grouped(sizes, scopes)]
    return FactorGraph(sizes, groups)


@st.composite
def path_graphs(draw, *, forbidden=(0.0, 0.2), integers=False):
    """Graphs whose components are paths: variables in any order, 1 to 4 labels each, several factors on an edge in
    either direction, tables tied and scaled at random, constants.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(0, 6))
    sizes = rng.integers(1, 5, n) if draw(st.booleans()) else np.full(n, draw(st.integers(1, 3)))
    order = rng.permutation(n) if draw(st.booleans()) else np.arange(n)
    scopes = [(int(i),) for i in rng.integers(0, n, rng.integers(0, 2 * n + 1))] + [()]
    for left, right in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
        for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2]))):
            scopes.append((left, right) if draw(st.sampled_from([True, True, False])) else (right, left))
    share = draw(st.sampled_from(forbidden))
    groups = [random_group(rng, sizes, part, forbidden=share, integers=integers) for part in grouped(sizes, scopes)]
    return FactorGraph(sizes, groups)
