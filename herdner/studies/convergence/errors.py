"""The parts of the integration error of herded samplers, and their bounds (HGW19 Sec. 4 and 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats
from herdner.studies.convergence.exact import Focus, conditional


@dataclass(frozen=True, slots=True)
class ErrorParts:
    """The parts of the error of T samples, taken right after the update of X (HGW19 Sec. 4.3, 6.5).

    ``bin`` weighs each z by P(z), how often it came, as eq. 5 and the authors' program do; with pi(z) in its place, as
    Sec. 6.5 prints it, the sum of the parts would be no bound.

    The whole is at most the sum of the parts.

    Attributes:
        cor: X and Z depend on each other given the weight Y.
        herding: A weight has not yet given X the frequency that it aims at.
        approx: It aims at another than pi(x | z), as z's share it.
        bin: Weights were drawn for a z with other frequencies than they should be (RDHG alone).
        z: The error of the distribution of Z.
        all: That of X and Z.
    """

    cor: float
    herding: float
    approx: float
    bin: float
    z: float
    all: float

    @classmethod
    def of(cls, visits: ArrayLike, focus: Focus) -> ErrorParts:
        """``visits`` [L, Z, K]: how often x, z came with the first (second) weight of z; L = 1 may be left out."""
        counts = _counts(visits, focus)
        total = counts.sum()
        if not total > 0:
            raise ValueError("there are no samples to count errors of")
        p = counts / total
        of_yz, of_z, truth = p.sum(axis=2), p.sum(axis=(0, 2)), conditional(focus.target)
        sums, aims = np.zeros((2, focus.n_weights, focus.target.shape[1]))
        np.add.at(sums, focus.keys, p)
        of_y = sums.sum(axis=1, keepdims=True)
        used = np.where(of_y > 0, of_y, 1.0)
        if focus.aims is None:
            np.add.at(aims, focus.keys, of_yz[..., None] * truth)
            aim = aims / used
        else:
            aim = focus.aims
            aims = of_y * aim
        given_y = sums / used
        hoped = (focus.chances[..., None] * aim[focus.keys]).sum(axis=0)
        drawn = np.abs(of_yz - focus.chances * of_z).sum(axis=0)
        return cls(
            cor=float(np.abs(p - given_y[focus.keys] * of_yz[..., None]).sum()),
            herding=float(np.abs(sums - aims).sum()),
            approx=float((of_z[:, None] * np.abs(hoped - truth)).sum()),
            bin=float(drawn.sum()),
            z=float(np.abs(of_z - focus.target.sum(axis=1)).sum()),
            all=float(np.abs(p.sum(axis=0) - focus.target).sum()),
        )


@dataclass(frozen=True, slots=True)
class Lambdas:
    """How much each part of the error can weigh in that of the expectation of one function f(x, z) (HGW19 eq. 8)."""

    cor: float
    herding: float
    approx: float
    bin: float
    z: float

    @classmethod
    def of(cls, f: ArrayLike, focus: Focus) -> Lambdas:
        """``f`` [Z, K], split into a function of x, one of z, a constant and a rest by its means over each.

        Norms are halves of ranges where a constant does not matter. As P(z | y) is not known beforehand, the norm of
        the rest stands for that of its conditional expectation: the bound holds for any samples.
        """
        values = np.asarray(f, np.float64).reshape(focus.target.shape)
        by_x = values.mean(axis=0)
        rest = values - by_x - values.mean(axis=1, keepdims=True) + values.mean()
        own, left = float(np.ptp(by_x)) / 2, float(np.abs(rest).max())
        over_x = (conditional(focus.target) * values).sum(axis=1)
        return cls(left, left + own, left + own, left + own, float(np.ptp(over_x)) / 2)

    def bound(self, errors: ErrorParts) -> float:
        """``|mean of f over the samples - E f|`` is at most this (HGW19 eq. 8)."""
        parts = ("cor", "herding", "approx", "bin", "z")
        return sum(getattr(self, part) * getattr(errors, part) for part in parts)


def _counts(visits: ArrayLike, focus: Focus) -> Floats:
    """[L, Z, K]."""
    return np.asarray(visits, np.float64).reshape(*focus.keys.shape, focus.target.shape[1])


def expectation_error(f: ArrayLike, visits: ArrayLike, focus: Focus) -> float:
    """The mean of f [Z, K] over the samples less its expectation."""
    counts = _counts(visits, focus).sum(axis=0)
    values = np.asarray(f, np.float64).reshape(focus.target.shape)
    return float((values * (counts / counts.sum() - focus.target)).sum())


def rao_blackwell_error(f: ArrayLike, visits: ArrayLike, focus: Focus) -> float:
    """The mean over the samples of E[f | z], X integrated out, less the expectation of f [Z, K] (HGW19 eq. 12)."""
    over_x, off = _integrated(f, visits, focus)
    return float((over_x * off).sum())


def rao_blackwell_bound(f: ArrayLike, visits: ArrayLike, focus: Focus) -> float:
    """The size of `rao_blackwell_error` is at most this (HGW19 eq. 13): the errors of the marginals of the other
    variables, weighed by what E[f | z] owes to each alone, and D^z, weighed by the rest.

    What it owes to one is its mean over the states of the others, less its mean over all; where a constant does not
    matter, a norm is half a range.
    """
    over_x, off = (part.reshape(focus.sizes) for part in _integrated(f, visits, focus))
    rest, bound, n = over_x - over_x.mean(), 0.0, len(focus.sizes)
    for j in range(n):
        others = tuple(k for k in range(n) if k != j)
        own = rest.mean(axis=others, keepdims=True)
        bound += float(np.abs(off.sum(axis=others)).sum()) * float(np.ptp(own)) / 2
        rest = rest - own
    return bound + float(np.abs(off).sum()) * float(np.ptp(rest)) / 2


def _integrated(f: ArrayLike, visits: ArrayLike, focus: Focus) -> tuple[Floats, Floats]:
    """[Z] each: E[f | z], and how much more often z came than pi(z) says."""
    counts = _counts(visits, focus).sum(axis=(0, 2))
    values = np.asarray(f, np.float64).reshape(focus.target.shape)
    return (conditional(focus.target) * values).sum(axis=1), counts / counts.sum() - focus.target.sum(axis=1)


def herding_bound(n_sweeps: ArrayLike, n_weights: int, error_bound: float = 0.0, width: float | None = None) -> Floats:
    """2 c B / T, which D^herding of two labels never exceeds (HGW19 eq. 10): B weights, T sweeps, c = 1 + error bound +
    width.

    c bounds ``|w_T - w_0|``, as N(1, y) differs by it from the sum of the p that y saw. HGW19 leave it open (c = 1 for
    one p). Let the p of a weight lie in [l, h] and c0 be the error bound of the plan. Where ``|w| <= c0`` the label may
    be either, and w + p - x lies in [l - 1 - c0, h + c0]. Where w > c0 it is 1, and w + p - 1 lies in (l - 1 + c0, w];
    where w < -c0 it is 0, and w + p lies in [w, h - c0). So w never leaves [l - 1 - c0, h + c0] once it is there, and
    with c0 = 0 (where w = 0 counts as negative) not (l - 1, h]. It starts at 0 or in (p - 1, p], p the first that it
    sees: no two such points of start and end are further apart than 1 + c0 + h - l. A circular weight is a fraction in
    [0, 1) and its label the carry, which gives c = 1 for any p.

    Args:
        width: How far the probabilities that one weight sees lie apart. 0 where it sees one alone (blanket, complete
            and shared herding, random bins) and in the circular form; 1 / B in bins of the threshold form. None: 1 / B,
            which holds for all of these, whatever their form.
    """
    apart = 1.0 / n_weights if width is None else width
    if not 0 <= apart <= 1:
        raise ValueError(f"width is how far probabilities lie apart, from 0 to 1, not {width}")
    return 2.0 * (1.0 + error_bound + apart) * n_weights / np.asarray(n_sweeps, np.float64)


def approx_bound(n_bins: int) -> float:
    """2 / B, which D^approx of DHG(B) never exceeds (HGW19 eq. 11)."""
    return 2.0 / n_bins


def best_bins(n_sweeps: float, error_bound: float = 0.0, ratio: float = 1.0) -> float:
    """B = sqrt(T ratio / c), where the sum of the two bounds, weighed, is least (HGW19 Sec. 6.4); c = 1 + error bound.

    Args:
        ratio: lambda_approx / lambda_herding of the function whose expectation is wanted, 1 for functions of one
            variable, such as marginals.
    """
    for name, value, low in (("n_sweeps", n_sweeps, 1.0), ("error_bound", error_bound, 0.0), ("ratio", ratio, 0.0)):
        if not low <= value < np.inf:
            raise ValueError(f"{name} must be a finite number of at least {low:g}, not {value}")
    return float(np.sqrt(n_sweeps * ratio / (1.0 + error_bound)))


def choose_bins(n_sweeps: int, error_bound: float = 0.0, ratio: float = 1.0, most: int = 2**16) -> int:
    """How many bins DHG should have for a run of T sweeps: `best_bins` as a whole number, 1 to ``most``.

    It weighs the bounds of two parts of the error and leaves the others aside; where conditionals hardly vary, fewer
    bins are better. On a graph of d neighbours more than 2^d bins have nothing more to tell apart.
    """
    return int(np.clip(round(best_bins(n_sweeps, error_bound, ratio)), 1, most))
