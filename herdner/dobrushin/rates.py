"""How fast the Dobrushin variation of standard scans falls, in closed form (DoGS17 Proposition 9, after Hayes 2006)."""

from __future__ import annotations

import math

import numpy as np

from herdner.base.checks import whole
from herdner.dobrushin.influence import Influence
from herdner.dobrushin.variation import Importance, bound_of_influence, importance_of
from herdner.graph.scan import Scan


def rate_bound(influence: Influence, scan: Scan, n_steps: int, importance: Importance = None) -> float:
    """A bound of the Dobrushin variation after ``n_steps`` of a systematic, checkerboard or uniform random scan.

    It is at most the sum of the importances d, and goes to 0 where a norm of C is below 1. The smaller of that sum and
    `herdner.dobrushin.dobrushin_variation`, which takes O(n_steps) and is sharper, is never above it; this takes
    O(entries).

    Let b be the bounds of the single variables, at first 1, and k the whole sweeps of V variables in T steps.

    * Infinity norm a: an update makes b_i at most a max b, and no other larger. After a sweep max b has fallen by a; a
      step at random takes (I - (I - C) / V) b, whose maximum is at most 1 - (1 - a) / V of the last. So the variation
      is at most ``|d|_1 a^k``, or ``|d|_1 (1 - (1 - a) / V)^T``.
    * 1-norm a: a step at random leaves at most 1 - (1 - a) / V of the sum of b, which begins at V. In a sweep let r_j
      be the part of column j that variables after j use, with the new b_j, and s_j the rest: summing the new b gives
      sum (1 - r_j) b'_j = sum s_j b_j <= sum (a - r_j) b_j <= a sum (1 - r_j) b_j, and 1 - r_j is in [1 - a, 1]. So
      the variation is at most max d V a^k / (1 - a), or max d V (1 - (1 - a) / V)^T.
    * 2-norm a: at random alone, ``|d|_2 sqrt(V) (1 - (1 - a) / V)^T``.

    Raises:
        ValueError: The scan is another, whose variation `dobrushin_variation` gives.
    """
    n, n_steps = bound_of_influence(influence).n_variables, whole(n_steps, "the number of steps of a scan", 0)
    if scan.kind not in ("systematic", "checkerboard", "random"):
        raise ValueError(f"rates are of systematic, checkerboard and random scans, not {scan}; see dobrushin_variation")
    d, norms = importance_of(n, importance), influence.total
    if not n:
        return 0.0
    largest, sweeps = float(d.max()), n_steps // n
    bounds = [float(d.sum())]
    if scan.kind == "random":
        euclidean = float(np.linalg.norm(d)) * math.sqrt(n)
        starts = [(norms.infinity, bounds[0]), (norms.one, largest * n), (norms.spectral, euclidean)]
        bounds += [start * (1 - (1 - norm) / n) ** n_steps for norm, start in starts if norm < 1]
    else:
        bounds += [bounds[0] * norms.infinity**sweeps] if norms.infinity < 1 else []
        bounds += [largest * n * norms.one**sweeps / (1 - norms.one)] if norms.one < 1 else []
    return min(bounds)
