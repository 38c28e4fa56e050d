"""Shared parts of the experiments of DoGS17: graphs, guarantees after budgets of updates, and measured biases."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

import herdner
from herdner.dobrushin import (
    Importance,
    Influence,
    OptimisedScan,
    dobrushin_variation,
    optimise_scan,
    shortest_scan,
    variation_curve,
)
from herdner.graph import FactorGraph, TableFactors, TableGraph
from herdner.graph.scan import fixed_scan, random_scan, systematic_scan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ITERATIONS = 50  # of "iterated DoGS", which stops when nothing is gained


def random_ising(rng: np.random.Generator, side: int, *, fields: bool = True) -> FactorGraph:
    """Return a random Ising grid of DoGS17 Sec. 5.1, not toroidal, with couplings in [0, 0.25] and fields 0 or 1."""
    couplings = [rng.uniform(0, 0.25, (side - 1, side)), rng.uniform(0, 0.25, (side, side - 1))]
    h = rng.integers(0, 2, (side, side)).astype(float) if fields else np.zeros((side, side))
    return herdner.ising(couplings, h)


def guarantees(influence: Influence, importance: Importance, budgets: Sequence[int]) -> dict[str, NDArray[np.float64]]:
    """Return the Dobrushin variation of standard scans and of DoGS scans for each number of updates in ``budgets``."""
    at, most = np.array(budgets), max(budgets)
    found = {
        "uniform random": variation_curve(influence, random_scan(), importance, most)[at],
        "systematic": variation_curve(influence, systematic_scan(), importance, most)[at],
    }
    for name, iterations in (("DoGS", 1), ("iterated DoGS", ITERATIONS)):
        scans = [optimise_scan(influence, None, importance, t, iterations=iterations) for t in budgets]
        found[name] = np.array([scan.bound for scan in scans])
    return found


def as_good_as_systematic(
    bound: Callable[[], Influence], importance: Importance, n_steps: int
) -> tuple[OptimisedScan, float, float]:
    """Return the shortest DoGS scan, by doubling lengths, that is as good as ``n_steps`` systematic updates.

    Also return the guarantee, and the seconds of the search including the bound of influences.
    """
    began = time.perf_counter()
    influence = bound()
    goal = dobrushin_variation(influence, systematic_scan(), importance, n_steps)
    found = shortest_scan(influence, goal, systematic_scan(), importance, n_steps)
    assert found is not None  # the systematic scan itself reaches its bound
    return found, goal, time.perf_counter() - began


def draw_guarantees(axes: Axes, budgets: Sequence[int], found: Mapping[str, NDArray[np.float64]]) -> None:
    """Draw a curve for each scan of `guarantees`, and mark the smallest value of each curve."""
    for name, values in found.items():
        axes.semilogy(budgets, values, label=f"{name} ({values.min():.2g})")
    axes.set(xlabel="updates", ylabel="guarantee")
    axes.legend(fontsize=6)


def draw_bias(axes: Axes, budgets: Sequence[int], found: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> None:
    """Draw the bias of each scan, as returned by `measured_bias`, against the number of updates."""
    for name, values in found.items():
        axes.errorbar(budgets, values["bias"], values["standard_error"], label=name, capsize=2)
    axes.set(xlabel="updates", ylabel="measured bias")


@dataclass(frozen=True)
class Copies:
    """Graph of independent copies of a graph, in which one sweep makes many short runs of a scan."""

    n_variables: int
    n_copies: int
    graph: TableGraph

    @classmethod
    def of(cls, graph: FactorGraph, n_copies: int) -> Copies:
        n = graph.n_variables
        shifts = (np.arange(n_copies) * n)[:, None, None]
        groups = []
        for group in herdner.compile_tables(graph).factors:
            scopes = (shifts + group.scopes).reshape(-1, group.arity)
            chosen, scale = np.tile(group.table_of_factor, n_copies), np.tile(group.scale, n_copies)
            groups.append(TableFactors(scopes, group.tables, chosen, scale))
        sizes = np.tile(herdner.compile_tables(graph).sizes, n_copies)
        return cls(n, n_copies, herdner.compile_tables(FactorGraph(sizes, groups)))

    def run(self, order: ArrayLike, seed: int, start: ArrayLike | None = None) -> NDArray[np.int32]:
        """Return the state [n_copies, V] of each copy after updates from ``start`` [V] or random states."""
        whole = np.add.outer(np.arange(self.n_copies) * self.n_variables, np.asarray(order)).ravel()
        first = None if start is None else np.tile(np.asarray(start), self.n_copies)
        plan = herdner.Gibbs(1, scan=fixed_scan(whole), record=herdner.Record(best=False, marginals=False))
        return plan.infer(self.graph, seed, start=first).state.reshape(self.n_copies, self.n_variables)


def measured_bias(
    copies: Copies, influence: Influence, target: int, budgets: Sequence[int], seeds: Sequence[int], truth: float = 0.0
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return, for each scan, |mean of x_target over the copies - truth| and its standard error.

    The scans are the systematic scan and the DoGS scan of each budget of updates; x is -1 or +1. In all runs, every
    variable starts at +1, far from symmetry.
    """
    start, results = np.ones(copies.n_variables, np.int32), {}
    for stream, name in enumerate(("systematic", "DoGS")):
        biases, errors = [], []
        for budget, seed in zip(budgets, seeds, strict=True):
            order = np.resize(np.arange(copies.n_variables), budget)
            if name == "DoGS":
                order = optimise_scan(influence, order, {target: 1.0}).order
            spins = 2.0 * copies.run(order, seed + stream, start)[:, target] - 1.0
            biases.append(abs(float(spins.mean()) - truth))
            errors.append(float(spins.std(ddof=1)) / np.sqrt(copies.n_copies))
        results[name] = {"bias": np.array(biases), "standard_error": np.array(errors)}
    return results
