"""What all runs of a plan have in common: the form of the graph, the loop, the order, the layout of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from herdner._ext import gibbs as loops
from herdner._ext.conditionals import independent as mark_independent
from herdner.graph.conditionals import Conditionals, colours
from herdner.graph.grids import GridForm
from herdner.graph.tables import TableGraph
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.weights import Weights, dependencies, lay_out
from herdner.sampling.annealing import Annealing
from herdner.sampling.plan import Plan

_SAFE = 680.0  # nats: the product of a variable's rows, and 2^32 divided by it, stay normal doubles
Loop = Literal["any", "two", "labels", "grid"]


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """What all runs of a plan on a graph have in common; the engine reads it by these names (engine/fields.h).

    ``loop``: the fastest that fits ``form``. ``order`` int32[n_steps]: of a sweep, None for 0, 1, ..; ``colour_starts``
    int64[C + 1]: the positions that threads share between meetings. ``betas`` float64[n_sweeps]: inverse temperatures,
    None for 1; ``heat_step``: by how much they rise from sweep to sweep, 0 where not in equal steps. ``careful``
    uint8[V]: variables whose rows span more than the product of their exponentials can. ``independent``
    uint8[V // BATCH_SIZE]: batches of variables that are not joined, for the loop "two".
    """

    plan: Plan
    compiled: TableGraph
    form: Conditionals | GridForm
    loop: Loop
    weights: Weights
    order: NDArray[np.int32] | None
    colour_starts: NDArray[np.int64]
    betas: NDArray[np.float64] | None
    careful: NDArray[np.uint8] | None
    independent: NDArray[np.uint8] | None
    blocks: Blocks | None

    @classmethod
    def of(cls, plan: Plan, compiled: TableGraph, blocks: Blocks | None = None) -> Setup:
        betas = plan.annealing.betas(plan.n_sweeps) if isinstance(plan.annealing, Annealing) else None
        hottest = 1.0 if betas is None else max(1.0, float(betas.max(initial=0.0)))
        form, careful, independent = compiled.grid, None, None
        general = plan.loop == "general" or plan.dummy_edges is not None or blocks is not None
        if isinstance(form, str) or form.spread * hottest > _SAFE or general:
            form = compiled.conditionals
            wide = form.spread * hottest > _SAFE
            careful = wide.astype(np.uint8) if wide.any() else None
        loop = "any" if plan.loop == "general" else _loop(form)
        order, starts = _order(plan, compiled, form)
        weights = lay_out(plan, compiled.sizes, form, loop)
        if loop == "two" and isinstance(form, Conditionals):
            form = form.padded
            independent = np.empty(len(form.sizes) // loops.BATCH_SIZE, np.uint8)
            mark_independent(form.starts, form.others, loops.BATCH_SIZE, independent)
        return cls(plan, compiled, form, loop, weights, order, starts, betas, careful, independent, blocks)

    @property
    def n_steps(self) -> int:
        """Updates of a sweep."""
        return len(self.compiled.sizes) if self.order is None else len(self.order)

    @property
    def n_threads(self) -> int:
        """Threads that share each sweep."""
        return self.plan.threads if self.plan.n_chains == 1 else 1

    @property
    def scan(self) -> str:
        return self.plan.scan.kind

    @property
    def heat_step(self) -> float:
        if self.betas is None or len(self.betas) < 2 or self.betas[1] <= self.betas[0]:
            return 0.0
        steps = np.diff(self.betas)
        return float(steps[0]) if np.ptp(steps) < 1e-12 * abs(self.betas).max() else 0.0


def _loop(form: Conditionals | GridForm) -> Loop:
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
