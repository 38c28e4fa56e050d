"""The numbers of a CRF that are learned, as one vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from herdner.base.arrays import Floats
from herdner.crf.model import SkipChainModel
from herdner.crf.objectives import Examples, Objective
from herdner.crf.templates import EdgeScale


class Parameters:
    """What is learned, as a vector [d]: the allowed transitions (if ``joint``), the tables of links, and (if
    ``scales``) the weights of their scales.

    ``start`` is the vector of ``crf`` itself; ``origin`` is where the prior has its mean: the transition table of
    ``crf``, and 0 for all that belongs to links; with ``adapted`` it is ``start``.
    """

    def __init__(self, crf: SkipChainModel, joint: bool, scales: bool = True, adapted: bool = False) -> None:
        self.crf = crf
        self.scaled = tuple(scales and each.scale is not None for each in crf.link_tables)
        self.free = np.isfinite(crf.transition) if joint else np.zeros(crf.transition.shape, bool)
        self.origin = self.vector(
            crf.transition,
            [np.zeros_like(each.table) for each in crf.link_tables],
            [np.zeros(4) for _ in crf.link_tables],
        )
        weights = [each.scale.weights() if each.scale else np.zeros(4) for each in crf.link_tables]
        self.start = self.vector(crf.transition, [each.table for each in crf.link_tables], weights)
        if adapted:
            self.origin = self.start

    def __len__(self) -> int:
        return len(self.origin)

    def vector(self, transition: Floats, tables: Sequence[Floats], scales: Sequence[Floats]) -> Floats:
        """[d]: these numbers, or derivatives by them, in one piece."""
        learned = [scale for scale, free in zip(scales, self.scaled, strict=True) if free]
        return np.concatenate([transition[self.free], *(table.ravel() for table in tables), *learned])

    def crf_of(self, vector: Floats) -> SkipChainModel:
        """The CRF with these numbers [d]."""
        crf, at = self.crf, int(self.free.sum())
        transition = crf.transition.copy()
        transition[self.free] = vector[:at]
        tables: list[Floats] = []
        scales: list[EdgeScale | None] = []
        for each in crf.link_tables:
            tables.append(vector[at : at + each.table.size].reshape(each.table.shape).copy())
            at += each.table.size
        for each, free in zip(crf.link_tables, self.scaled, strict=True):
            scales.append(EdgeScale(*vector[at : at + 4].tolist()) if free else each.scale)
            at += 4 if free else 0
        link_tables = [replace(s, table=t, scale=w) for s, t, w in zip(crf.link_tables, tables, scales, strict=True)]
        return replace(crf, transition=transition, link_tables=tuple(link_tables))

    def loss(self, vector: Floats, objective: Objective, examples: Examples, l2: float) -> tuple[float, Floats]:
        """The objective at [d] and ``l2`` times the squared distance from ``origin``, with the derivatives [d]."""
        slope = objective(self.crf_of(vector), examples)
        off = vector - self.origin
        return slope.value + l2 * float(off @ off), self.vector(*slope[1:]) + 2 * l2 * off
