"""The parts of the error of three and four labels, held against sums over all states by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from oracle import Oracle
from reference_gibbs import Reference

from herdner.graph import FactorGraph, TableFactors, potts
from herdner.graph.scan import fixed_scan
from herdner.inference.backends.gibbs import Gibbs, bounded_error_gibbs, dhg, herded_gibbs, plain_gibbs, rdhg
from herdner.inference.gibbs import (
    bin_sharing,
    blanket_sharing,
    complete_sharing,
    neighbour_sum_sharing,
    random_bin_sharing,
)
from herdner.inference.record import Record
from herdner.studies.convergence import count_visits, focus_variable
from herdner.studies.convergence.exact import Focus

SIZES = (3, 4, 2, 3)
MIXED = FactorGraph(
    SIZES,
    [
        TableFactors([[i, i + 1]], np.random.default_rng(50 + i).normal(size=(1, *SIZES[i : i + 2]))) for i in range(3)
    ],
)  # fmt: skip
POTTS = potts(0.4, np.random.default_rng(52).normal(size=(2, 2, 3)))
LABELLED = {
    "gibbs": plain_gibbs(),
    "blanket": herded_gibbs(),
    "threshold": herded_gibbs(form="threshold"),
    "complete": herded_gibbs(sharing=complete_sharing()),
    "dummies": Gibbs(sharing=blanket_sharing(), dummy_edges=[[0, 3]]),
    "one bin": dhg(n_bins=1),
    "bins": dhg(n_bins=4),
    "bounded": bounded_error_gibbs(error_bound=1.5),
}


def key(plan: Gibbs, variable: int, x: tuple[int, ...], p: list[float]) -> tuple:
    """Return the paper's Y of a state x for a chain of variables."""
    kind = "blanket" if plan.sharing is None else plan.sharing.kind
    if kind == "bins":
        b, p = plan.sharing.n_bins, p[1:] if len(p) == 2 else p
        return tuple(min(int(np.ceil(value * b - 1e-9)) - 1, b - 1) if value > 1e-9 else 0 for value in p)
    near = [j for j in range(len(x)) if abs(j - variable) == 1 or (kind == "complete" and j != variable)]
    if plan.dummy_edges and variable in (0, 3):
        near.append(3 - variable)
    return tuple(x[j] for j in near)


@pytest.mark.parametrize("variable", [0, 2, 3])
@pytest.mark.parametrize("name", LABELLED)
def test_the_parts_are_sums_over_all_states(name, variable):
    """HGW19 Sec. 4.3, read as sums over x, y and z, of states that the sampler itself recorded."""
    plan, n_sweeps = LABELLED[name], 700
    found = count_visits(MIXED, plan, [100, n_sweeps], variable, seed=3).errors[1]
    order = [(variable + 1 + k) % 4 for k in range(4)]
    kept = replace(plan, n_sweeps=n_sweeps, burn_in=0, scan=fixed_scan(order), record=Record(False, False, every=1))
    states = Counter(map(tuple, kept.infer(MIXED, 3).samples[0].tolist()))
    joint = dict(zip(product(*map(range, SIZES)), Oracle.of_graph(MIXED).probabilities.tolist(), strict=True))

    def with_label(x, k):
        return (*x[:variable], k, *x[variable + 1 :])

    labels = range(SIZES[variable])
    rest = sorted({with_label(x, 0) for x in joint})
    pi_z = {z: sum(joint[with_label(z, k)] for k in labels) for z in rest}
    given_z = {z: [joint[with_label(z, k)] / pi_z[z] for k in labels] for z in rest}
    y_of = {z: key(plan, variable, z, given_z[z]) for z in rest}
    p = {x: states[x] / n_sweeps for x in joint}
    p_z = {z: sum(p[with_label(z, k)] for k in labels) for z in rest}
    cor = herding = approx = 0.0
    for y in set(y_of.values()):
        mine = [z for z in rest if y_of[z] == y]
        p_y = sum(p_z[z] for z in mine)
        if p_y == 0:
            continue
        for k in labels:
            p_xy = sum(p[with_label(z, k)] for z in mine)
            q = sum(p_z[z] * given_z[z][k] for z in mine) / p_y
            herding += abs(p_xy - p_y * q)
            cor += sum(abs(p[with_label(z, k)] - p_xy / p_y * p_z[z]) for z in mine)
            approx += sum(p_z[z] * abs(q - given_z[z][k]) for z in mine)
    assert found.all == pytest.approx(sum(abs(p[x] - joint[x]) for x in joint), abs=1e-12)
    assert found.z == pytest.approx(sum(abs(p_z[z] - pi_z[z]) for z in rest), abs=1e-12)
    assert (found.cor, found.herding, found.approx) == pytest.approx((cor, herding, approx), abs=1e-12)
    assert found.bin == 0
    assert found.all <= found.cor + found.herding + found.approx + found.z + 1e-12


