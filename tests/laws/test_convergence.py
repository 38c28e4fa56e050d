"""Decrease of errors with the number of sweeps: the rates and biases that HG16 and HGW19 report on small graphs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from oracle import Oracle

from herdner.graph import FactorGraph, TableFactors, boltzmann_machine, graph_from_joint
from herdner.inference.backends.gibbs import Gibbs, bounded_error_gibbs, dhg, herded_gibbs, plain_gibbs, rdhg
from herdner.inference.gibbs import blanket_sharing, complete_sharing
from herdner.inference.record import Record

RECORD = Record(best=False, marginals=False, joint=True)
COMPLETE = herded_gibbs(sharing=complete_sharing(), record=RECORD)
GIBBS = plain_gibbs(record=RECORD)


class Model:
    """A graph and its exact joint."""

    def __init__(self, graph: FactorGraph) -> None:
        self.graph, self.oracle = graph, Oracle.of_graph(graph)
        self.known: dict = {}

    def error(self, plan: Gibbs, n_sweeps: int, seeds: int = 1) -> float:
        """Return the total variation between sampled and true joint, averaged over ``seeds`` runs."""
        key = plan, n_sweeps, seeds
        if key not in self.known:
            plan = replace(plan, n_sweeps=n_sweeps, record=RECORD)
            joints = [plan.infer(self.graph, seed).joint.ravel() for seed in range(seeds)]
            self.known[key] = float(np.mean([np.abs(joint - self.oracle.probabilities).sum() / 2 for joint in joints]))
        return self.known[key]

    def errors(self, plan: Gibbs, lengths: list[int], seeds: int = 1) -> np.ndarray:
        return np.array([self.error(plan, n, seeds) for n in lengths])


def slope(lengths: list[int], errors: np.ndarray) -> float:
    """Return the slope of log error against log T."""
    return float(np.polyfit(np.log(lengths), np.log(errors), 1)[0])


# ---- complete herded Gibbs (HG16 Theorem 3) ----


@cache
def random_model(seed: int) -> Model:
    """Return 3 to 5 variables of two or three states, with some pairs missing and a factor of three variables."""
    rng = np.random.default_rng(seed)
    n = 3 + seed % 3
    sizes = rng.integers(2, 4, n) if seed % 2 else np.full(n, 2)
    unary = [TableFactors([[i]], rng.normal(size=(1, sizes[i]))) for i in range(n)]
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.7]
    joined = [TableFactors([pair], rng.normal(size=(1, *sizes[list(pair)]))) for pair in pairs]
    return Model(
        FactorGraph(sizes, [*unary, *joined, TableFactors([[2, 0, 1]], rng.normal(size=(1, *sizes[[2, 0, 1]])))])
    )


LENGTHS = [2**10, 2**13, 2**15, 2**17, 2**20]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("form", ["circular", "threshold"])
def test_complete_herding_has_an_error_of_one_over_t(seed, form):
    """T times the total variation stays below the number of joint states; that of a random sampler does not."""
    model = random_model(seed)
    grown = LENGTHS * model.errors(replace(COMPLETE, form=form), LENGTHS)
    assert grown.max() < len(model.oracle.states)
    assert grown[-1] < 2 * grown[:3].max()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_gibbs_has_an_error_of_one_over_the_root_of_t(seed):
    model = random_model(seed)
    grown = LENGTHS * model.errors(GIBBS, LENGTHS)
    assert grown[-1] > 5 * grown[0], "the root of 1024 is 32"
    assert grown[-1] > len(model.oracle.states)


def test_slopes_are_minus_one_and_minus_a_half():
    slopes = np.array(
        [[slope(LENGTHS, random_model(seed).errors(plan, LENGTHS)) for seed in range(6)] for plan in (COMPLETE, GIBBS)]
    ).mean(axis=1)
    assert slopes == pytest.approx([-1.0, -0.5], abs=0.08)


# ---- HG16 Sec. 4.1 and 4.2 ----


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.01, 0.001])
def test_two_variables_that_agree(epsilon):
    """Reproduce HG16 Table 1, Fig. 5: the joint error of herded Gibbs falls like 1 / T, that of Gibbs like its root.

    After the paper's 2.6 * 10^5 sweeps herding has a far smaller error for every epsilon.
    """
    model = Model(graph_from_joint([[0.25 - epsilon, epsilon], [epsilon, 0.75 - epsilon]]))
    lengths = [2**e for e in range(12, 19, 2)]
    herded, random = model.errors(herded_gibbs(), lengths, 6), model.errors(GIBBS, lengths, 6)
    assert slope(lengths, herded) == pytest.approx(-1, abs=0.2)
    assert slope(lengths, random) == pytest.approx(-0.5, abs=0.25)
    assert herded[-1] < random[-1] / 10


@cache
def four_variables(seed: int) -> Model:
    """Return the model of HG16 Fig. 7: two pairs missing, energies from a standard normal distribution."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((4, 4))
    for i, j in ((0, 1), (0, 2), (1, 3), (2, 3)):
        weights[i, j] = weights[j, i] = rng.normal()
    return Model(boltzmann_machine(weights, rng.normal(size=4)))


