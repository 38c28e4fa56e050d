"""The factor graph: variables with domains, and groups of factors over them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    """A factor graph: the log-probability of a joint state is the sum of all factors' log-potentials, minus log Z.

    Attributes:
        domains: The domains of the V variables, such as `Discrete`.
        factors: Groups of factors, such as `TableFactors`.
        names: Distinct names of all variables, or None. `save_graph` stores them; .uai files do not.
        shape: Sides of a grid whose variables are numbered in row-major order, or None. `save_graph` stores it; .uai
            files do not.
        observed: Values of the cells of the grid that `condition` has fixed, by index of the cell; these cells have no
            variables. `save_graph` stores them.
    """

    domains: Domains
    factors: tuple[Factors, ...]
    names: tuple[str, ...] | None
    shape: tuple[int, ...] | None
    observed: Mapping[int, float]

    def __init__(
        self,
        domains: Domains | ArrayLike,
        factors: Sequence[Factors],
        *,
        names: Sequence[str] | None = None,
        shape: Sequence[int] | None = None,
        observed: Mapping[int, float] | None = None,
    ) -> None:
        """Store the domains and the factors; check that the factors fit the domains.

        Args:
            domains: The domains of the variables, or int[V], the number of states of each variable.
            factors: Groups of factors.
            names: Distinct names of all variables; None for variables without names.
            shape: Sides of a grid whose variables are numbered in row-major order; None for other graphs.
            observed: Values of the cells of the grid that have no variables, by index of the cell.

        Raises:
            ValueError: A group of factors, the names, the shape or the observed cells do not fit the domains.
        """
        values = domains if hasattr(domains, "select") else Discrete(domains)  # type: ignore[arg-type]
        object.__setattr__(self, "domains", values)
        object.__setattr__(self, "factors", tuple(factors))
        for g, group in enumerate(self.factors):
            try:
                group.check(self.domains)
            except ValueError as error:
                raise ValueError(f"group {g}: {error}") from None
        object.__setattr__(self, "names", None if names is None else _check_names(names, self.n_variables))
        object.__setattr__(self, "shape", None if shape is None else tuple(int(side) for side in shape))
        object.__setattr__(self, "observed", dict(observed or {}))
        if self.shape is None:
            if self.observed:
                raise ValueError("observed cells belong to a grid; pass `shape` too, or fix variables by `condition`")
            return
        n_cells = math.prod(self.shape)
        if n_cells != self.n_variables + len(self.observed):
            text = f" and {len(self.observed)} observed cells" if self.observed else ""
            raise ValueError(
                f"a grid of shape {self.shape} has {n_cells} variables, but the graph has {self.n_variables}{text}"
            )
        check_variables(np.array(list(self.observed), np.int64), n_cells, "observed: there is no")

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
        """Return the unnormalised log-probability of x, which is the sum of the log-potentials of all factors at x.

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

        Returns:
            int32[n], the indices of these variables without the variable itself.

        Raises:
            ValueError: The variable does not exist.
        """
        check_variables(np.array([variable]), self.n_variables)
        shared = [group.scopes[(group.scopes == variable).any(axis=1)].ravel() for group in self.factors]
        together = np.unique(np.concatenate([np.empty(0, np.int32), *shared]))
        return together[together != variable]

    def index(self, variable: int | str) -> int:
        """Return the index of a variable, given its name or its index.

        Args:
            variable: Name or index of the variable; an index is returned as it is.

        Raises:
            ValueError: The graph has no variable of this name.
        """
        if not isinstance(variable, str):
            return variable
        if self.names is None or variable not in self.names:
            raise ValueError(f"the graph has no variable named {variable!r}; pass an index or the name of a variable")
        return self.names.index(variable)

    def by_name(self, values: ArrayLike) -> dict[str, NDArray[Any]]:
        """Return a dictionary that maps the name of each variable to its entry or row of ``values``.

        Args:
            values: One entry or row per variable, such as the marginals [V, K] of a result.

        Returns:
            The entry or row of each variable, by the variable's name.

        Raises:
            ValueError: The graph has no names, or ``values`` does not have one row per variable.
        """
        if self.names is None:
            raise ValueError("the variables of this graph have no names; pass `names` to FactorGraph")
        return dict(zip(self.names, self._rows(values), strict=True))

    def on_grid(self, values: ArrayLike) -> NDArray[Any]:
        """Reshape an array of one row per variable to the shape of the grid, such as marginals [V, K] to [H, W, K].

        If `condition` has fixed some cells of the grid, these cells get their observed state in an array of states [V],
        and probability 1 of this state in an array of marginals [V, K].

        Args:
            values: One entry or row per variable.

        Returns:
            Array of the shape of the grid, followed by the axes of a row.

        Raises:
            ValueError: The graph has no shape, ``values`` does not have one row per variable, or it contains neither
                states nor marginals, but cells are observed.
        """
        if self.shape is None:
            raise ValueError("this graph is not a grid; pass `shape` to FactorGraph")
        rows = self._rows(values)
        if self.observed:
            rows = self._with_observed(rows)
        return rows.reshape(self.shape + rows.shape[1:])

    def _with_observed(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return one row per cell of the grid, given one row per variable: states [V] or marginals [V, K]."""
        states = np.array(list(self.observed.values()))
        is_marginals = rows.ndim == 2 and rows.dtype.kind == "f" and states.dtype.kind in "iu"
        kinds = rows.dtype.kind + states.dtype.kind  # integers and real numbers are not mixed
        is_states = rows.ndim == 1 and (set(kinds) <= set("iu") or kinds == "ff")
        if not is_marginals and not is_states:
            raise ValueError(
                "cells of this grid are observed, so values must be states [V] or marginals [V, K], got"
                f" {rows.dtype} of shape {rows.shape}"
            )
        n_states = max(rows.shape[1], int(states.max()) + 1) if is_marginals else 0
        return insert_observed(rows, self.observed, n_states)

    def _rows(self, values: ArrayLike) -> NDArray[Any]:
        rows = np.asarray(values)
        if rows.ndim == 0 or len(rows) != self.n_variables:
            raise ValueError(
                f"values must have one row for each of {self.n_variables} variables, got shape {rows.shape}"
            )
        return rows

    def condition(self, observed: Mapping[int, float] | Mapping[str, float]) -> FactorGraph:
        """Fix the observed variables, and return the graph of the remaining variables in their original order.

        The log-potential of the new graph at a point equals the log-potential of this graph at the same point,
        completed by the observed values. Factors whose variables are all observed become constants. The remaining
        variables keep their names. A grid keeps its shape: `on_grid` fills the observed cells.

        Args:
            observed: The value of each observed variable, by index or by name.

        Raises:
            ValueError: A variable does not exist, or a value is outside its domain.
        """
        variables = np.array([self.index(variable) for variable in observed], np.int64)
        evidence = np.array(list(observed.values())) if observed else np.empty(0, np.int64)
        check_variables(variables, self.n_variables)
        values = np.zeros(self.n_variables, evidence.dtype)
        values[variables] = evidence
        try:
            self.domains.select(variables).points(evidence)
        except ValueError:
            self.domains.points(values)  # its message has the index of the variable in this graph
            raise
        is_observed = np.zeros(self.n_variables, bool)
        is_observed[variables] = True
        renumber = (np.cumsum(~is_observed) - 1).astype(np.int32)
        factors = [part for group in self.factors for part in group.condition(values, is_observed, renumber)]
        remaining = np.flatnonzero(~is_observed)
        names = None if self.names is None else [self.names[v] for v in remaining]
        known = {}
        if self.shape is not None:
            cells = np.delete(np.arange(math.prod(self.shape)), list(self.observed))
            known = {**self.observed, **dict(zip(cells[variables].tolist(), evidence.tolist(), strict=True))}
        return FactorGraph(self.domains.select(remaining), factors, names=names, shape=self.shape, observed=known)


