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
from herdner.inference.gibbs.run import compile_samplable, sample
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
    """Gibbs sampling and herded Gibbs sampling in all variants.

    The options are those of `herdner.inference.gibbs.Plan`.
    """

    capabilities: ClassVar[Capabilities] = SAMPLER_CAPABILITIES

    def infer(
        self, graph: Graph, seed: Seed = None, *, start: ArrayLike | None = None, record: Record | None = None
    ) -> Result:
        """Sample from one graph, in time O(n_sweeps x factors).

        Entries of -inf, such as those of tag schemes, can divide the joint states into parts that no change of a single
        variable connects. A run then visits only the part of its start, and its marginals are those of this part.

        Args:
            graph: A graph of discrete variables.
            seed: Source of randomness; the same seed gives the same result.
            start: int[V], a joint state of log-potential above -inf; None draws one and repairs it if necessary.
            record: Contents of the result; None is the option.

        Returns:
            The result of all runs.

        Raises:
            ValueError: The start or an option does not fit the graph, or the weights need too much memory.
            ImpossibleGraph: Entries of -inf forbid all states of a variable.
            Interrupted: Ctrl-C stopped the sweeps.
        """
        began = perf_counter()
        compiled = compile_samplable(graph)
        self.scan.check(len(compiled.sizes))
        plan = self if record is None else replace(self, record=record)
        return sample(plan, compiled, generator(seed), start, began)


class GibbsOptions(TypedDict, total=False):
    """Options of `Gibbs` that every preset function, such as `plain_gibbs`, accepts."""

    scan: Scan
    n_chains: int
    n_threads: int | None
    record: Record


class HerdingOptions(GibbsOptions, total=False):
    """Options of `Gibbs` that `herded_gibbs` accepts."""

    form: Literal["circular", "threshold"]
    weight_memory: int


def plain_gibbs(n_sweeps: int = 1000, burn_in: int = 0, **options: Unpack[GibbsOptions]) -> Gibbs:
    """Return the Gibbs sampler, which draws each variable from its full conditional (HGW19, Algorithm 1).

    Args:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that are not recorded.
        **options: Other options of `Gibbs`.

    Raises:
        ValueError: An option is out of range.
    """
    return Gibbs(n_sweeps, burn_in, **options)


def annealed_gibbs(n_sweeps: int = 1000, annealing: Annealing = _RISING, **options: Unpack[GibbsOptions]) -> Gibbs:
    """Return annealed Gibbs, which samples at decreasing temperatures to find the best state (HG16, Sec. 4.4).

    Args:
        n_sweeps: Number of sweeps.
        annealing: Inverse temperatures of the sweeps.
        **options: Other options of `Gibbs`.

    Raises:
        ValueError: An option is out of range.
    """
    return Gibbs(n_sweeps, annealing=annealing, **options)


def herded_gibbs(
    n_sweeps: int = 1000, burn_in: int = 0, sharing: Sharing = _BLANKET, **options: Unpack[HerdingOptions]
) -> Gibbs:
    """Return herded Gibbs (HG16), which selects states by herding weights: one for each state of the Markov blanket.

    Args:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that are not recorded.
        sharing: Rule that selects the herding weight of an update.
        **options: Other options of `Gibbs`.

    Raises:
        ValueError: An option is out of range.
    """
    return Gibbs(n_sweeps, burn_in, sharing, **options)


def dhg(
    n_sweeps: int = 1000,
    burn_in: int = 0,
    n_bins: int = 16,
    form: Literal["circular", "threshold"] = "threshold",
    **options: Unpack[GibbsOptions],
) -> Gibbs:
    """Return discretized herded Gibbs (HGW19, Algorithm 5): one herding weight for each bin of probabilities.

    The state is 1 if the weight of the bin is positive. The probability is then added to the weight, so within a bin it
    affects later states only. With one bin this is HG-1bin (HGW19 Sec. 7). In `circular_dhg` the exact probability also
    affects the present state.

    Args:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that are not recorded.
        n_bins: Number of bins of the interval [0, 1].
        form: Herding update; see `Plan`.
        **options: Other options of `Gibbs`.

    Raises:
        ValueError: An option is out of range.
    """
    return Gibbs(n_sweeps, burn_in, bin_sharing(n_bins), form=form, **options)


def circular_dhg(n_sweeps: int = 1000, burn_in: int = 0, n_bins: int = 16, **options: Unpack[GibbsOptions]) -> Gibbs:
    """Return circular discretized herded Gibbs, which has less bias than `dhg` for few bins.

    This is an extension of HGW19 Algorithm 5 by systematic sampling: the state is 1 at update t if the sum
    w + p_1 + .. + p_t passes an integer. So the choice depends on the exact probability, and the count of state 1 stays
    within 1 of the sum of the probabilities (page "The Gibbs family").

    Args:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that are not recorded.
        n_bins: Number of bins of the interval [0, 1].
        **options: Other options of `Gibbs`.

    Raises:
        ValueError: An option is out of range.
    """
    return Gibbs(n_sweeps, burn_in, bin_sharing(n_bins), form="circular", **options)


def rdhg(n_sweeps: int = 1000, burn_in: int = 0, n_bins: int = 16, **options: Unpack[GibbsOptions]) -> Gibbs:
    """Return randomly discretized herded Gibbs (HGW19, Algorithm 9), with probabilities rounded at random to a grid.

    Args:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that are not recorded.
        n_bins: Number of intervals of the grid on [0, 1].
        **options: Other options of `Gibbs`.

    Raises:
        ValueError: An option is out of range.
    """
    return Gibbs(n_sweeps, burn_in, random_bin_sharing(n_bins), **options)


def bounded_error_gibbs(
    n_sweeps: int = 1000,
    burn_in: int = 0,
    error_bound: float = 1.0,
    sharing: Sharing = _BLANKET,
    weight_memory: int = 2**30,
    **options: Unpack[GibbsOptions],
) -> Gibbs:
    """Return bounded-error Gibbs (HGW19, Algorithms 7 and 8): random draws, but herding if a weight exceeds the bound.

    Each update draws a state at random, unless a herding weight exceeds the error bound. Then herding selects the
    state.

    Args:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that are not recorded.
        error_bound: Largest weight that leads to a random draw, c.
        sharing: Rule that selects the herding weight of an update.
        weight_memory: Bytes of memory for herding weights.
        **options: Other options of `Gibbs`.

    Raises:
        ValueError: An option is out of range.
    """
    return Gibbs(n_sweeps, burn_in, sharing, error_bound, form="threshold", weight_memory=weight_memory, **options)


def qmc_gibbs(
    n_sweeps: int = 1000, burn_in: int = 0, driving: Driving = _REGISTER, **options: Unpack[GibbsOptions]
) -> Gibbs:
    """Return quasi-Monte Carlo Gibbs, with a driving sequence as random numbers (HG16, Sec. 4.1; HGW19, Sec. 7).

    A driving sequence is, for example, a sequence of Sobol' points.

    Args:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that are not recorded.
        driving: The driving sequence.
        **options: Other options of `Gibbs`.

    Raises:
        ValueError: An option is out of range.
    """
    return Gibbs(n_sweeps, burn_in, driving=driving, **options)
