"""Parts of the integration error of herded samplers, and their bounds (HGW19, Sec. 4 and 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, finite
from herdner.base.checks import check_integer, check_real
from herdner.studies.convergence.exact import Focus, conditional


@dataclass(frozen=True, slots=True)
class ErrorParts:
    """Parts of the error of joint samples of one variable X and all other variables Z (HGW19, Sec. 4.3 and 6.5).

    Each sample is recorded right after an update of X.

    ``all`` is at most the sum of the other parts. ``bin`` weighs each z by its frequency P(z), as eq. 5 and the
    authors' program do. With pi(z) as weight, as printed in Sec. 6.5, the sum of the parts would not be a bound.

    Attributes:
        cor: Dependence of X and Z given the weight Y.
        herding: Difference between the frequency of X at a weight and the target frequency of the weight.
        approx: Difference between the target frequency and pi(x | z), because several z share a weight.
        bin: Difference between the frequencies of the drawn weights and their probabilities (RDHG only).
        z: Error of the distribution of Z.
        all: Error of the distribution of X and Z.
    """

    cor: float
    herding: float
    approx: float
    bin: float
    z: float
    all: float

    @classmethod
    def of(cls, visits: ArrayLike, focus: Focus) -> ErrorParts:
        """Compute the parts of the error from visit counts.

        Args:
            visits: [L, Z, K], the number of samples by weight (see `Focus.keys`), z and x; the axis L may be omitted if
                L = 1.
            focus: The variable X and its weights.

        Returns:
            The parts of the error.

        Raises:
            ValueError: There are no samples, a count is negative or not a number, or the shape does not fit.
        """
        counts = _counts(visits, focus)
        p = counts / counts.sum()
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
    """Coefficients of `ErrorParts` in an upper bound on the error of the mean of f(x, z) (HGW19, eq. 8).

    Attributes:
        cor: Coefficient of ``ErrorParts.cor``.
        herding: Coefficient of ``ErrorParts.herding``.
        approx: Coefficient of ``ErrorParts.approx``.
        bin: Coefficient of ``ErrorParts.bin``.
        z: Coefficient of ``ErrorParts.z``.
    """

    cor: float
    herding: float
    approx: float
    bin: float
    z: float

    @classmethod
    def of(cls, f: ArrayLike, focus: Focus) -> Lambdas:
        """Compute the coefficients of the error bound (HGW19, eq. 8) for a function f(x, z).

        The function f is split into a function of x, a function of z, a constant, and a rest.

        The norm of a function is half its range where an added constant does not matter, else its largest absolute
        value. P(z | y) is not known in advance, so the norm of the rest replaces the norm of the rest's conditional
        expectation; the bound then holds for any samples.

        Args:
            f: The function, float64[Z, K].
            focus: The variable X and its weights.

        Returns:
            The coefficients.
        """
        values = _values(f, focus)
        by_x = values.mean(axis=0)
        rest = values - by_x - values.mean(axis=1, keepdims=True) + values.mean()
        own, residual = float(np.ptp(by_x)) / 2, float(np.abs(rest).max())
        over_x = (conditional(focus.target) * values).sum(axis=1)
        return cls(residual, residual + own, residual + own, residual + own, float(np.ptp(over_x)) / 2)

    def bound(self, errors: ErrorParts) -> float:
        """Return an upper bound on the absolute error of the sample mean of f (HGW19, eq. 8).

        Args:
            errors: The parts of the error.
        """
        parts = ("cor", "herding", "approx", "bin", "z")
        return sum(getattr(self, part) * getattr(errors, part) for part in parts)


def _counts(visits: ArrayLike, focus: Focus) -> Floats:
    """Check visit counts; return them as float64[L, Z, K], with axes for the weights, for z and for x."""
    counts = finite(visits, "`visits`")
    shape = (*focus.keys.shape, focus.target.shape[1])
    if counts.size != math.prod(shape):
        raise ValueError(f"`visits` must have shape {list(shape)}, got {list(counts.shape)}")
    if not (counts.min() >= 0 and counts.sum() > 0):
        raise ValueError(
            f"`visits` must contain at least one sample and no negative count, got counts of {counts.min():g} to"
            f" {counts.max():g}"
        )
    return counts.reshape(shape)


def _values(f: ArrayLike, focus: Focus) -> Floats:
    """Check the values f(x, z); return them as float64[Z, K], with one row for each z and one column for each x."""
    values = finite(f, "`f`")
    if values.size != focus.target.size:
        raise ValueError(f"`f` must have shape {list(focus.target.shape)}, got {list(values.shape)}")
    return values.reshape(focus.target.shape)


def expectation_error(f: ArrayLike, visits: ArrayLike, focus: Focus) -> float:
    """Return the error of a sample mean: the mean of f over the samples minus the exact expectation of f.

    Args:
        f: The function, float64[Z, K].
        visits: See `ErrorParts.of`.
        focus: The variable X and its weights.
    """
    counts = _counts(visits, focus).sum(axis=0)
    values = _values(f, focus)
    return float((values * (counts / counts.sum() - focus.target)).sum())


def rao_blackwell_error(f: ArrayLike, visits: ArrayLike, focus: Focus) -> float:
    """Return the error of a Rao-Blackwellised mean: the sample mean of E[f | z] minus E[f] (HGW19, eq. 12).

    Args:
        f: The function, float64[Z, K].
        visits: See `ErrorParts.of`.
        focus: The variable X and its weights.
    """
    over_x, off = _rao_blackwell_parts(f, visits, focus)
    return float((over_x * off).sum())


def rao_blackwell_bound(f: ArrayLike, visits: ArrayLike, focus: Focus) -> float:
    """Return an upper bound on the absolute value of `rao_blackwell_error` (HGW19, eq. 13).

    E[f | z] is split into one function per other variable and a rest. The function of a variable is the mean over the
    states of all other variables, minus the overall mean. The bound is the sum of two terms: the marginal errors of the
    variables, weighted by the norms of their functions; and D^z, weighted by the norm of the rest. The norm of a
    function is half its range.

    Args:
        f: The function, float64[Z, K].
        visits: See `ErrorParts.of`.
        focus: The variable X and its weights.
    """
    over_x, off = (part.reshape(focus.sizes) for part in _rao_blackwell_parts(f, visits, focus))
    rest, bound, n = over_x - over_x.mean(), 0.0, len(focus.sizes)
    for j in range(n):
        others = tuple(k for k in range(n) if k != j)
        own = rest.mean(axis=others, keepdims=True)
        bound += float(np.abs(off.sum(axis=others)).sum()) * float(np.ptp(own)) / 2
        rest = rest - own
    return bound + float(np.abs(off).sum()) * float(np.ptp(rest)) / 2


def _rao_blackwell_parts(f: ArrayLike, visits: ArrayLike, focus: Focus) -> tuple[Floats, Floats]:
    """Return E[f | z], and the frequency of z minus its probability, for each z.

    A joint state z has the states of all variables but that of ``focus``. Frequencies are computed from ``visits``.
    """
    counts = _counts(visits, focus).sum(axis=(0, 2))
    values = _values(f, focus)
    return (conditional(focus.target) * values).sum(axis=1), counts / counts.sum() - focus.target.sum(axis=1)


def herding_bound(n_sweeps: ArrayLike, n_weights: int, error_bound: float = 0.0, width: float | None = None) -> Floats:
    """Return an upper bound on D^herding, the herding part of the error of a binary variable (HGW19, eq. 10).

    The bound is 2 c B / T.

    B is the number of weights, T the number of sweeps, and c = 1 + error bound + width.

    c bounds ``|w_T - w_0|``, the difference between N(1, y) and the sum of the probabilities p with which the weight y
    was updated. HGW19 do not specify c if a weight has several p (for one p, c = 1). Let the p of a weight lie in [l,
    h], and let c0 be the error bound of the plan.

    * If ``|w| <= c0``, both states are possible, and w + p - x lies in [l - 1 - c0, h + c0].
    * If w > c0, the state is 1, and w + p - 1 lies in (l - 1 + c0, w].
    * If w < -c0, the state is 0, and w + p lies in [w, h - c0).

    Therefore w never leaves [l - 1 - c0, h + c0]. If c0 = 0, where w = 0 counts as negative, it stays in
    (l - 1, h]. It starts at 0 or in (p - 1, p], where p is its first probability. The distance between any such start
    and end is at most 1 + c0 + h - l = c. A circular weight is a fraction in [0, 1) and its state is the carry, so that
    c = 1 for any p.

    Args:
        n_sweeps: Number of sweeps T, or an array of such numbers.
        n_weights: Number of weights B.
        error_bound: The error bound c0 of the plan.
        width: Range of the probabilities of one weight. It is 0 if the weight has a single probability (blanket,
            complete and shared herding, random bins) and in the circular form; it is 1 / B in bins of the threshold
            form. None means 1 / B, which is valid in all these cases.

    Returns:
        float64 in the shape of ``n_sweeps``.

    Raises:
        ValueError: ``width`` is not in [0, 1], or another argument is not a number in its range.
    """
    check_integer(n_weights, "n_weights")
    spread = 1.0 / n_weights if width is None else check_real(width, "width", 0, 1)
    lengths = finite(n_sweeps, "`n_sweeps`").reshape(np.shape(n_sweeps))
    if not (lengths >= 1).all():
        raise ValueError(f"`n_sweeps` must be at least 1, got {lengths.min():g}")
    return 2.0 * (1.0 + check_real(error_bound, "error_bound", 0) + spread) * n_weights / lengths


def approx_bound(n_bins: int) -> float:
    """Return 2 / ``n_bins``, an upper bound on D^approx, the approximation part of the error of DHG (HGW19, eq. 11).

    Args:
        n_bins: Number of bins B.

    Raises:
        ValueError: ``n_bins`` is not a whole number of at least 1.
    """
    return 2.0 / check_integer(n_bins, "n_bins")


def best_bins(n_sweeps: float, error_bound: float = 0.0, ratio: float = 1.0) -> float:
    """Return the number of bins that minimises a weighted sum of two error bounds of DHG (HGW19, Sec. 6.4).

    B = sqrt(T ratio / c), where c = 1 + error bound.

    Args:
        n_sweeps: Number of sweeps T.
        error_bound: The error bound of the plan.
        ratio: lambda_approx / lambda_herding of the function whose expectation is estimated; 1 for functions of one
            variable, such as marginals.

    Raises:
        ValueError: An argument is out of range.
    """
    for name, value, low in (("n_sweeps", n_sweeps, 1.0), ("error_bound", error_bound, 0.0), ("ratio", ratio, 0.0)):
        check_real(value, name, low)
    return float(np.sqrt(n_sweeps * ratio / (1.0 + error_bound)))


def choose_bins(n_sweeps: int, error_bound: float = 0.0, ratio: float = 1.0, most: int = 2**16) -> int:
    """Return the result of `best_bins`, rounded to a whole number and clipped to the range from 1 to ``most``.

    The two error bounds of `best_bins` cover only two parts of the error. If full conditionals hardly vary, fewer bins
    are better. On a graph of degree d, more than 2^d bins do not reduce the error further.

    Args:
        n_sweeps: Number of sweeps T.
        error_bound: The error bound of the plan.
        ratio: See `best_bins`.
        most: Largest number of bins.

    Returns:
        The number of bins of DHG.

    Raises:
        ValueError: An argument is out of range.
    """
    check_integer(most, "most")
    return int(np.clip(round(best_bins(n_sweeps, error_bound, ratio)), 1, most))
