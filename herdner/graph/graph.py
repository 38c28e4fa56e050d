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
    """Error: every joint state of a graph has log-potential -inf."""


class UnsupportedGraph(ValueError):
    """Error: an algorithm cannot handle a graph. The message names the obstacle and an alternative."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FactorGraph:
    """A factor graph: the log-probability of a joint state x is the sum of all factors at x, minus log Z.

    Attributes:
        domains: The domains of the V variables, such as `Discrete`.
        factors: Groups of factors, such as `TableFactors`.
    """

    domains: Domains
    factors: tuple[Factors, ...]

    def __init__(self, domains: Domains | ArrayLike, factors: Sequence[Factors]) -> None:
        """Store the domains and the factors; check that the factors fit the domains.

        Args:
            domains: The domains of the variables, or int[V], the number of states of each variable.
            factors: Groups of factors.

        Raises:
            ValueError: A group of factors does not fit the domains.
        """
        values = domains if hasattr(domains, "select") else Discrete(domains)  # type: ignore[arg-type]
        object.__setattr__(self, "domains", values)
        object.__setattr__(self, "factors", tuple(factors))
        for g, group in enumerate(self.factors):
            try:
                group.check(self.domains)
            except ValueError as error:
                raise ValueError(f"group {g}: {error}") from None

    def __repr__(self) -> str:
        """Return the numbers of variables, states and factors in one line."""
        n, sizes, n_groups = self.n_variables, getattr(self.domains, "sizes", None), len(self.factors)
        states = ""
        if sizes is not None and n:
            fewest, most = int(sizes.min()), int(sizes.max())
            states = f" of {most} states" if fewest == most else f" of {fewest} to {most} states"
        n_factors = sum(len(group.scopes) for group in self.factors)
        return f"FactorGraph({n:,} variables{states}, {n_factors:,} factors in {n_groups} groups)"

    @property
    def n_variables(self) -> int:
        """Number of variables in the graph, V."""
        return len(self.domains)

    def log_potential(self, x: ArrayLike) -> Floats:
        """Return the unnormalised log-probability of x: the sum of all factors at x.

        Args:
            x: The values of all variables, [V], or P points [P, V].

        Returns:
            A number for one point, float64[P] for P points.

        Raises:
            ValueError: A value is outside its domain.
        """
        points = self.domains.points(x)
        total = np.zeros(len(points))
        for group in self.factors:
            total += group.log_potential(points)
        return total if np.ndim(x) == 2 else total[0]

    def blanket(self, variable: int) -> Int32s:
        """Return the Markov blanket of a variable: all variables that share a factor with it, in ascending order.

        Args:
            variable: Index of the variable.

        Raises:
            ValueError: The variable does not exist.
        """
        check_variables(np.array([variable]), self.n_variables)
        shared = [group.scopes[(group.scopes == variable).any(axis=1)].ravel() for group in self.factors]
        together = np.unique(np.concatenate([np.empty(0, np.int32), *shared]))
        return together[together != variable]

    def condition(self, observed: Mapping[int, float]) -> FactorGraph:
        """Fix the observed variables, and return the graph of the remaining variables in their original order.

        Its log-potential at a point equals that of this graph at the point completed by the observed values: factors
        whose variables are all observed become constants.

        Args:
            observed: The value of each observed variable.

        Raises:
            ValueError: A variable does not exist, or a value is outside its domain.
        """
        variables = np.array(list(observed), np.int64)
        evidence = np.array(list(observed.values())) if observed else np.empty(0, np.int64)
        check_variables(variables, self.n_variables)
        self.domains.select(variables).points(evidence)
        values = np.zeros(self.n_variables, evidence.dtype)
        values[variables] = evidence
        is_observed = np.zeros(self.n_variables, bool)
        is_observed[variables] = True
        renumber = (np.cumsum(~is_observed) - 1).astype(np.int32)
        factors = [part for group in self.factors for part in group.condition(values, is_observed, renumber)]
        return FactorGraph(self.domains.select(np.flatnonzero(~is_observed)), factors)
