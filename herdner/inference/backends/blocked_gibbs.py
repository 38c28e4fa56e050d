"""Blocked Gibbs sampling, which draws chains of variables jointly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from numpy.typing import ArrayLike

from herdner.base.seeds import Seed
from herdner.graph.tables import Graph
from herdner.inference.backend import SAMPLER_CAPABILITIES, Capabilities
from herdner.inference.gibbs.annealing import Annealing, as_annealing
from herdner.inference.gibbs.blocks import Blocks
from herdner.inference.gibbs.run import Gibbs, compile_samplable
from herdner.inference.gibbs.sharing import blanket_sharing
from herdner.inference.record import Record
from herdner.inference.result import Result


@dataclass(frozen=True, slots=True)
class BlockedGibbs:
    """Blocked Gibbs sampling for chains joined by links: each update draws several consecutive variables jointly.

    A block is a sequence of consecutive variables. Each variable is joined to its predecessor and to no other earlier
    variable of the block. If a link joins two variables of a sequence, the sequence is divided before the later
    variable. A sweep draws the blocks from left to right, each from its joint distribution given all variables outside,
    by forward filtering and backward sampling (Scott 2002, JASA 97, Sec. 2). On a graph that is one chain in the order
    of its variables, the samples are independent. On a graph without edges between consecutive variables, this is plain
    Gibbs sampling. Factors have one or two variables of any number of states.

    Attributes:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that are not recorded.
        annealing: Inverse temperatures; None is 1 throughout.
        n_chains: Number of independent runs.
        n_threads: Number of threads; None is one for each run, up to the number of processors.
        record: Results to record. ``rao_blackwell`` averages the conditional of each variable given the variables
            outside the block and the variable to the right.
        herded: Replace the random numbers of backward sampling by herding weights. This is an extension of HG16, which
            herds single variables. A variable has one weight for each combination of a state of the variable to its
            right and a joint state of some outside variables: the outside variables that are joined to this variable or
            to earlier variables of the block. So each weight belongs to one distribution, as in HG16 Algorithm 1, and
            hard constraints hold. On a graph that is one chain the error decreases like 1 / T; other graphs have the
            bias of herded Gibbs.
        weight_memory: Bytes of memory for herding weights.
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
        """Convert ``annealing`` if it is a string, and raise ``ValueError`` for options out of range."""
        if self.annealing is not None:
            object.__setattr__(self, "annealing", as_annealing(self.annealing))
        if self.n_chains == 1 and (self.n_threads or 1) > 1:
            raise ValueError(
                "n_threads above 1 needs n_chains above 1, because each thread runs its own chains, got"
                f" n_threads={self.n_threads} and n_chains=1; increase n_chains, or set n_threads=1"
            )
        self._plan()

    def _plan(self) -> Gibbs:
        return Gibbs(
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
        """Sample from one graph. A sweep over V variables of K states takes time O(V K^2 + links x K).

        Args:
            graph: A graph of factors of at most two variables.
            seed: Source of randomness; the same seed gives the same result.
            start: int[V], a joint state with a log-potential above -inf; None draws one.
            record: Results to record; None uses the option ``record``.

        Returns:
            The result of all runs.

        Raises:
            UnsupportedGraph: A factor joins more than two variables.
            ImpossibleGraph: Entries of -inf forbid all states of a variable.
            ValueError: The start does not fit the graph.
            Interrupted: Ctrl-C stopped the sweeps.
        """
        compiled = compile_samplable(graph)
        return self._plan().infer(compiled, seed, start=start, record=record, blocks=Blocks.of(compiled))
