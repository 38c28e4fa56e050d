"""The parts of the error of the last variable of a sweep (HGW19 Sec. 4.3, 6), and their bounds."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from herdner.graph import FactorGraph, boltzmann_machine
from herdner.inference.backends.gibbs import Gibbs, dhg, herded_gibbs, plain_gibbs, rdhg
from herdner.inference.gibbs import bin_sharing, complete_sharing
from herdner.studies.convergence import ErrorParts, approx_bound, count_visits, herding_bound

N = 8
LENGTHS = [2**10, 2**14, 2**18, 2**20]


@cache
def ring() -> FactorGraph:
    """Return the model of HGW19 Fig. 3: parameters uniform in [-1, 1]."""
    rng = np.random.default_rng(0)
    edges = [[i, (i + 1) % N] for i in range(N)]
    return boltzmann_machine(rng.uniform(-1, 1, N), rng.uniform(-1, 1, N), (-1, 1), edges=edges)


@cache
def all_joined() -> FactorGraph:
    """Return the model of HGW19 Fig. 4: every pair joined, parameters uniform in [-0.5, 0.5]."""
    rng = np.random.default_rng(1)
    weights = np.triu(rng.uniform(-0.5, 0.5, (N, N)), 1)
    return boltzmann_machine(weights + weights.T, rng.uniform(-0.5, 0.5, N), (-1, 1))


def errors(graph: FactorGraph, plan: Gibbs, lengths: list[int] = LENGTHS, **more) -> list[ErrorParts]:
    return count_visits(graph, plan, lengths, seed=1, **more).errors


def slope(values: list[float], lengths: list[int] = LENGTHS) -> float:
    return float(np.polyfit(np.log(lengths), np.log(values), 1)[0])


def test_herded_gibbs_on_a_ring():
    """HGW19 Fig. 3: D^herding is at most 2 / T per weight and falls like 1 / T, D^approx is 0, D^cor has a limit."""
    found = errors(ring(), herded_gibbs())
    for n, part in zip(LENGTHS, found, strict=True):
        assert part.herding <= herding_bound(n, 4) + 1e-9
        assert part.approx < 1e-12
    assert slope([part.herding for part in found]) == pytest.approx(-1, abs=0.15)
    assert found[3].cor == pytest.approx(found[2].cor, rel=0.2)
    assert found[3].cor > 0.01
    assert found[3].herding < found[3].cor / 100


def test_gibbs_on_a_ring():
    """D^herding decreases like the root of 1 / T only, and D^cor keeps decreasing."""
    found = errors(ring(), plain_gibbs())
    assert found[3].herding * LENGTHS[3] > 100
    assert slope([part.herding for part in found]) == pytest.approx(-0.5, abs=0.2)
    assert found[3].cor < found[2].cor / 1.5 < found[1].cor / 3


def test_complete_herding_has_no_part_from_sharing():
    """Every z has its own weight: D^cor and D^approx are 0, D^herding is at most 2 / T for each of 128."""
    for graph in (ring(), all_joined()):
        for n, part in zip(LENGTHS, errors(graph, herded_gibbs(sharing=complete_sharing())), strict=True):
            assert part.cor < 1e-12
            assert part.approx < 1e-12
            assert part.herding <= herding_bound(n, 128) + 1e-9


@pytest.mark.parametrize("n_bins", [1, 2, 5, 16])
def test_the_bounds_of_dhg(n_bins):
    """HGW19 eq. 10 and 11: D^herding is at most 2 B / T, and D^approx at most 2 / B."""
    for n, part in zip(LENGTHS, errors(all_joined(), dhg(n_bins=n_bins)), strict=True):
        assert part.herding <= herding_bound(n, n_bins) + 1e-9
        assert part.approx <= approx_bound(n_bins)


def test_fewer_bins_trade_herding_against_approximation():
    """HGW19 Fig. 4: with B, D^herding increases, D^approx and D^cor decrease."""
    found = [errors(all_joined(), dhg(n_bins=n), [2**18])[0] for n in (2, 8, 32)]
    assert found[0].herding < found[2].herding
    for fewer, more in pairwise(found):
        assert more.approx < fewer.approx / 1.5
        assert more.cor < fewer.cor / 1.5


def test_random_bins_trade_the_approximation_for_an_error_that_goes_away():
    """HGW19 Sec. 6.5: D^approx is 0, and D^bin decreases like the root of 1 / T."""
    found = errors(all_joined(), rdhg(n_bins=8))
    assert max(part.approx for part in found) < 1e-7
    assert slope([part.bin for part in found]) == pytest.approx(-0.5, abs=0.15)
    for n, part in zip(LENGTHS, found, strict=True):
        assert part.herding <= herding_bound(n, 9) + 1e-9
    fixed = errors(all_joined(), dhg(n_bins=8, form="threshold"), [2**20])[0]
    assert found[3].all < fixed.all / 2


def test_gibbs_is_grouped_as_one_likes():
    """D^approx of Gibbs is that of the bins by which its updates are grouped."""
    random, herded = (
        errors(all_joined(), plan, [2**18], sharing=bin_sharing(4))[0] for plan in (plain_gibbs(), dhg(n_bins=4))
    )
    assert random.approx == pytest.approx(herded.approx, rel=0.05)
    assert random.herding > 20 * herded.herding
