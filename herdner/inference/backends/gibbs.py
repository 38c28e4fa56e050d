"""Named presets of the Gibbs family."""

from __future__ import annotations

import sys
from typing import Literal, TypedDict

from herdner.graph.scan import Scan
from herdner.inference.gibbs.annealing import Annealing, linear_annealing
from herdner.inference.gibbs.driving import LFSR, DrivingSequence
from herdner.inference.gibbs.run import Gibbs as Gibbs
from herdner.inference.gibbs.sharing import Sharing, bin_sharing, blanket_sharing, random_bin_sharing
from herdner.inference.record import Record

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack

_BLANKET, _RISING, _REGISTER = blanket_sharing(), linear_annealing(0.1, 4.0), LFSR()


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
    """Return the annealed Gibbs sampler, which lowers the temperature to find the best state (HG16, Sec. 4.4).

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
    """Return the herded Gibbs sampler (HG16), with a herding weight per variable and joint state of its Markov blanket.

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
    """Return the discretized herded Gibbs sampler (HGW19, Algorithm 5), with a herding weight per variable and bin.

    The new state is 1 if the weight of the bin that contains its probability is positive. The probability is then added
    to the weight, so its exact value affects only later states of the same bin. In `circular_dhg` the exact value also
    affects the present state. With one bin this is HG-1bin (HGW19 Sec. 7).

    Probabilities are rounded to multiples of 2^-32, and a state whose probability becomes 0 is never drawn. Algorithm 5
    may draw states with probabilities below 2^-33 (about 1.2e-10), if their bin has a positive weight.

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
    """Return the circular discretized herded Gibbs sampler, which has less bias than `dhg` if there are few bins.

    This is an extension of HGW19 Algorithm 5 by systematic sampling. Let w be the initial weight of a bin. The state is
    1 at update t if the term p_t lifts the sum w + p_1 + .. + p_t past an integer. So the choice depends on the exact
    probability, and the count of state 1 stays within 1 of the sum of the probabilities (page "The Gibbs family").

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
    """Return the randomly discretized herded Gibbs sampler (HGW19, Algorithm 9), which rounds probabilities at random.

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
    """Return the bounded-error Gibbs sampler (HGW19, Algorithms 7 and 8), which combines random draws and herding.

    Each update draws a state at random, unless the largest herding weight of the update exceeds the error bound. Then
    herding selects the state.

    Args:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that are not recorded.
        error_bound: Constant c; a state is drawn at random if no herding weight of the update exceeds c.
        sharing: Rule that selects the herding weight of an update.
        weight_memory: Bytes of memory for herding weights.
        **options: Other options of `Gibbs`.

    Raises:
        ValueError: An option is out of range.
    """
    return Gibbs(n_sweeps, burn_in, sharing, error_bound, form="threshold", weight_memory=weight_memory, **options)


def qmc_gibbs(
    n_sweeps: int = 1000, burn_in: int = 0, driving: DrivingSequence = _REGISTER, **options: Unpack[GibbsOptions]
) -> Gibbs:
    """Return the quasi-Monte Carlo Gibbs sampler, which uses a driving sequence (HG16, Sec. 4.1; HGW19, Sec. 7).

    The driving sequence, for example a sequence of Sobol' points, replaces the random numbers.

    Args:
        n_sweeps: Number of sweeps.
        burn_in: Number of sweeps at the start that are not recorded.
        driving: The driving sequence.
        **options: Other options of `Gibbs`.

    Raises:
        ValueError: An option is out of range.
    """
    return Gibbs(n_sweeps, burn_in, driving=driving, **options)
