"""Influence estimated from samples: it finds scans, and gives no guarantee of any."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.dobrushin.influence import Influence, pairwise_bound
from herdner.dobrushin.optimise import optimise_scan
from herdner.dobrushin.variation import Importance
from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph
from herdner.graph.scan import Scan
from herdner.graph.tables import Graph, TableGraph, compile_tables


@dataclass(frozen=True, slots=True)
class InfluenceEstimate:
    """How much variables influence each other in the states of a sample, instead of the worst that can be.

    Bounds of influence are made for the worst state, which the sampler may never see; what stands here is not above
    them, and no bound of anything. So no function of this package that bounds takes it, and what it gives is an order
    alone. The guarantee of that order, by a bound of influence, is `dobrushin_variation` (tightest(graph), order).

    Attributes:
        n_samples: The states it was estimated from.
    """

    n_samples: int
    _found: Influence = field(repr=False)

    @classmethod
    def of(cls, graph: Graph, samples: ArrayLike, largest: bool = False) -> InfluenceEstimate:
        """From states [S, V], such as a run of `Gibbs` records: for each pair (i, j) that shares a factor, the total
        variation distance between two conditionals of i given the rest of a state and two labels of j, at the two
        labels where it is largest; of that the mean over the states, or the ``largest``.

        States whose neighbours, j changed, forbid every label of i are left out. Time O(S x entries x labels^2).
        """
        compiled = compile_tables(graph)
        states = np.asarray(samples)
        if states.ndim != 2 or states.shape[1] != len(compiled.sizes) or not len(states):
            raise ValueError(f"samples must be states [S, {len(compiled.sizes)}] of the graph, not {states.shape}")
        if not ((states >= 0) & (states < compiled.sizes)).all():
            raise ValueError("samples must hold labels of the graph's variables, 0 to K - 1")
        pairs, sizes = pairwise_bound(compiled), compiled.sizes.tolist()  # pairs: for who shares a factor with whom
        values = np.zeros(len(pairs.values))
        for i in range(len(sizes)):
            near, members = _factors_of(compiled, i)
            some, place = states[:, members].astype(np.int64), {k: at for at, k in enumerate(members.tolist())}
            for at in range(int(pairs.starts[i]), int(pairs.starts[i + 1])):
                j = int(pairs.sources[at])
                seen = _influences(near, some, (place[i], sizes[i]), (place[j], sizes[j]))
                values[at] = seen.max(initial=0.0) if largest else seen.sum() / max(len(seen), 1)
        return cls(len(states), Influence(pairs.starts, pairs.sources, values, "estimated", compiled))

    def order(
        self,
        scan: Scan | ArrayLike | None = None,
        importance: Importance = None,
        n_steps: int | None = None,
        iterations: int = 1,
    ) -> Int32s:
        """int32[T]: what Algorithm 2 makes of a scan; arguments as of `optimise_scan`."""
        return optimise_scan(self._found, scan, importance, n_steps, iterations=iterations).order


def _factors_of(compiled: TableGraph, variable: int) -> tuple[FactorGraph, Int32s]:
    """The graph of one variable and its blanket alone, with its factors; and which variables these are."""
    members = np.union1d(compiled.graph.blanket(variable), np.array([variable], np.int32)).astype(np.int32)
    near: list[TableFactors] = []
    for group in compiled.factors:
        rows = np.flatnonzero((group.scopes == variable).any(axis=1))
        scopes = np.searchsorted(members, group.scopes[rows])
        near.append(TableFactors(scopes, group.tables, group.table_of_factor[rows], group.scale[rows]))
    return FactorGraph(compiled.sizes[members], near), members


def _influences(near: FactorGraph, states: Int64s, i: tuple[int, int], j: tuple[int, int]) -> Floats:
    """Of each state [S, blanket] where it is defined; i and j: the variable's column and number of labels."""
    (at_i, n_i), (at_j, n_j) = i, j
    changed = np.repeat(states[:, None], n_j * n_i, axis=1)
    changed[:, :, at_j], changed[:, :, at_i] = np.divmod(np.arange(n_j * n_i), n_i)
    logs = near.log_potential(changed.reshape(-1, states.shape[1])).reshape(len(states), n_j, n_i)
    logs = logs[(logs.max(axis=2) > -np.inf).all(axis=1)]
    p = np.exp(logs - logs.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    apart: Floats = np.abs(p[:, :, None] - p[:, None]).sum(axis=3)
    return apart.max(axis=(1, 2), initial=0.0) / 2
