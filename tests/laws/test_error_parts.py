"""The parts of the error of the last variable of a sweep (HGW19 Sec. 4.3), and their bounds, from joint histograms.

y is the herding weight that the update used, z the state of the other variables, q(x | y) what the weight aims at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from oracle import Oracle

from herdner.graph import FactorGraph, boltzmann
from herdner.inference.gibbs import Gibbs, dhg, gibbs, herded_gibbs
from herdner.sampling import Record, complete

N = 8
RECORD = Record(best=False, marginals=False, joint=True)


@dataclass
class Parts:
    """D^cor, D^herding, D^approx, D^z and D^all, as HGW19 names them."""

    cor: float
    herding: float
    approx: float
    z: float
    all: float

    @classmethod
    def of(cls, joint: np.ndarray, target: np.ndarray, y: np.ndarray) -> Parts:
        """``joint`` and ``target`` [Z, 2]: of the samples and true; ``y`` [Z]: the weight that each z uses.

        q(x | y) is the mean of pi(x | z) over the samples of y: a weight that sees several probabilities aims at it.
        """
        of_z, truth = joint.sum(axis=1), target / target.sum(axis=1, keepdims=True)
        sums, aims = np.zeros((y.max() + 1, 2)), np.zeros((y.max() + 1, 2))
        np.add.at(sums, y, joint)
        np.add.at(aims, y, of_z[:, None] * truth)
        of_y = np.maximum(sums.sum(axis=1, keepdims=True), 1e-300)
        return cls(
            cor=float(np.abs(joint - (sums / of_y)[y] * of_z[:, None]).sum()),
            herding=float(np.abs(sums - aims).sum()),
            approx=float((of_z[:, None] * np.abs((aims / of_y)[y] - truth)).sum()),
            z=float(np.abs(of_z - target.sum(axis=1)).sum()),
            all=float(np.abs(joint - target).sum()),
        )


class Model:
    """Eight variables of values -1, 1."""

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self.target = Oracle.of_graph(graph).probabilities.reshape(-1, 2)
        self.others = np.array(np.unravel_index(np.arange(2 ** (N - 1)), (2,) * (N - 1))).T

    def parts(self, plan: Gibbs, n_sweeps: int, y: np.ndarray, seed: int = 1) -> Parts:
        joint = replace(plan, n_sweeps=n_sweeps, record=RECORD).infer(self.graph, seed).joint
        return Parts.of(joint.reshape(-1, 2), self.target, y)

    def blanket(self) -> np.ndarray:
        """Of the last variable of the ring."""
        return self.others[:, 0] * 2 + self.others[:, -1]

    def bins(self, n_bins: int) -> np.ndarray:
        p = self.target[:, 1] / self.target.sum(axis=1)
        return np.ceil(p * n_bins).astype(int) - 1


@cache
def ring() -> Model:
    """HGW19 Fig. 3: parameters uniform in [-1, 1]."""
    rng = np.random.default_rng(0)
    edges = [[i, (i + 1) % N] for i in range(N)]
    return Model(boltzmann(rng.uniform(-1, 1, N), rng.uniform(-1, 1, N), (-1, 1), edges=edges))


@cache
def all_joined() -> Model:
    """HGW19 Fig. 4: every pair joined, parameters uniform in [-0.5, 0.5]."""
    rng = np.random.default_rng(1)
    weights = np.triu(rng.uniform(-0.5, 0.5, (N, N)), 1)
    return Model(boltzmann(weights + weights.T, rng.uniform(-0.5, 0.5, N), (-1, 1)))


LENGTHS = [2**10, 2**14, 2**18, 2**20]


def test_herded_gibbs_on_a_ring():
    """HGW19 Fig. 3: D^herding at most 2 / T for each weight, D^approx 0, D^cor comes to a stop."""
    model = ring()
    found = [model.parts(herded_gibbs(), n, model.blanket()) for n in LENGTHS]
    for n, part in zip(LENGTHS, found, strict=True):
        assert part.herding <= 2 * 4 / n + 1e-9
        assert part.approx < 1e-12
        assert part.all <= part.cor + part.herding + part.z + 1e-12
    assert found[3].cor == pytest.approx(found[2].cor, rel=0.2)
    assert found[3].cor > 0.01
    assert found[3].herding < found[3].cor / 100


def test_gibbs_on_a_ring():
    """D^herding falls like the root of 1 / T only, and D^cor goes on falling."""
    model = ring()
    found = [model.parts(gibbs(), n, model.blanket()) for n in LENGTHS]
    assert found[3].herding * LENGTHS[3] > 100
    assert found[3].cor < found[2].cor / 1.5 < found[1].cor / 3


@pytest.mark.parametrize("n_sweeps", LENGTHS[:3])
def test_complete_herding_has_no_part_from_sharing(n_sweeps):
    """Every z has a weight of its own: D^cor and D^approx are 0, D^herding at most 2 / T for each of 128."""
    for model in (ring(), all_joined()):
        part = model.parts(herded_gibbs(sharing=complete()), n_sweeps, np.arange(2 ** (N - 1)))
        assert part.cor < 1e-12
        assert part.approx < 1e-12
        assert part.herding <= 2 * 128 / n_sweeps + 1e-9
        assert part.all <= part.herding + part.z + 1e-12


@pytest.mark.parametrize("n_bins", [1, 2, 5, 16])
@pytest.mark.parametrize("n_sweeps", LENGTHS[:3])
def test_the_bounds_of_dhg(n_bins, n_sweeps):
    """HGW19 eq. 10 and 11: D^herding at most 2 B / T, and D^approx at most 2 / B."""
    model = all_joined()
    part = model.parts(dhg(n_bins=n_bins), n_sweeps, model.bins(n_bins))
    assert part.herding <= 2 * n_bins / n_sweeps + 1e-9
    assert part.approx <= 2 / n_bins
    assert part.all <= part.cor + part.herding + part.approx + part.z + 1e-12


def test_fewer_bins_trade_herding_against_approximation():
    """HGW19 Fig. 4: with B, D^herding grows, D^approx and D^cor fall."""
    model = all_joined()
    found = [model.parts(dhg(n_bins=n), 2**18, model.bins(n)) for n in (2, 8, 32)]
    assert found[0].herding < found[2].herding
    for fewer, more in pairwise(found):
        assert more.approx < fewer.approx / 1.5
        assert more.cor < fewer.cor / 1.5
