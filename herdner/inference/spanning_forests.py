"""Distributions over spanning forests of a factor graph in which each factor has a positive probability."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from herdner.base.arrays import Floats, Int32s


@dataclass(frozen=True, slots=True, eq=False)
class SpanningForest:
    """Maximal set of factors without a cycle.

    Attributes:
        factors: int32[n], the factors.
        receivers: int32[n], for each factor the slot of the variable that receives its message, from the leaves to the
            roots (see `FactorLayout`).
    """

    factors: Int32s
    receivers: Int32s

    @classmethod
    def of(cls, scopes: Sequence[Sequence[int]], n_variables: int, order: Iterable[int]) -> SpanningForest:
        """Build a forest of the factors in ``order``; skip factors that would close a cycle (Kruskal's algorithm).

        Args:
            scopes: The variables of each factor.
            n_variables: Number of variables.
            order: The factors in the order in which they are added.

        Returns:
            The forest.
        """
        parent = list(range(n_variables))

        def root(v: int) -> int:
            while parent[v] != v:
                parent[v] = parent[parent[v]]
                v = parent[v]
            return v

        chosen: list[int] = []
        for factor in order:
            roots = {root(v) for v in scopes[factor]}
            if len(roots) == len(scopes[factor]):
                target = roots.pop()
                for other in roots:
                    parent[other] = target
                chosen.append(factor)
        return cls(np.array(chosen, np.int32), _receivers(scopes, n_variables, chosen))


def _receivers(scopes: Sequence[Sequence[int]], n_variables: int, chosen: Sequence[int]) -> Int32s:
    """Return, for each factor of a forest, the slot (factor, variable) of its variable nearest to the root."""
    first_slot = np.concatenate([[0], np.cumsum([len(scope) for scope in scopes], dtype=np.int64)])
    factors_of: list[list[int]] = [[] for _ in range(n_variables)]
    for factor in chosen:
        for v in scopes[factor]:
            factors_of[v].append(factor)
    used: set[int] = set()
    seen = [False] * n_variables
    receivers: list[int] = []
    for start in range(n_variables):
        waiting = [] if seen[start] else [start]
        seen[start] = True
        while waiting:
            v = waiting.pop()
            for factor in factors_of[v]:
                if factor in used:
                    continue
                used.add(factor)
                receivers.append(int(first_slot[factor]) + list(scopes[factor]).index(v))
                for u in scopes[factor]:
                    if not seen[u]:
                        seen[u] = True
                        waiting.append(u)
    return np.array(receivers[::-1], np.int32)


@dataclass(slots=True, eq=False)
class ForestDistribution:
    """Distribution over spanning forests.

    Attributes:
        scopes: The variables of each factor of the graph.
        n_variables: Number of variables.
        forests: The forests.
        probabilities: The probability of each forest; their sum is 1.
    """

    scopes: Sequence[Sequence[int]]
    n_variables: int
    forests: list[SpanningForest]
    probabilities: list[float]

    @classmethod
    def cover_factors(cls, scopes: Sequence[Sequence[int]], n_variables: int) -> ForestDistribution:
        """Build a uniform distribution over forests that together contain every factor.

        Each forest first adds the factors that occur in the fewest earlier forests.

        Args:
            scopes: The variables of each factor.
            n_variables: Number of variables.

        Returns:
            The distribution.

        Raises:
            ValueError: A scope is empty, repeats a variable or has a variable that does not exist.
        """
        for f, scope in enumerate(scopes):
            if not len(scope) or len(set(scope)) < len(scope) or not all(0 <= v < n_variables for v in scope):
                raise ValueError(
                    f"scope {f} must consist of distinct variables from 0 to {n_variables - 1}, got {list(scope)}"
                )
        counts = np.zeros(len(scopes), np.int64)
        forests: list[SpanningForest] = []
        while not forests or not counts.all():
            forest = SpanningForest.of(scopes, n_variables, np.argsort(counts, kind="stable").tolist())
            counts[forest.factors] += 1
            forests.append(forest)
        return cls(scopes, n_variables, forests, [1 / len(forests)] * len(forests))

    def appearance_probabilities(self) -> Floats:
        """Return, for each factor, the probability that a random forest contains it, float64[F]."""
        totals = np.zeros(len(self.scopes))
        for forest, probability in zip(self.forests, self.probabilities, strict=True):
            totals[forest.factors] += probability
        return np.minimum(totals, 1.0)

    def heaviest(self, weights: Floats) -> SpanningForest:
        """Return a forest of large total weight; the weight is maximal if all factors have at most two variables.

        Args:
            weights: float64[F], the weight of each factor.
        """
        return SpanningForest.of(self.scopes, self.n_variables, np.argsort(-weights, kind="stable").tolist())

    def mix_with(self, forest: SpanningForest, step: float) -> ForestDistribution:
        """Return the mixture of this distribution, with weight 1 - ``step``, and one forest, with weight ``step``.

        Args:
            forest: The forest.
            step: Its weight in the mixture, from 0 to 1.
        """
        probabilities = [(1 - step) * probability for probability in self.probabilities]
        return ForestDistribution(self.scopes, self.n_variables, [*self.forests, forest], [*probabilities, step])