@pytest.mark.slow
def test_the_counterexample_of_an_incomplete_graph():
    """Reproduce HG16 Sec. 4.2, Fig. 7c: the error of herded Gibbs has a limit; Gibbs and complete herding pass it."""
    model = four_variables(3)
    plateau = model.errors(herded_gibbs(), [2**16, 2**19, 2**22])
    assert plateau.min() > 0.9 * plateau.max(), "the error has stopped"
    assert plateau.max() > 2e-3, "not by rounding"
    assert model.error(GIBBS, 2**22) < plateau[-1] / 3
    assert model.error(COMPLETE, 2**22) < 1e-5


@pytest.mark.slow
def test_missing_pairs_bias_herded_gibbs_on_most_graphs():
    for seed in range(4):
        model = four_variables(seed)
        assert model.error(herded_gibbs(), 2**20) > 50 * model.error(COMPLETE, 2**20)


# ---- HGW19 ----


@cache
def ring() -> Model:
    """Return the model of HGW19 Sec. 3.2: nine variables of values -1, 1."""
    rng = np.random.default_rng(0)
    edges = [[i, (i + 1) % 9] for i in range(9)]
    return Model(boltzmann_machine(rng.normal(0.5, 0.05, 9), rng.normal(0.2, 0.05, 9), (-1, 1), edges=edges))


