"""The factor graph: variables with domains, and groups of factors over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s
from herdner.base.checks import check_variables
from herdner.graph.domain import Discrete, Domains
from herdner.graph.factors import Factors


class ImpossibleGraph(ValueError):
    """No state of a graph has a log-potential above -inf."""


@dataclass(frozen=True, slots=True, eq=False)
class FactorGraph:
    """log p(x) = the sum of all factors at x, less log Z.

    Whether domains and factors fit each other is checked here, once.

    Args:
        domains: A value such as `Labels`, or simply the number of labels of each of the V variables.
        factors: Groups such as `TableFactors`.
    """

    domains: Domains
    factors: tuple[Factors, ...]

    def __init__(self, domains: Domains | ArrayLike, factors: Sequence[Factors]) -> None:
        whole = domains if hasattr(domains, "select") else Discrete(domains)  # type: ignore[arg-type]
        object.__setattr__(self, "domains", whole)
        object.__setattr__(self, "factors", tuple(factors))
        for g, group in enumerate(self.factors):
            try:
                group.check(self.domains)
            except ValueError as error:
                raise ValueError(f"group {g}: {error}") from None

    @property
    def n_variables(self) -> int:
        """V."""
        return len(self.domains)

    def log_potential(self, x: ArrayLike) -> Floats:
        """The sum of all factors at ``x``: a number for one state [V], float64[P] for P states [P, V]."""
        points = self.domains.points(x)
        total = np.zeros(len(points))
        for group in self.factors:
            total += group.log_potential(points)
        return total if np.ndim(x) == 2 else total[0]

    def blanket(self, variable: int) -> Int32s:
        """The Markov blanket: all other variables that share a factor with this one, in rising order."""
        check_variables(np.array([variable]), self.n_variables)
        shared = [group.scopes[(group.scopes == variable).any(axis=1)].ravel() for group in self.factors]
        together = np.unique(np.concatenate([np.empty(0, np.int32), *shared]))
        return together[together != variable]

    def condition(self, observed: Mapping[int, float]) -> FactorGraph:
        """The graph of the other variables, in their old order, given ``observed`` (variable -> value).

        Its log-potential equals this graph's at the completed state: factors that are observed whole stay as constants.
        """
        variables = np.array(list(observed), np.int64)
        given = np.array(list(observed.values())) if observed else np.empty(0, np.int64)
        check_variables(variables, self.n_variables)
        self.domains.select(variables).points(given)
        values = np.zeros(self.n_variables, given.dtype)
        values[variables] = given
        is_observed = np.zeros(self.n_variables, bool)
        is_observed[variables] = True
        renumber = (np.cumsum(~is_observed) - 1).astype(np.int32)
        factors = [part for group in self.factors for part in group.condition(values, is_observed, renumber)]
        return FactorGraph(self.domains.select(np.flatnonzero(~is_observed)), factors)