def insert_observed(rows: NDArray[Any], observed: Mapping[int, float], n_states: int = 0) -> NDArray[Any]:
    """Insert the rows of observed variables among the rows of all other variables.

    Args:
        rows: [n, ...], one row for each variable that is not observed, in ascending order: states, or marginals.
        observed: Value of each observed variable, by index.
        n_states: Number of columns of marginals, of which an observed variable gets 1 at its state; 0: rows are states.

    Returns:
        [n + number of observed variables, ...], one row for each variable.
    """
    variables, values = list(observed), np.array(list(observed.values()))
    row_shape = (n_states,) if n_states else rows.shape[1:]
    dtype = rows.dtype
    if len(values) and not n_states:
        dtype = np.result_type(rows, np.min_scalar_type(values.max()) if values.dtype.kind in "iu" else values)
    whole = np.zeros((len(rows) + len(observed), *row_shape), dtype)
    free = np.delete(np.arange(len(whole)), variables)
    if n_states:
        whole[free, : rows.shape[1]] = rows
        whole[variables, values.astype(np.int64)] = 1
    else:
        whole[free] = rows
        whole[variables] = values.reshape(-1, *[1] * len(row_shape))
    return whole


def _check_names(names: Sequence[str], n_variables: int) -> tuple[str, ...]:
    """Check that the names are distinct strings, one for each variable, and return them as a tuple."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(
            f"names must be a list of strings, one for each variable, got {' '.join(repr(names).split()):.80}"
        )
    if len(names) != n_variables:
        raise ValueError(f"names must have one name for each of {n_variables} variables, got {len(names)}")
    if len(set(names)) < len(names):
        repeated = next(name for number, name in enumerate(names) if name in names[:number])
        raise ValueError(f"the name {repeated!r} belongs to two variables; names must be distinct")
    return tuple(names)