def herding(n_neighbours: int) -> Gibbs:
    """Return HGW19's Herding(2), .., Herding(8): dummy edges to the variables 2, 3, .. places away."""
    dummies = [(i, (i + k) % 9) for k in range(2, n_neighbours // 2 + 1) for i in range(9)]
    return Gibbs(sharing=blanket_sharing(), dummy_edges=dummies or None, record=RECORD)


def mean_error(model: Model, plan: Gibbs, n_sweeps: int, variables: list[int], runs: int = 30) -> float:
    """Return the mean absolute error of E[the sum of these variables]."""
    plan = replace(plan, n_sweeps=n_sweeps, record=Record(best=False))
    true = sum(model.oracle.marginal(i)[1] for i in variables)
    found = [plan.infer(model.graph, seed).marginals[variables, 1].sum() for seed in range(runs)]
    return float(np.mean(np.abs(np.array(found) - true)))


ALL = list(range(9))


@pytest.mark.slow
def test_dummy_edges_take_the_bias_away_step_by_step():
    """Reproduce HGW19 Fig. 1, left: Herding(2), (4), (6) stop at decreasing errors; Herding(8) continues like 1 / T."""
    lengths = [2**16, 2**20]
    joints = [ring().errors(herding(n), lengths) for n in (2, 4, 6, 8)]
    last = [ends[1] for ends in joints]
    assert last == sorted(last, reverse=True)
    assert slope(lengths, joints[3]) == pytest.approx(-1, abs=0.1)
    assert slope(lengths, ring().errors(COMPLETE, lengths)) == pytest.approx(-1, abs=0.1)
    two, four, eight = ([mean_error(ring(), herding(n), t, ALL, 2) for t in (2**18, 2**20)] for n in (2, 4, 8))
    assert two[1] == pytest.approx(two[0], rel=0.05)
    assert four[1] == pytest.approx(four[0], rel=0.2)
    assert two[1] > 3 * four[1] > 30 * eight[1]


def test_the_fewer_weights_the_sooner_they_help():
    """Reproduce HGW19 Fig. 1, left, below 2^10 sweeps: errors in the order Herding(2), Herding(8), Gibbs."""
    two, eight, random = (mean_error(ring(), plan, 2**9, ALL) for plan in (herding(2), herding(8), GIBBS))
    assert two < eight / 2
    assert eight < random / 1.5


@cache
def all_joined(low: float, high: float) -> Model:
    """Return the models of HGW19 Fig. 1, right (0 to 0.1), and Fig. 4, 8 (-0.5 to 0.5): eight spins."""
    rng = np.random.default_rng(1)
    weights = np.triu(rng.uniform(low, high, (8, 8)), 1)
    return Model(boltzmann_machine(weights + weights.T, rng.uniform(low, high, 8), (-1, 1)))


def test_few_bins_are_ahead_of_gibbs_from_the_start():
    """Reproduce HGW19 Fig. 1, right: at 32 sweeps one bin has a fraction of the error of Gibbs for E[x8].

    Herded Gibbs, whose 128 weights per variable were used less than twice each, has no such advantage.
    """
    model = all_joined(0, 0.1)
    random, one, sixteen, all_keys = (
        mean_error(model, plan, 32, [7]) for plan in (GIBBS, dhg(n_bins=1), dhg(n_bins=16), herded_gibbs())
    )
    assert one < random / 4
    assert sixteen < random / 2
    assert all_keys > random / 2


@pytest.mark.slow
@pytest.mark.parametrize("form", ["circular", "threshold"])
def test_more_bins_less_bias(form):
    """Reproduce HGW19 Fig. 4, 6: the limit of the error of DHG decreases with the number of bins."""
    model = all_joined(-0.5, 0.5)
    ends = [model.error(dhg(n_bins=n, form=form), 2**19) for n in (1, 4, 16, 64)]
    assert all(more < fewer / 1.3 for fewer, more in pairwise(ends))
    assert model.error(dhg(n_bins=4, form=form), 2**17) == pytest.approx(ends[1], rel=0.1), "it has stopped"


@pytest.mark.slow
@pytest.mark.parametrize("n_bins", [4, 16])
def test_random_bins_have_less_bias_than_bins(n_bins):
    """Reproduce HGW19 Fig. 8, where DHG has the threshold form; the circular form is closer to RDHG."""
    model = all_joined(-0.5, 0.5)
    threshold, circular = (model.error(dhg(n_bins=n_bins, form=form), 2**19) for form in ("threshold", "circular"))
    assert model.error(rdhg(n_bins=n_bins), 2**19) < threshold / 2
    assert circular < threshold / 2


@pytest.mark.slow
def test_a_bounded_error_has_less_bias_than_herding_and_less_error_than_gibbs():
    """Reproduce HGW19 Fig. 7: a ring of eight variables, parameters uniform in [0, 1]."""
    rng = np.random.default_rng(1)
    edges = [[i, (i + 1) % 8] for i in range(8)]
    model = Model(boltzmann_machine(rng.uniform(0, 1, 8), rng.uniform(0, 1, 8), (-1, 1), edges=edges))
    herded, random = model.error(herded_gibbs(), 2**20), model.error(GIBBS, 2**20, 4)
    bounded = model.error(bounded_error_gibbs(error_bound=3.0), 2**20, 4)
    assert bounded < herded / 2
    assert bounded < random / 1.1
