"""What all runs of a plan have in common: the form of the graph, the loop, the order, the layout of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from herdner._ext import gibbs as loops
from herdner._ext.conditionals import independent as mark_independent
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.graph.conditionals import Conditionals
from herdner.graph.grids import GridForm
from herdner.graph.tables import TableGraph
from herdner.inference.gibbs.annealing import Annealing
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.order import sampling_order
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.weights import Weights, block_weights, lay_out

_SAFE = 680.0  # nats: the product of a variable's rows, and 2^32 divided by it, stay normal doubles
Loop = Literal["general", "binary", "categorical", "grid"]


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """What all runs of a plan on a graph have in common; the engine reads it by these names (engine/fields.h).

    Attributes:
        loop: The fastest that fits ``form``.
        order: int32[n_steps], of a sweep, None for 0, 1, ...
        colour_starts: int64[C + 1], the positions that threads share between meetings.
        betas: float64[n_sweeps], inverse temperatures, None for 1.
        beta_step: By how much they rise from sweep to sweep, 0 where not in equal steps.
        log_domain: uint8[V], variables whose rows span more than the product of their exponentials can.
        independent: uint8[V // BATCH_SIZE], batches of variables that are not joined, for the loop "binary".
        max_factors: The product of so many odds of two labels is a normal double, where none is log_domain.
    """

    plan: Plan
    compiled: TableGraph
    form: Conditionals | GridForm
    loop: Loop
    weights: Weights
    order: Int32s | None
    colour_starts: Int64s
    betas: Floats | None
    log_domain: NDArray[np.uint8] | None
    independent: NDArray[np.uint8] | None
    max_factors: int
    blocks: Blocks | None

    @classmethod
    def of(cls, plan: Plan, compiled: TableGraph, blocks: Blocks | None = None) -> Setup:
        betas = plan.annealing.betas(plan.n_sweeps) if isinstance(plan.annealing, Annealing) else None
        hottest = 1.0 if betas is None else max(1.0, float(betas.max(initial=0.0)))
        form, log_domain, independent = compiled.grid, None, None
        general = plan.loop == "general" or plan.dummy_edges is not None or blocks is not None
        if isinstance(form, str) or form.spread * hottest > _SAFE or general:
            form = compiled.conditionals
            wide = form.spread * hottest > _SAFE
            log_domain = wide.astype(np.uint8) if wide.any() else None
        loop = "general" if plan.loop == "general" else _loop(form)
        order, starts = sampling_order(plan, compiled)
        weights = lay_out(plan, compiled, form, loop) if blocks is None else block_weights(plan, compiled.sizes)
        if loop == "binary" and blocks is None and isinstance(form, Conditionals):
            form = form.padded
            independent = np.empty(len(form.sizes) // loops.BATCH, np.uint8)
            mark_independent(form.starts, form.others, loops.BATCH, independent)
        widest = max(1.0, hottest * float(np.max(form.spread, initial=0.0)))
        max_factors = max(1, int(_SAFE / widest))
        return cls(
            plan, compiled, form, loop, weights, order, starts, betas, log_domain, independent, max_factors, blocks
        )

    @property
    def n_steps(self) -> int:
        """Updates of a sweep."""
        return len(self.compiled.sizes) if self.order is None else len(self.order)

    @property
    def n_samples(self) -> int:
        """States that each run keeps."""
        plan = self.plan
        return -(-(plan.n_sweeps - plan.burn_in) // plan.record.every) if plan.record.every else 0

    @property
    def n_threads(self) -> int:
        """Threads that share each sweep."""
        return self.plan.threads if self.plan.n_chains == 1 else 1

    @property
    def scan(self) -> str:
        """The kind of scan, in the engine's word."""
        return self.plan.scan.kind

    @property
    def beta_step(self) -> float:
        if self.betas is None or len(self.betas) < 2 or self.betas[1] <= self.betas[0]:
            return 0.0
        steps = np.diff(self.betas)
        return float(steps[0]) if np.ptp(steps) < 1e-12 * abs(self.betas).max() else 0.0


def _loop(form: Conditionals | GridForm) -> Loop:
    """The fastest loop that fits."""
    if isinstance(form, GridForm):
        return "grid"
    if form.others_at is not None or form.sizes.min() != form.sizes.max() or form.sizes[0] < 2:
        return "general"
    return "binary" if form.sizes[0] == 2 else "categorical"
