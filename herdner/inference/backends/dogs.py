"""DoGS as a backend: Gibbs sampling by a Dobrushin-optimised scan, with a certificate (Mitliagkas & Mackey 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s
from herdner.base.checks import check_integer
from herdner.base.seeds import Seed, generator
from herdner.dobrushin import (
    Importance,
    block_influence,
    certify_block_order,
    dense_importance,
    dobrushin_variation,
    optimise_scan,
    tightest_influence,
)
from herdner.dobrushin.blocks import WORKING_TOTAL
from herdner.dobrushin.certificate import Certificate
from herdner.dobrushin.variation import TargetVariables
from herdner.graph.graph import FactorGraph
from herdner.graph.linked_chains import is_near
from herdner.graph.order import block_steps
from herdner.graph.scan import fixed_scan, systematic_scan
from herdner.graph.tables import Graph, TableGraph
from herdner.inference.backend import SAMPLER_CAPABILITIES, Capabilities, Interrupted
from herdner.inference.backends.viterbi import Viterbi
from herdner.inference.gibbs.annealing import Annealing, as_annealing
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.run import sample, to_sample
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class DoGS:
    """Gibbs sampling by a scan optimised for the variables that matter, with a guarantee (DoGS17).

    Where the bounds of influence do not add up to less than 1, as those of hard constraints without ``blocks``,
    nothing is guaranteed. The scan is then optimised as if all influences were smaller by one factor, which is a rule
    of thumb. The input of Algorithm 2 is the systematic scan or, without ``blocks``, one of the targets in turn,
    whichever leads to the better scan. ``burn_in``, ``n_chains``, ``n_threads`` and ``record`` are as of `Gibbs`.

    Attributes:
        n_sweeps: Runs of the scan; the state after each counts, and the guarantee is that of each.
        n_steps: Updates of one run; None: ``steps_per_target`` for each variable of importance.
        targets: The variables of importance (`herdner.dobrushin.TargetVariables`); no other is updated unless it
            influences one of them, and the records of others mean nothing.
        iterations: Runs of Algorithm 2; with ``blocks`` one.
        blocks: A step draws a whole run of variables anew, in documents a sentence, as `BlockedGibbs` does: the
            certificate then says something in spite of forbidden tags (`herdner.dobrushin.block_influence`). n_steps
            counts blocks, and steps_per_target is for each block that holds a target.
        exact_states: Blankets of at most so many states are enumerated for sharper bounds of influence.
        annealing: Inverse temperatures, in search of the best state: there is no guarantee then. None is 1.
    """

    n_sweeps: int = 100
    n_steps: int | None = None
    targets: TargetVariables = field(default_factory=TargetVariables)
    steps_per_target: int = 4
    iterations: int = 1
    blocks: bool = False
    exact_states: int = 0
    annealing: Annealing | None = None
    burn_in: int = 0
    n_chains: int = 1
    n_threads: int | None = None
    record: Record = field(default_factory=Record)

    capabilities: ClassVar[Capabilities] = SAMPLER_CAPABILITIES

    def __post_init__(self) -> None:
        check_integer(self.steps_per_target, "steps_per_target")
        check_integer(self.iterations, "iterations")
        check_integer(self.exact_states, "exact_states", 0)
        if self.n_steps is not None:
            check_integer(self.n_steps, "n_steps")
        if isinstance(self.targets, str):
            object.__setattr__(self, "targets", TargetVariables.from_text(self.targets))
        if not isinstance(self.targets, TargetVariables):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public door
            raise ValueError(
                f"targets must be {TargetVariables.SYNTAX}, not {self.targets!r}; give an array to infer(importance=)"
            )
        if self.annealing is not None:
            object.__setattr__(self, "annealing", as_annealing(self.annealing))
        self._plan([0])

    def _plan(self, order: ArrayLike) -> Plan:
        return Plan(
            self.n_sweeps, self.burn_in, scan=fixed_scan(order), annealing=self.annealing, n_chains=self.n_chains,
            n_threads=self.n_threads, record=self.record,
        )  # fmt: skip

    def infer(
        self,
        graph: Graph,
        seed: Seed = None,
        *,
        start: ArrayLike | None = None,
        record: Record | None = None,
        importance: Importance = None,
    ) -> Result:
        """Bounds the influences, optimises a scan, samples by it; the result holds a ``certificate``.

        Time O(factors + updates).

        Args:
            start: As of `Gibbs.infer`.
            importance: D, a number of at least 0 for each variable, or for some of them, in place of ``targets``.
        """
        began = perf_counter()
        compiled = to_sample(graph)
        d = dense_importance(len(compiled.sizes), self._importance(compiled) if importance is None else importance)
        order, certificate, blocks = self._by_blocks(compiled, d) if self.blocks else self._by_variables(compiled, d)
        plan = self._plan(order) if len(order) else replace(self._plan([0]), n_sweeps=0, burn_in=0, annealing=None)
        plan = plan if record is None else replace(plan, record=record)
        try:
            result = sample(plan, compiled, generator(seed), start, began, blocks)
        except Interrupted as stopped:
            raise Interrupted(replace(stopped.result, certificate=certificate)) from None
        return replace(result, certificate=certificate)

    def _by_blocks(self, compiled: TableGraph, d: Floats) -> tuple[Int32s, Certificate, Blocks | None]:
        """The variables of the steps in their order, the certificate of that very order, and its blocks."""
        chosen = np.flatnonzero(d)
        influence = block_influence(compiled, [(v, v) for v in chosen.tolist()])
        n_steps = self.n_steps
        if n_steps is None or not len(chosen):
            held = [((first <= chosen) & (chosen <= last)).any() for first, last in influence.ranges]
            n_steps = self.steps_per_target * int(np.count_nonzero(held))
        importance = np.zeros(len(influence.spans))
        importance[len(importance) - len(chosen) :] = d[chosen]
        order, certificate = certify_block_order(influence, importance, n_steps, self._broken(d))
        variables, _ = block_steps(influence.ranges, order)
        return variables, certificate, Blocks.of(compiled, influence.ranges, order) if n_steps else None

    def _broken(self, d: Floats) -> tuple[str, ...]:
        """What a certificate assumes, and this run does not meet."""
        broken = () if self.annealing is None else ("the inverse temperature is not 1 throughout (annealing)",)
        if d.any() and not self.n_sweeps:
            broken += ("the scan was not run (n_sweeps=0)",)
        return broken

    def _by_variables(self, compiled: TableGraph, d: Floats) -> tuple[Int32s, Certificate, None]:
        influence = tightest_influence(compiled, self.exact_states)
        n_steps = self.steps_per_target * int(np.count_nonzero(d)) if self.n_steps is None else self.n_steps
        n_steps = n_steps if d.any() else 0
        total = influence.total
        working = influence if total.smallest < 1 else influence.scaled(WORKING_TOTAL / total.infinity)
        # Coordinate descent finds the best scan near its input: near a systematic one, and near one of the targets.
        targets = np.flatnonzero(d)
        inputs = [systematic_scan(), *([fixed_scan(targets)] if 0 < len(targets) < len(d) else [])]
        tried = [optimise_scan(working, scan, d, n_steps, iterations=self.iterations) for scan in inputs]
        order = min(tried, key=lambda found: found.bound).order
        certificate = Certificate(
            bound=dobrushin_variation(influence, order, d),
            trivial=float(d.sum()),
            n_steps=n_steps,
            theorem=influence.theorem,
            total_influence=total.smallest,
            systematic=dobrushin_variation(influence, systematic_scan(), d, n_steps),
            broken=self._broken(d),
        )
        return order, certificate, None

    def _importance(self, compiled: TableGraph) -> Mapping[int, float] | None:
        if self.targets.kind == "all":
            return None
        if self.targets.kind == "variables":
            return dict.fromkeys(self.targets.variables, 1.0)
        likeliest = chain_marginals(compiled).max(axis=1)
        return dict.fromkeys(np.flatnonzero(likeliest < 1 - self.targets.probability).tolist(), 1.0)


def chain_marginals(compiled: TableGraph) -> Floats:
    """[V, K]: the exact marginals of the graph with no other factors than those of one variable and of two consecutive
    ones.
    """
    few = [group for group in compiled.factors if group.arity <= 2]
    kept = [group.part(is_near(group)) if group.arity == 2 else group for group in few]
    marginals = Viterbi(marginals=True).infer(FactorGraph(compiled.sizes, kept)).marginals
    assert marginals is not None
    return marginals
