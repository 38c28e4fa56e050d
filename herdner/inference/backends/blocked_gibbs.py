"""Blocked Gibbs sampling: whole chains at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import ClassVar

from numpy.typing import ArrayLike

from herdner.base.seeds import Seed, generator
from herdner.graph.tables import Graph
from herdner.inference.backend import SAMPLER_CAPABILITIES, Capabilities
from herdner.inference.gibbs.annealing import Annealing, as_annealing
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.run import sample, to_sample
from herdner.inference.gibbs.sharing import blanket_sharing
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class BlockedGibbs:
    """Gibbs sampling by blocks: runs of variables are drawn together, for chains with links.

    A block is a run of consecutive variables, each joined to the one before it and to no other variable of the block;
    where a link stays within a run, the run is cut before its later end. A sweep draws the blocks from left to right,
    each from its joint distribution given all variables outside, by forward filtering and backward sampling (Scott
    2002, JASA 97, Sec. 2). A graph that is one chain in the order of its variables thus gives independent
    samples; a graph without edges between consecutive variables plain Gibbs sampling. Factors of one and two variables,
    any numbers of labels.

    Options as those of `Gibbs`: ``n_sweeps``, of which ``burn_in`` are not recorded, ``annealing`` (None is beta = 1),
    ``n_chains`` on ``n_threads``, ``weight_memory``, ``record``. Conditionals of rao_blackwell: given the blocks
    outside and the variable to the right.

    Attributes:
        herded: Backward sampling draws no random numbers but herds (in no paper; HG16 herds single variables): each
            variable has weights for each label to its right and each labelling of the variables outside that the block
            is joined to up to there, so that one weight sees one distribution, as in HG16 Algorithm 1. Constraints stay
            intact. A graph that is one chain converges like 1 / T; others have the bias of herded Gibbs.
    """

    n_sweeps: int = 1000
    burn_in: int = 0
    annealing: Annealing | None = None
    n_chains: int = 1
    n_threads: int | None = None
    record: Record = field(default_factory=Record)
    herded: bool = False
    weight_memory: int = 2**30

    capabilities: ClassVar[Capabilities] = SAMPLER_CAPABILITIES

    def __post_init__(self) -> None:
        if self.annealing is not None:
            object.__setattr__(self, "annealing", as_annealing(self.annealing))
        if self.n_chains == 1 and (self.n_threads or 1) > 1:
            raise ValueError("threads take a chain each: set n_chains too, or n_threads=1")
        self._plan()

    def _plan(self) -> Plan:
        return Plan(
            self.n_sweeps,
            self.burn_in,
            annealing=self.annealing,
            n_chains=self.n_chains,
            n_threads=self.n_threads,
            record=self.record,
            sharing=blanket_sharing() if self.herded else None,
            weight_memory=self.weight_memory,
        )

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Runs the sweeps on one graph; time of a sweep O(V K^2 + the other edges x K).

        Args:
            start: int[V], the first state, of log-potential above -inf; None draws one.

        Raises:
            UnsupportedGraph: A factor joins more than two variables.
        """
        began = perf_counter()
        compiled = to_sample(graph)
        plan = self._plan() if record is None else replace(self._plan(), record=record)
        return sample(plan, compiled, generator(seed), start, began, Blocks.of(compiled))