@pytest.mark.parametrize("variable", [0, 1, 2, 3])
@pytest.mark.parametrize("n_bins", [1, 3, 8])
def test_random_bins_of_labels_are_those_that_the_sampler_drew(variable, n_bins):
    """Visits by weight, beside a slow sampler that notes what each update aims at."""
    plan, n_sweeps, drew = rdhg(n_bins=n_bins), 120, []

    class Noting(Reference):
        def decided(self, i, key, p, drawn):
            x = super().decided(i, key, p, drawn)
            if i == variable:
                drew.append((tuple(np.round(np.array(p) / 2**32, 6)), (*self.x[:i], *self.x[i + 1 :]), x))
            return x

    order = [(variable + 1 + k) % 4 for k in range(4)]
    Noting(replace(plan, n_sweeps=n_sweeps, scan=fixed_scan(order)), MIXED, 3)
    found = count_visits(MIXED, plan, [n_sweeps], variable, seed=3)
    seen, rest = found.focus, list(product(*(range(k) for j, k in enumerate(SIZES) if j != variable)))
    counted = Counter()
    for layer, z, x in np.argwhere(found.visits[0]):
        aim = tuple(np.round(seen.aims[seen.keys[layer, z]], 6))
        counted[aim, rest[z], int(x)] += int(found.visits[0, layer, z, x])
    assert counted == Counter(drew)
    p = seen.target / seen.target.sum(axis=1, keepdims=True)
    np.testing.assert_allclose((seen.chances[..., None] * seen.aims[seen.keys]).sum(axis=0), p, atol=1e-8)
    np.testing.assert_allclose(seen.aims.sum(axis=1), 1)


def test_random_bins_of_labels_trade_the_approximation_for_an_error_that_goes_away():
    """HGW19 Sec. 6.5, for three labels."""
    lengths = [2**9, 2**12, 2**15]
    found = count_visits(POTTS, rdhg(n_bins=4), lengths, seed=1).errors
    for part in found:
        assert part.approx < 1e-7
        assert part.all <= part.cor + part.herding + part.bin + part.z + 1e-9
    assert found[2].bin < found[0].bin / 3
    fixed = count_visits(POTTS, dhg(n_bins=4, form="threshold"), lengths, seed=1).errors[2]
    assert found[2].all < fixed.all / 2


def test_groups_of_random_bins_are_their_own():
    for plan, other in ((rdhg(n_bins=4), blanket_sharing()), (plain_gibbs(), random_bin_sharing(4))):
        with pytest.raises(ValueError, match="random bins"):
            count_visits(POTTS, plan, [10], sharing=other)


def test_complete_herding_of_three_labels_has_no_part_from_sharing():
    """It comes to the target like 1 / T: every count within K - 1 of its mean."""
    lengths = [2**9, 2**12, 2**15]
    found = count_visits(POTTS, herded_gibbs(sharing=complete_sharing()), lengths, seed=1)
    for n, part in zip(lengths, found.errors, strict=True):
        assert part.cor < 1e-12
        assert part.approx < 1e-12
        assert part.herding <= 3 * 2 * 27 / n + 1e-9
    assert found.errors[2].all < found.errors[0].all / 20
    by_gibbs = count_visits(POTTS, plain_gibbs(), lengths, seed=1).errors[2]
    assert found.errors[2].all < by_gibbs.all / 3
    shared = count_visits(POTTS, herded_gibbs(), lengths, seed=1).errors[2]
    assert shared.cor > 10 * shared.herding


def test_sharing_of_labels_groups_states_as_it_says():
    assert focus_variable(POTTS).n_weights == 9
    assert focus_variable(POTTS, complete_sharing()).n_weights == 27
    assert (
        focus_variable(POTTS, neighbour_sum_sharing()).n_weights == 6
    )  # how often each of three labels comes among two neighbours
    assert focus_variable(POTTS, bin_sharing(1)).n_weights == 1
    assert isinstance(focus_variable(MIXED, variable=1), Focus)
    assert focus_variable(MIXED, variable=1).target.shape == (18, 4)


def test_what_the_estimate_of_two_labels_cannot_take_is_told():
    with pytest.raises(ValueError, match="a binary variable, got a variable of 3 states"):
        _ = count_visits(POTTS, plain_gibbs(), [50], seed=1).correlation
    two = count_visits(MIXED, plain_gibbs(), [20000], variable=2, seed=1)
    assert two.correlation.total >= 0


@pytest.mark.parametrize(
    "sharing",
    [blanket_sharing(), complete_sharing(), neighbour_sum_sharing(), bin_sharing(4), random_bin_sharing(4)],
    ids=str,
)
def test_a_single_variable_has_no_others(sharing) -> None:
    """Its weight sees one probability, so that the herding part is all there is, but for random bins' own."""
    graph = FactorGraph([3], [TableFactors([[0]], [[0.0, 1.0, 2.0]])])
    (errors,) = count_visits(graph, Gibbs(sharing=sharing), [1000], seed=1).errors
    assert errors.cor + errors.approx + errors.z < 1e-12
    assert errors.all <= errors.herding + errors.bin + 1e-12
    assert errors.herding < 0.01
