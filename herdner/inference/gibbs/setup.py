"""What all chains of a run have in common: the form of the graph, the loop, the order, the layout of the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner.graph.conditionals import Conditionals, colours
from herdner.graph.grids import GridForm
from herdner.graph.tables import TableGraph
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.weights import Weights, dependencies, lay_out
from herdner.sampling.annealing import Annealing
from herdner.sampling.plan import Plan

_SAFE = 680.0  # nats: the product of a variable's rows, and 2^32 divided by it, stay normal doubles


@dataclass(frozen=True)
class Setup:
    """What all chains of a run have in common."""

    plan: Plan
    compiled: TableGraph
    form: Conditionals | GridForm
    loop: str
    weights: Weights
    order: NDArray[np.int32] | None
    colour_starts: NDArray[np.int64]
    betas: NDArray[np.float64] | None
    careful: NDArray[np.uint8] | None
    blocks: Blocks | None

    @classmethod
    def of(cls, plan: Plan, compiled: TableGraph, blocks: Blocks | None) -> Setup:
        betas = plan.annealing.betas(plan.n_sweeps) if isinstance(plan.annealing, Annealing) else None
        hottest = 1.0 if betas is None else max(1.0, float(betas.max(initial=0.0)))
        form, careful = compiled.grid, None
        general = plan.loop == "general" or plan.dummy_edges is not None or blocks is not None
        if isinstance(form, str) or form.spread * hottest > _SAFE or general:
            form = compiled.conditionals
            careful = (form.spread * hottest > _SAFE).astype(np.uint8)
        loop = "any" if plan.loop == "general" else _loop(form)
        order, starts = _order(plan, compiled, form)
        weights = lay_out(plan, compiled.sizes, form, loop)
        careful = careful if careful is not None and careful.any() else None
        return cls(plan, compiled, form, loop, weights, order, starts, betas, careful, blocks)

    @property
    def n_steps(self) -> int:
        """Updates of a sweep."""
        return len(self.compiled.sizes) if self.order is None else len(self.order)


def _loop(form: Conditionals | GridForm) -> str:
    """The fastest loop that fits."""
    if isinstance(form, GridForm):
        return "grid"
    if form.others_at is not None or form.sizes.min() != form.sizes.max() or form.sizes[0] < 2:
        return "any"
    return "two" if form.sizes[0] == 2 else "labels"


def _order(
    plan: Plan, compiled: TableGraph, form: Conditionals | GridForm
) -> tuple[NDArray[np.int32] | None, NDArray[np.int64]]:
    """The order of a sweep, None for 0, 1, .., and where each colour begins."""
    n = len(compiled.sizes)
    if plan.scan.kind != "checkerboard":
        return plan.scan.order, np.array([0, n if plan.scan.order is None else len(plan.scan.order)])
    if plan.herds and plan.sharing is not None and plan.sharing.kind == "complete":
        return None, np.arange(n + 1)
    if isinstance(form, GridForm) and not (form.wraps and (form.rows % 2 or form.columns % 2)):
        colour = np.add.outer(np.arange(form.rows) % 2, np.arange(form.columns) % 2).ravel() % 2
    else:
        colour, _ = colours(dependencies(plan, compiled.conditionals))
    order = np.argsort(colour, kind="stable").astype(np.int32)
    return order, np.concatenate([[0], np.cumsum(np.bincount(colour))]).astype(np.int64)
