"""Gibbs sampling by a Dobrushin-optimised scan, with a certificate (DoGS17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s
from herdner.base.checks import check_counts
from herdner.base.seeds import Seed
from herdner.dobrushin import (
    Importance,
    Influence,
    OptimisedScan,
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
from herdner.graph.edges import is_near
from herdner.graph.graph import FactorGraph
from herdner.graph.order import block_steps
from herdner.graph.scan import fixed_scan, systematic_scan
from herdner.graph.tables import Graph, TableGraph
from herdner.inference.backend import SAMPLER_CAPABILITIES, Capabilities, Interrupted
from herdner.inference.backends.viterbi import Viterbi
from herdner.inference.elimination_order import reduce_tables
from herdner.inference.gibbs.annealing import Annealing, as_annealing
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.run import Gibbs, compile_samplable
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class DoGS:
    """Gibbs sampling in an update order (scan) optimised for target variables, with a certified error bound (DoGS17).

    The certificate is vacuous if the bounds on the influences on the targets add up to 1 or more. This is the case
    under most hard constraints without ``blocks``. The scan is then optimised by a heuristic, for influences that are
    all divided by one factor. On graphs with factors of three or more variables, and with ``exact_states``, influences
    are computed after the removal of states that -inf entries forbid. DoGS17 Algorithm 2 starts from the systematic
    scan. Without ``blocks`` it also starts from a scan of the targets in turn, and the better of the two results is
    used.

    Attributes:
        n_sweeps: Number of runs of the scan; the certificate holds for the state after each.
        n_steps: Number of updates in one run of the scan; None is ``steps_per_target`` per target variable.
        targets: The variables whose error the scan reduces (`herdner.dobrushin.TargetVariables`). Other variables are
            updated only if they influence a target, and the results that are recorded for these variables are
            meaningless.
        steps_per_target: Updates per target in one run of the scan; with ``blocks``, updates per block that holds a
            target.
        iterations: Number of runs of Algorithm 2; ignored with ``blocks``, for which it runs once.
        blocks: Update blocks as `BlockedGibbs` does (in documents, sentences). ``n_steps`` then counts blocks. The
            certificate can then be useful despite forbidden states (`herdner.dobrushin.block_influence`).
        exact_states: Largest number of joint states of a blanket that is enumerated for sharper bounds on influence.
        annealing: Inverse temperatures for a search for the best state, without a guarantee; None is 1 throughout.
        burn_in: Number of sweeps at the start that are not recorded.
        n_chains: Number of independent runs.
        n_threads: Number of threads; None is one for each run, up to the number of processors.
        record: Results to record.
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
        """Convert options that are strings, and raise ``ValueError`` for options out of range."""
        check_counts(self, n_steps=1, steps_per_target=1, iterations=1, exact_states=0)
        if isinstance(self.targets, str):
            object.__setattr__(self, "targets", TargetVariables.from_text(self.targets))
        if not isinstance(self.targets, TargetVariables):  # pyright: ignore[reportUnnecessaryIsInstance]  # a public class
            raise ValueError(
                f"targets must be {TargetVariables.SYNTAX}, not {self.targets!r}; pass arrays as the argument"
                " `importance` of infer"
            )
        if self.annealing is not None:
            object.__setattr__(self, "annealing", as_annealing(self.annealing))
        self._plan([0])

    def _plan(self, order: ArrayLike) -> Gibbs:
        return Gibbs(
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
        """Optimise the update order (scan) for one graph, and sample in this order, in time O(factors + updates).

        Args:
            graph: A graph of discrete variables.
            seed: Source of randomness; the same seed gives the same result.
            start: int[V], a joint state with a log-potential above -inf; None draws one.
            record: Results to record; None uses the option ``record``.
            importance: Weights of the errors of the variables, at least 0, in place of ``targets``: float[V], or a
                mapping from variables to weights; other variables have weight 0.

        Returns:
            The result, with a certificate.

        Raises:
            ValueError: The start, the importance or an option does not fit the graph.
            UnsupportedGraph: With ``blocks``, a factor joins more than two variables.
            ImpossibleGraph: Entries of -inf forbid all states of a variable.
            Interrupted: Ctrl-C stopped the sweeps.
        """
        began = perf_counter()
        compiled = compile_samplable(graph)
        weights = dense_importance(
            len(compiled.sizes), self._importance(compiled) if importance is None else importance
        )
        order, certificate, blocks = (
            self._block_scan(compiled, weights) if self.blocks else self._variable_scan(compiled, weights)
        )
        plan = self._plan(order) if len(order) else replace(self._plan([0]), n_sweeps=0, burn_in=0, annealing=None)
        try:
            result = plan.infer(compiled, seed, start=start, record=record, blocks=blocks)
        except Interrupted as interrupt:
            result = replace(interrupt.result, certificate=certificate, seconds=perf_counter() - began)
            raise Interrupted(result) from None
        return replace(result, certificate=certificate, seconds=perf_counter() - began)

    def _block_scan(self, compiled: TableGraph, weights: Floats) -> tuple[Int32s, Certificate, Blocks | None]:
        """Optimise a scan of blocks; return the variables in update order, a bound on the error, and the blocks."""
        targets = np.flatnonzero(weights)
        influence = block_influence(compiled, [(v, v) for v in targets.tolist()])
        n_steps = self.n_steps
        if n_steps is None or not len(targets):
            has_target = [((first <= targets) & (targets <= last)).any() for first, last in influence.ranges]
            n_steps = self.steps_per_target * int(np.count_nonzero(has_target))
        importance = np.zeros(len(influence.spans))
        importance[len(importance) - len(targets) :] = weights[targets]
        order, certificate = certify_block_order(influence, importance, n_steps, self._violations(weights))
        variables, _ = block_steps(influence.ranges, order)
        return variables, certificate, Blocks.of(compiled, influence.ranges, order) if n_steps else None

    def _violations(self, weights: Floats) -> tuple[str, ...]:
        """Return all assumptions of the certificate (error bound) that do not hold for this run."""
        violations = () if self.annealing is None else ("the inverse temperature is not 1 throughout (annealing)",)
        if weights.any() and not self.n_sweeps:
            violations += ("the scan was not run (n_sweeps=0)",)
        return violations

    def _variable_scan(self, compiled: TableGraph, weights: Floats) -> tuple[Int32s, Certificate, None]:
        """Optimise a scan of single variables; return the update order, a bound on the error, and None (no blocks)."""
        influence = allowed_influence(compiled, self.exact_states)
        n_steps = self.steps_per_target * int(np.count_nonzero(weights)) if self.n_steps is None else self.n_steps
        n_steps = n_steps if weights.any() else 0
        total = influence.total
        targets = np.flatnonzero(weights)
        has_targets = 0 < len(targets) < len(weights)
        inputs = [systematic_scan(), *([fixed_scan(targets)] if has_targets else [])]

        def search(bound: Influence) -> OptimisedScan:
            # Coordinate descent finds a local optimum, so it starts from a systematic scan and a scan of the targets.
            scans = [optimise_scan(bound, scan, weights, n_steps, iterations=self.iterations) for scan in inputs]
            return min(scans, key=lambda scan: scan.bound)

        found = search(influence) if total.smallest < 1 or has_targets else None
        if found is None or (total.smallest >= 1 and found.bound >= weights.sum()):  # certificate would be vacuous
            found = search(influence.scale(WORKING_TOTAL / total.infinity))
        order = found.order
        certificate = Certificate(
            bound=dobrushin_variation(influence, order, weights),
            trivial=float(weights.sum()),
            n_steps=n_steps,
            theorem=influence.theorem,
            total_influence=total.smallest,
            systematic=dobrushin_variation(influence, systematic_scan(), weights, n_steps),
            broken=self._violations(weights),
        )
        return order, certificate, None

    def _importance(self, compiled: TableGraph) -> Mapping[int, float] | None:
        """Return the importance of each variable according to the option ``targets``; return None if all are 1."""
        if self.targets.kind == "all":
            return None
        if self.targets.kind == "variables":
            return dict.fromkeys(self.targets.variables, 1.0)
        largest = chain_marginals(compiled).max(axis=1)
        return dict.fromkeys(np.flatnonzero(largest < 1 - self.targets.probability).tolist(), 1.0)


def allowed_influence(compiled: TableGraph, exact_states: int = 0) -> Influence:
    """Bound the Dobrushin influences; ignore forbidden states if ``exact_states`` > 0 or a factor has over 2 variables.

    A Gibbs sampler never visits the states that -inf entries forbid, because it starts at an allowed joint state. If
    the forbidden states are not ignored, the bound is `tightest_influence`.

    Args:
        compiled: The graph.
        exact_states: Enumerate the joint states of a Markov blanket if there are at most this many.

    Returns:
        The bound for all variables of the graph.

    Raises:
        ImpossibleGraph: Entries of -inf forbid all states of a variable.
    """
    is_wide = exact_states > 0 or any(group.arity > 2 for group in compiled.factors)
    if not is_wide or all(np.isfinite(group.tables).all() for group in compiled.factors):
        return tightest_influence(compiled, exact_states)
    reduced = reduce_tables(compiled)
    bound = tightest_influence(reduced.restrict(compiled.factors), exact_states)
    return bound.to_larger_graph(reduced.variables, compiled)


def chain_marginals(compiled: TableGraph) -> Floats:
    """Return the exact marginals [V, K] that the chains of a graph have if all other factors are left out.

    Links and factors of three or more variables are left out.

    Args:
        compiled: The graph; its factors of one variable and of two consecutive variables form the chains.
    """
    groups = [group for group in compiled.factors if group.arity <= 2]
    factors = [group.part(is_near(group)) if group.arity == 2 else group for group in groups]
    marginals = Viterbi(marginals=True).infer(FactorGraph(compiled.sizes, factors)).marginals
    assert marginals is not None
    return marginals
