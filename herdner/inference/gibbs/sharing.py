"""Sharing of herding weights: which weight draws a variable's next label (HGW19 Sec. 3, Y of Algorithm 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from herdner.base.checks import check_integer
from herdner.base.options import parse_call

MOST_BINS = 2**30


@dataclass(frozen=True, slots=True)
class Sharing:
    """What two updates of one variable must have in common to use one herding weight; made by the functions below."""

    kind: Literal["complete", "blanket", "neighbour-sum", "bins", "random-bins"]
    n_bins: int = 1

    SYNTAX: ClassVar[str] = "complete, blanket, neighbour-sum, bins(B) or random-bins(B)"

    def __post_init__(self) -> None:
        if self.kind not in ("complete", "blanket", "neighbour-sum", "bins", "random-bins"):
            raise ValueError(f"sharing must be {self.SYNTAX}, not {self.kind!r}")
        object.__setattr__(self, "n_bins", check_integer(self.n_bins, "the number of bins", 1, MOST_BINS))

    @classmethod
    def from_text(cls, text: str) -> Sharing:
        """The sharing that ``blanket``, ``bins(64)`` and so on stand for; ValueError for others."""
        functions = {
            "complete": complete_sharing, "blanket": blanket_sharing, "neighbour-sum": neighbour_sum_sharing,
            "bins": bin_sharing, "random-bins": random_bin_sharing,
        }  # fmt: skip
        return parse_call(text, functions, "sharing", cls.SYNTAX)

    def __str__(self) -> str:
        return f"{self.kind}({self.n_bins})" if self.kind.endswith("bins") else self.kind


def complete_sharing() -> Sharing:
    """The state of all other variables: complete herded Gibbs (HGW19 Sec. 3.1), which converges like 1/T."""
    return Sharing("complete")


def blanket_sharing() -> Sharing:
    """The state of the Markov blanket: herded Gibbs (HG16 Algorithm 1)."""
    return Sharing("blanket")


def neighbour_sum_sharing() -> Sharing:
    """The sum of the neighbours (HG16 Sec. 4.3, "shared"); with more than two labels, how many neighbours have each.

    Only where all pairs of a variable have one and the same table, which is checked: then the sum says all.
    """
    return Sharing("neighbour-sum")


def bin_sharing(n_bins: int) -> Sharing:
    """The bin of width 1 / ``n_bins`` of the probability of label 1. In the threshold form this is DHG (HGW19 Algorithm
    5), and one bin HG-1bin; in the circular form, a plan's default, it is not (`herdner.circular_dhg`).

    With K > 2 labels, which the paper does not define: the bins of all K probabilities together.
    """
    return Sharing("bins", n_bins)


def random_bin_sharing(n_bins: int) -> Sharing:
    """A neighbouring multiple of 1 / ``n_bins``, drawn with the probability as its mean: RDHG (HGW19 Algorithm 9).

    With K > 2 labels, which the paper does not define: the K probabilities are rounded together by systematic sampling,
    whose means are the probabilities; for two labels that is the paper's algorithm.
    """
    return Sharing("random-bins", n_bins)
