"""The Gibbs family as a backend, and its named presets."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar, Literal, TypedDict

from numpy.typing import ArrayLike

from herdner.base.seeds import Seed, generator
from herdner.graph.scan import Scan
from herdner.graph.tables import Graph
from herdner.inference.backend import SAMPLER_CAPABILITIES, Capabilities
from herdner.inference.gibbs.annealing import Annealing, linear_annealing
from herdner.inference.gibbs.driving import LFSR, Driving
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.run import sample, to_sample
from herdner.inference.gibbs.sharing import Sharing, bin_sharing, blanket_sharing, random_bin_sharing
from herdner.inference.record import Record
from herdner.inference.result import Result

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack

_BLANKET, _RISING, _REGISTER = blanket_sharing(), linear_annealing(0.1, 4.0), LFSR()


@dataclass(frozen=True, slots=True)
class Gibbs(Plan):
    """Gibbs sampling and herded Gibbs sampling in all their variants: a plan that can be run.

    The options are those of `herdner.inference.gibbs.Plan`, which describes them.
    """

    capabilities: ClassVar[Capabilities] = SAMPLER_CAPABILITIES

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Runs the plan on one graph; time O(n_sweeps x factors).

        Entries of -inf, as of tag schemes, can cut the states into parts between which no change of one variable leads:
        a run stays in the part of its start, and its marginals are of that part.

        Args:
            start: int[V], the first state, of log-potential above -inf; None draws one, and looks for one that no -inf
                forbids.

        Raises:
            ValueError: The start or an option does not fit the graph, or the weights need too much memory.
        """
        began = perf_counter()
        compiled = to_sample(graph)
        self.scan.check(len(compiled.sizes))
        plan = self if record is None else replace(self, record=record)
        return sample(plan, compiled, generator(seed), start, began)


class GibbsOptions(TypedDict, total=False):
    """What each preset takes beside its own options, and hands on to `Gibbs`."""

    scan: Scan
    n_chains: int
    n_threads: int | None
    record: Record


class HerdingOptions(GibbsOptions, total=False):
    """What `herded_gibbs` takes beside its own options."""

    form: Literal["circular", "threshold"]
    weight_memory: int


def plain_gibbs(n_sweeps: int = 1000, burn_in: int = 0, **options: Unpack[GibbsOptions]) -> Gibbs:
    """Gibbs sampling: each label drawn at random from its full conditional (HGW19 Algorithm 1)."""
    return Gibbs(n_sweeps, burn_in, **options)


def annealed_gibbs(n_sweeps: int = 1000, annealing: Annealing = _RISING, **options: Unpack[GibbsOptions]) -> Gibbs:
    """Gibbs sampling whose inverse temperature rises, in search of the best state (HG16 Sec. 4.4)."""
    return Gibbs(n_sweeps, annealing=annealing, **options)


def herded_gibbs(
    n_sweeps: int = 1000, burn_in: int = 0, sharing: Sharing = _BLANKET, **options: Unpack[HerdingOptions]
) -> Gibbs:
    """Herded Gibbs: each label decided by herding weights, by default one for each state of the blanket (HG16)."""
    return Gibbs(n_sweeps, burn_in, sharing, **options)


def dhg(
    n_sweeps: int = 1000,
    burn_in: int = 0,
    n_bins: int = 16,
    form: Literal["circular", "threshold"] = "threshold",
    **options: Unpack[GibbsOptions],
) -> Gibbs:
    """Discretized herded Gibbs: one weight for each bin of the conditional probability (HGW19 Algorithm 5).

    The label is 1 where the weight of the bin is positive, whatever the probability within the bin; that of the moment
    is added to the weight afterwards. One bin is HG-1bin (HGW19 Sec. 7). `circular_dhg` decides by the probability too.
    """
    return Gibbs(n_sweeps, burn_in, bin_sharing(n_bins), form=form, **options)


def circular_dhg(n_sweeps: int = 1000, burn_in: int = 0, n_bins: int = 16, **options: Unpack[GibbsOptions]) -> Gibbs:
    """Circular DHG: the bins of dhg, but the label is the carry of weight plus probability; less bias with few bins.

    Not in the papers: systematic sampling, which of the sums w + p_1 + .. + p_t pass a whole number, in place of HGW19
    Algorithm 5. The label depends on the present probability, not on its bin alone; counts stay within 1 of the sum of
    the probabilities (see the page "The Gibbs family").
    """
    return Gibbs(n_sweeps, burn_in, bin_sharing(n_bins), form="circular", **options)


def rdhg(n_sweeps: int = 1000, burn_in: int = 0, n_bins: int = 16, **options: Unpack[GibbsOptions]) -> Gibbs:
    """Randomly discretized herded Gibbs: a neighbouring grid probability, drawn, is herded (HGW19 Algorithm 9)."""
    return Gibbs(n_sweeps, burn_in, random_bin_sharing(n_bins), **options)


def bounded_error_gibbs(
    n_sweeps: int = 1000,
    burn_in: int = 0,
    error_bound: float = 1.0,
    sharing: Sharing = _BLANKET,
    weight_memory: int = 2**30,
    **options: Unpack[GibbsOptions],
) -> Gibbs:
    """Bounded-error Gibbs: random draws, herded only where a weight exceeds the bound (HGW19 Algorithms 7 and 8)."""
    return Gibbs(n_sweeps, burn_in, sharing, error_bound, form="threshold", weight_memory=weight_memory, **options)


def qmc_gibbs(
    n_sweeps: int = 1000, burn_in: int = 0, driving: Driving = _REGISTER, **options: Unpack[GibbsOptions]
) -> Gibbs:
    """Quasi-random Gibbs: the uniform numbers come from a driving sequence (MCQMC; HG16 Sec. 4.1, HGW19 Sec. 7)."""
    return Gibbs(n_sweeps, burn_in, driving=driving, **options)
