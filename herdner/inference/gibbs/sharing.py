"""Rules that select the herding weight of an update (HGW19 Sec. 3; the statistic Y of Algorithm 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from herdner._ext.gibbs import ENUMERATIONS
from herdner.base.checks import check_integer
from herdner.base.options import parse_call

MOST_BINS = 2**30


@dataclass(frozen=True, slots=True)
class Sharing:
    """Rule that selects the herding weight of an update.

    The functions of this module build rules.

    Attributes:
        kind: Quantity that selects the weight; updates of a variable for which this quantity is equal share a weight.
        n_bins: Number of bins of the interval [0, 1], for the kinds "bins" and "random-bins".
    """

    kind: Literal["complete", "blanket", "neighbour-sum", "bins", "random-bins"]
    n_bins: int = 1

    SYNTAX: ClassVar[str] = "complete, blanket, neighbour-sum, bins(B) or random-bins(B)"

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for an unknown kind or a wrong number of bins."""
        if self.kind not in ENUMERATIONS["sharing"]:
            raise ValueError(f"sharing must be {self.SYNTAX}, not {self.kind!r}")
        object.__setattr__(self, "n_bins", check_integer(self.n_bins, "the number of bins", 1, MOST_BINS))

    @classmethod
    def from_text(cls, text: str) -> Sharing:
        """Parse a sharing rule such as ``blanket`` or ``bins(64)``.

        Args:
            text: Kind of the sharing, with the number of bins in parentheses.

        Returns:
            The sharing rule.

        Raises:
            ValueError: The text is not a sharing rule.
        """
        functions = {
            "complete": complete_sharing, "blanket": blanket_sharing, "neighbour-sum": neighbour_sum_sharing,
            "bins": bin_sharing, "random-bins": random_bin_sharing,
        }  # fmt: skip
        return parse_call(text, functions, "sharing", cls.SYNTAX)

    def __str__(self) -> str:
        """Return the sharing rule as a string that `Sharing.from_text` parses."""
        return f"{self.kind}({self.n_bins})" if self.kind.endswith("bins") else self.kind


def complete_sharing() -> Sharing:
    """Return complete sharing: a variable has one herding weight per joint state of all other variables.

    The error after T sweeps is O(1/T) (HGW19, Sec. 3.1).
    """
    return Sharing("complete")


def blanket_sharing() -> Sharing:
    """Return blanket sharing: a variable has one herding weight per joint state of its Markov blanket.

    This is herded Gibbs of HG16, Algorithm 1.
    """
    return Sharing("blanket")


def neighbour_sum_sharing() -> Sharing:
    """Return neighbour-sum sharing: a variable has one herding weight for each sum of its neighbours' states.

    HG16, Sec. 4.3, calls it "shared". With more than two states, the numbers of neighbours in each state select the
    weight. The factors that join a variable to its neighbours must all have the same table; this is checked when the
    sampler starts.
    """
    return Sharing("neighbour-sum")


def bin_sharing(n_bins: int) -> Sharing:
    """Return bin sharing: a variable has one herding weight for each bin of its probability of state 1.

    In the threshold form this is DHG (HGW19 Algorithm 5), and with one bin HG-1bin. In the circular form, the default
    of a plan, it is `herdner.circular_dhg`. For K > 2 states, which the paper does not define, the bins of all K
    probabilities together select the weight.

    Args:
        n_bins: Number of bins of the interval [0, 1].

    Raises:
        ValueError: ``n_bins`` is not an integer from 1 to 2^30.
    """
    return Sharing("bins", n_bins)


def random_bin_sharing(n_bins: int) -> Sharing:
    """Return random-bin sharing: each of the probabilities 0, 1 / ``n_bins``, ..., 1 has one herding weight.

    An update rounds the conditional probability of the variable at random to one of the two nearest multiples, and uses
    the weight of this multiple (RDHG; HGW19, Algorithm 9).

    The expectation of a rounded probability equals the probability. For K > 2 states, which the paper does not define,
    the K probabilities are rounded together by systematic sampling; for two states this is Algorithm 9.

    Args:
        n_bins: Number of intervals of the grid on [0, 1].

    Raises:
        ValueError: ``n_bins`` is not an integer from 1 to 2^30.
    """
    return Sharing("random-bins", n_bins)
