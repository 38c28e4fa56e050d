"""The setup of a plan on a graph: form of the graph, loop, order, and layout of the herding weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from herdner._ext import gibbs as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.graph.conditionals import Conditionals
from herdner.graph.grids import GridForm
from herdner.graph.order import checkerboard_colours, order_by_colour
from herdner.graph.tables import TableGraph
from herdner.inference.gibbs.annealing import Annealing
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.weights import Weights, block_weights, dependencies, lay_out

# Largest spread in nats for which the product of a variable's rows, and 2^32 divided by it, are normal doubles.
_MOST_SPREAD = 680.0
Loop = Literal["general", "binary", "categorical", "grid"]


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """Data that all runs with the same sampling options on one graph share.

    The compiled engine reads the fields by name (engine/fields.h).

    Attributes:
        plan: The plan.
        compiled: The graph.
        form: The form of the graph that the loop reads.
        loop: The fastest compiled loop that supports ``form``, or "general" if the plan requests it.
        weights: Layout of the herding weights.
        order: int32[n_steps], the variables of a sweep; None for 0, 1, ...
        colour_starts: int64[C + 1], the borders of the parts of a sweep; threads can share the updates of one part.
        betas: float64[n_sweeps], inverse temperatures; None for 1.
        log_domain: uint8[V], 1 for variables whose rows can exceed the range of doubles as a product of exponentials;
            None if there is no such variable.
        independent: uint8[V // BATCH], 1 for batches of variables of which no two share a factor; for the loop "binary"
            only.
        max_factors: Number of odds of a two-state variable whose product is always a normal double.
        blocks: Blocks of variables that are drawn jointly, or None.
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
        """Choose the compiled loop and the layout of the graph, and compute the layout of the herding weights.

        Args:
            plan: The plan.
            compiled: The graph.
            blocks: Blocks of variables that are drawn jointly, or None.

        Returns:
            The setup, which all runs of the plan on this graph share.

        Raises:
            ValueError: The sharing of the plan does not fit the graph.
            ImpossibleGraph: Entries of -inf forbid all states of a variable.
        """
        betas = plan.annealing.betas(plan.n_sweeps) if isinstance(plan.annealing, Annealing) else None
        hottest = 1.0 if betas is None else max(1.0, float(betas.max(initial=0.0)))
        form, log_domain, independent = compiled.find(GridForm), None, None
        general = plan.loop == "general" or plan.dummy_edges is not None or blocks is not None
        if form is None or form.spread * hottest > _MOST_SPREAD or general:
            form = compiled.conditionals
            wide = form.spread * hottest > _MOST_SPREAD
            log_domain = wide.astype(np.uint8) if wide.any() else None
        loop = "general" if plan.loop == "general" else _loop(form)
        order, starts = sampling_order(plan, compiled)
        weights = lay_out(plan, compiled, form, loop) if blocks is None else block_weights(plan, compiled.sizes)
        if loop == "binary" and blocks is None and isinstance(form, Conditionals):
            form = form.padded_form
            independent = form.independent(loops.BATCH)
        widest = max(1.0, hottest * float(np.max(form.spread, initial=0.0)))
        max_factors = max(1, int(_MOST_SPREAD / widest))
        return cls(
            plan, compiled, form, loop, weights, order, starts, betas, log_domain, independent, max_factors, blocks
        )

    @property
    def n_steps(self) -> int:
        """Number of updates in a sweep."""
        return len(self.compiled.sizes) if self.order is None else len(self.order)

    @property
    def n_samples(self) -> int:
        """Number of joint states that each run records."""
        plan = self.plan
        return -(-(plan.n_sweeps - plan.burn_in) // plan.record.every) if plan.record.every else 0

    @property
    def n_threads(self) -> int:
        """Number of threads that share each sweep."""
        return self.plan.threads if self.plan.n_chains == 1 else 1

    @property
    def scan(self) -> str:
        """Kind of the scan, such as "systematic"."""
        return self.plan.scan.kind

    @property
    def beta_step(self) -> float:
        """Increase of the inverse temperature per sweep if all increases are equal and positive, else 0."""
        if self.betas is None or len(self.betas) < 2 or self.betas[1] <= self.betas[0]:
            return 0.0
        steps = np.diff(self.betas)
        return float(steps[0]) if np.ptp(steps) < 1e-12 * abs(self.betas).max() else 0.0


def sampling_order(plan: Plan, compiled: TableGraph) -> tuple[Int32s | None, Int64s]:
    """Return the variables that one sweep updates, in the order of the updates.

    Without herding weights, `herdner.graph.order.sweep_order` returns the same order for scans that are not random.
    Herding weights can make more variables dependent than the graph does, which changes the colours of a checkerboard.

    Args:
        plan: The plan.
        compiled: The graph.

    Returns:
        The variables in the order of their updates, int32[n], or None for the order 0, 1, ..; and int64[C + 1], the
        borders of the parts of the sweep. Threads can share the updates of one part.
    """
    n = len(compiled.sizes)
    if plan.scan.kind != "checkerboard":
        return plan.scan.order, np.array([0, n if plan.scan.order is None else len(plan.scan.order)])
    if plan.herds and plan.sharing is not None and plan.sharing.kind == "complete":
        return None, np.arange(n + 1)
    has_own_edges = plan.herds and plan.dummy_edges is not None
    return order_by_colour(checkerboard_colours(compiled, dependencies(plan, compiled) if has_own_edges else None))


def _loop(form: Conditionals | GridForm) -> Loop:
    """Return the name of the fastest compiled loop that supports the layout ``form`` of the graph."""
    if isinstance(form, GridForm):
        return "grid"
    if form.others_at is not None or form.sizes.min() != form.sizes.max() or form.sizes[0] < 2:
        return "general"
    return "binary" if form.sizes[0] == 2 else "categorical"
