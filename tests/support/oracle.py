"""The oracle of the tests: the joint distribution of a small model by plain enumeration, sharing no code with herdner.

A model is ``sizes``, the number of labels of each variable, and ``factors``, a list of ``(scope, table)``: a tuple of
variables and the array of log-potentials over their labels, scale included. `factors_of` reads them off a FactorGraph.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np


def factors_of(graph) -> list[tuple[tuple[int, ...], np.ndarray]]:
    factors = []
    for group in graph.factors:
        for scope, table, scale in zip(group.scopes, group.table_of_factor, group.scale, strict=True):
            factors.append((tuple(int(i) for i in scope), group.tables[table] * scale))
    return factors


def chain_factors(unary, tables, edge_table=None) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """One chain: unary [n, K] and the tables [T, K, K] of its edges."""
    factors = [((t,), row) for t, row in enumerate(unary)]
    for t in range(1, len(unary)):
        factors.append(((t - 1, t), tables[0 if edge_table is None else edge_table[t]]))
    return factors


@dataclass
class Oracle:
    """The states in the order of itertools.product, their log-potentials and probabilities."""

    sizes: tuple[int, ...]
    states: np.ndarray
    log_potentials: np.ndarray
    log_z: float
    probabilities: np.ndarray

    @classmethod
    def of(cls, sizes, factors) -> Oracle:
        sizes = tuple(int(k) for k in sizes)
        states = list(itertools.product(*(range(k) for k in sizes)))
        values = []
        for state in states:
            total = 0.0
            for scope, table in factors:
                total += float(table[tuple(state[i] for i in scope)])
            values.append(total)
        log_potentials = np.array(values)
        top = log_potentials.max()
        if top == -np.inf:
            return cls(
                sizes, np.array(states).reshape(len(states), -1), log_potentials, -np.inf, np.full(len(states), np.nan)
            )
        weights = np.exp(log_potentials - top)
        log_z = float(top + np.log(weights.sum()))
        return cls(sizes, np.array(states).reshape(len(states), -1), log_potentials, log_z, weights / weights.sum())

    @classmethod
    def of_graph(cls, graph) -> Oracle:
        return cls.of(graph.domains.sizes, factors_of(graph))

    @property
    def impossible(self) -> bool:
        return self.log_z == -np.inf

    def best(self) -> np.ndarray:
        """The state of largest log-potential; ties to the smallest label of the last variable, then the one before."""
        top = self.log_potentials.max()
        return min(
            (s for s, v in zip(self.states, self.log_potentials, strict=True) if v == top), key=lambda s: tuple(s[::-1])
        )

    def log_potential(self, state) -> float:
        return float(self.log_potentials[np.all(self.states == np.asarray(state), axis=1)][0])

    def probability(self, assignment: dict[int, int]) -> float:
        """P(the variables named have these labels)."""
        match = np.ones(len(self.states), bool)
        for variable, label in assignment.items():
            match &= self.states[:, variable] == label
        return float(self.probabilities[match].sum())

    def marginal(self, *scope: int) -> np.ndarray:
        """The joint marginal of the variables of a scope, in its order."""
        table = np.zeros([self.sizes[i] for i in scope])
        for state, p in zip(self.states, self.probabilities, strict=True):
            table[tuple(state[i] for i in scope)] += p
        return table

    def conditional(self, variable: int, others: dict[int, int]) -> np.ndarray:
        """P(variable | the others named); NaN where they are impossible."""
        joint = np.array([self.probability({**others, variable: k}) for k in range(self.sizes[variable])])
        with np.errstate(invalid="ignore"):
            return joint / joint.sum()

    def table_counts(self, graph) -> list[np.ndarray]:
        """For each group the derivative of log Z by its tables: the expected counts of their cells, times the scale."""
        counts = []
        for group in graph.factors:
            total = np.zeros(group.tables.shape)
            for scope, table, scale in zip(group.scopes, group.table_of_factor, group.scale, strict=True):
                total[table] += scale * self.marginal(*(int(i) for i in scope))
            counts.append(total)
        return counts
