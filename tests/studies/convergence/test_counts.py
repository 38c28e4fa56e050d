"""Counting by the compiled loop: equal to the sampler's own samples, and errors as HGW19 defines them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from oracle import Oracle

from herdner.graph import FactorGraph, TableFactors, boltzmann_machine, compile_tables, ising, potts
from herdner.graph.scan import fixed_scan
from herdner.inference.backends.gibbs import (
    Gibbs,
    annealed_gibbs,
    bounded_error_gibbs,
    dhg,
    herded_gibbs,
    plain_gibbs,
    qmc_gibbs,
    rdhg,
)
from herdner.inference.gibbs import (
    Sobol,
    bin_sharing,
    blanket_sharing,
    complete_sharing,
    neighbour_sum_sharing,
    random_bin_sharing,
)
from herdner.inference.record import Record
from herdner.studies.convergence import (
    ErrorParts,
    Focus,
    Lambdas,
    count_visits,
    expectation_error,
    focus_variable,
    rao_blackwell_bound,
    rao_blackwell_error,
)
from herdner.studies.convergence.recorded import count_recorded, focus_of_recorded


def full(n: int, seed: int = 1) -> FactorGraph:
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(-0.7, 0.7, (n, n)), 1)
    return boltzmann_machine(weights + weights.T, rng.uniform(-0.5, 0.5, n), (-1, 1))


def triples() -> FactorGraph:
    rng = np.random.default_rng(2)
    return FactorGraph([2] * 6, [TableFactors([[0, 1, 2], [2, 3, 4], [5, 1, 4]], rng.normal(size=(3, 2, 2, 2)))])


GRAPHS = {
    "ring": boltzmann_machine(np.full(8, 0.6), np.full(8, 0.2), (-1, 1), edges=[[i, (i + 1) % 8] for i in range(8)]),
    "full": full(7),
    "grid": ising(0.4, np.random.default_rng(3).normal(size=(3, 4))),
    "triples": triples(),
    "one": FactorGraph([2], [TableFactors([[0]], [[0.3, 0.9]])]),
    "forbidden": FactorGraph([2, 2, 2], [TableFactors([[0, 1], [1, 2]], [[[0.0, 1.0], [0.5, -np.inf]]])]),
}
PLANS = {
    "gibbs": plain_gibbs(),
    "blanket": herded_gibbs(),
    "complete": herded_gibbs(sharing=complete_sharing()),
    "sum": herded_gibbs(sharing=neighbour_sum_sharing()),
    "bins": dhg(n_bins=5),
    "random bins": rdhg(n_bins=5),
    "bounded": bounded_error_gibbs(error_bound=2.0),
    "bounded random bins": Gibbs(sharing=random_bin_sharing(4), error_bound=1.0, form="threshold"),
    "threshold": herded_gibbs(form="threshold"),
    "threshold bins": dhg(n_bins=7, form="threshold"),
    "hashed": Gibbs(sharing=blanket_sharing(), weight_memory=100_000, form="threshold"),
    "register": qmc_gibbs(),
    "sobol": qmc_gibbs(driving=Sobol()),
}
KEPT = Record(best=False, marginals=False, joint=True)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("plan", PLANS)
def test_counts_are_those_of_the_samplers_own_samples(graph, plan):
    graph, plan, n = GRAPHS[graph], PLANS[plan], 1023
    if plan.sharing == neighbour_sum_sharing() and graph in (GRAPHS["full"], GRAPHS["triples"], GRAPHS["forbidden"]):
        with pytest.raises(ValueError, match="neighbour-sum needs"):
            count_visits(graph, plan, [n], seed=5)
        return
    found = count_visits(graph, replace(plan, n_sweeps=7), [n], seed=5)
    kept = replace(plan, n_sweeps=n, record=KEPT).infer(graph, 5).joint
    assert np.array_equal(found.visits[-1].sum(axis=0).ravel(), np.rint(kept * n).ravel())
    assert found.returns.sum() <= n


@pytest.mark.parametrize("name", [name for name in PLANS if "random bins" not in name])
@pytest.mark.parametrize("graph", ["ring", "grid", "triples"])
def test_recorded_states_of_two_labels_are_counted_as_the_loop_counts_them(name, graph):
    graph, plan = GRAPHS[graph], PLANS[name]
    if name == "sum" and graph is GRAPHS["triples"]:
        pytest.skip("the sum of neighbours needs pairs")
    wanted, compiled = count_visits(graph, plan, [60, 500], seed=8), compile_tables(graph)
    sharing = plan.sharing if plan.herds else blanket_sharing()
    seen = focus_of_recorded(compiled, plan, sharing, len(compiled.sizes) - 1)
    groups = {(a, b) for a, b in zip(seen.keys[0].tolist(), wanted.focus.keys[0].tolist(), strict=True)}
    assert len(groups) == seen.n_weights == wanted.focus.n_weights
    bare = replace(plan, n_sweeps=500, burn_in=0)
    visits, returns = count_recorded(compiled, bare, [60, 500], seen, 8, None)
    assert np.array_equal(visits, wanted.visits)
    assert np.array_equal(returns, wanted.returns)


@pytest.mark.parametrize("n_bins", [1, 2, 4, 5])
def test_a_probability_at_the_edge_of_a_bin_is_where_the_loop_puts_it(n_bins):
    """A half, where neighbours differ; (b / B, (b + 1) / B] is a bin."""
    graph = ising(0.4, np.zeros((2, 3)))
    loop = focus_variable(graph, bin_sharing(n_bins), 2).keys[0].tolist()
    ours = focus_of_recorded(compile_tables(graph), plain_gibbs(), bin_sharing(n_bins), 2).keys[0].tolist()
    assert len(set(zip(loop, ours, strict=True))) == len(set(loop)) == len(set(ours))


@pytest.mark.parametrize("variable", [0, 3, -2])
def test_any_variable_can_be_in_focus(variable):
    graph, n = GRAPHS["ring"], 8
    order = [(variable + 1 + k) % n for k in range(n)]
    kept = herded_gibbs(2000, scan=fixed_scan(order), record=KEPT).infer(graph, 5).joint
    found = count_visits(graph, herded_gibbs(), [500, 2000], variable, seed=5)
    assert np.array_equal(found.visits[-1, 0], np.rint(np.moveaxis(kept, variable, -1).reshape(-1, 2) * 2000))
    assert found.visits.sum(axis=(1, 2, 3)).tolist() == [500, 2000]
    shorter = count_visits(graph, herded_gibbs(), [500], variable, seed=5)
    assert np.array_equal(shorter.visits[0], found.visits[0])


def test_the_true_joint_is_the_target():
    for name, graph in GRAPHS.items():
        target = Oracle.of_graph(graph).probabilities.reshape(-1, 2)
        np.testing.assert_allclose(focus_variable(graph).target, target, atol=1e-14, err_msg=name)


def test_weights_are_those_of_the_sharing():
    """HGW19 Sec. 4.1: what pi(y | z) is."""
    graph = GRAPHS["ring"]
    others = np.array(np.unravel_index(np.arange(128), (2,) * 7)).T
    by_blanket = others[:, 0] * 2 + others[:, -1]
    assert np.array_equal(focus_variable(graph).keys[0], by_blanket)
    assert np.array_equal(focus_variable(graph, neighbour_sum_sharing()).keys[0], others[:, 0] + others[:, -1])
    assert focus_variable(graph, complete_sharing()).n_weights == 128
    target = Oracle.of_graph(GRAPHS["full"]).probabilities.reshape(-1, 2)
    p = target[:, 1] / target.sum(axis=1)
    of_bins = np.ceil(p * 4).astype(int) - 1
    assert np.array_equal(
        focus_variable(GRAPHS["full"], bin_sharing(4)).keys[0], np.unique(of_bins, return_inverse=True)[1]
    )
    drawn = focus_variable(GRAPHS["full"], random_bin_sharing(4))
    assert np.array_equal(drawn.keys[0], np.floor(p * 4))
    np.testing.assert_allclose((drawn.chances * drawn.aims[drawn.keys, 1]).sum(axis=0), p, atol=1e-8)


# ---- errors, from their definitions, term by term ----


def by_definition(visits: np.ndarray, seen: Focus) -> ErrorParts:
    """HGW19 Sec. 4.3 and 6.5, in loops over x, y, z."""
    total = visits.sum()
    p_xyz = {}
    for layer, z, x in np.ndindex(visits.shape):
        key = x, int(seen.keys[layer, z]), z
        p_xyz[key] = p_xyz.get(key, 0.0) + visits[layer, z, x] / total
    p_y, p_z, p_xy, p_yz, pi_yz = Counter(), Counter(), Counter(), Counter(), Counter()
    for (x, y, z), p in p_xyz.items():
        p_y[y] += p
        p_z[z] += p
        p_xy[x, y] += p
        p_yz[y, z] += p
    for layer, z in np.ndindex(seen.keys.shape):
        pi_yz[int(seen.keys[layer, z]), z] += seen.chances[layer, z]
    pi_z = seen.target.sum(axis=1)
    pi_x = seen.target / pi_z[:, None]

    def aim(x: int, y: int) -> float:
        if seen.aims is not None:
            return seen.aims[y, x]
        return sum(pi_x[z, x] * p for (other, z), p in p_yz.items() if other == y) / p_y[y]

    n_z = len(pi_z)
    return ErrorParts(
        cor=sum(abs(p - p_xy[x, y] * p_yz[y, z] / p_y[y]) for (x, y, z), p in p_xyz.items() if p_y[y]),
        herding=sum(p_y[y] * abs(p_xy[x, y] / p_y[y] - aim(x, y)) for x in (0, 1) for y in p_y if p_y[y]),
        approx=sum(
            p_z[z] * abs(sum(aim(x, y) * chance for (y, other), chance in pi_yz.items() if other == z) - pi_x[z, x])
            for z in range(n_z) for x in (0, 1) if p_z[z]
        ),
        bin=sum(p_z[z] * abs(p_yz[y, z] / p_z[z] - chance) for (y, z), chance in pi_yz.items() if p_z[z]),
        z=sum(abs(p_z[z] - pi_z[z]) for z in range(n_z)),
        all=sum(abs(sum(visits[:, z, x]) / total - seen.target[z, x]) for z in range(n_z) for x in (0, 1)),
    )  # fmt: skip


@pytest.mark.parametrize("graph", ["ring", "full", "triples"])
@pytest.mark.parametrize(
    "sharing", [blanket_sharing(), bin_sharing(3), random_bin_sharing(4), complete_sharing()], ids=str
)
def test_errors_are_what_the_paper_says(graph, sharing):
    seen = focus_variable(GRAPHS[graph], sharing)
    for seed in range(3):
        visits = np.random.default_rng(seed).poisson(0.3 + seed, (*seen.keys.shape, 2)).astype(float)
        found, wanted = ErrorParts.of(visits, seen), by_definition(visits, seen)
        for part in ("cor", "herding", "approx", "bin", "z", "all"):
            assert getattr(found, part) == pytest.approx(getattr(wanted, part), abs=1e-12), part


@pytest.mark.parametrize("plan", ["gibbs", "blanket", "bins", "random bins", "bounded", "threshold bins"])
def test_the_parts_bound_the_whole(plan):
    """HGW19 eq. 5 and 8, for D^all and for the expectation of random functions."""
    rng = np.random.default_rng(0)
    for graph in ("ring", "full", "grid", "triples"):
        found = count_visits(GRAPHS[graph], PLANS[plan], [10, 100, 1000], seed=2)
        for visits, errors in zip(found.visits, found.errors, strict=True):
            parts = errors.cor + errors.herding + errors.approx + errors.bin + errors.z
            assert errors.all <= parts + 1e-12
            for f in (rng.normal(size=found.focus.target.shape), np.broadcast_to([0.0, 1.0], found.focus.target.shape)):
                bound = Lambdas.of(f, found.focus).bound(errors)
                assert abs(expectation_error(f, visits, found.focus)) <= bound + 1e-12


def test_functions_of_one_variable_leave_the_correlation_out():
    """HGW19 Sec. 6.6: for f = [x = 1] the parts weigh 0, 1/2, 1/2 and half the range of pi(1 | z)."""
    seen = focus_variable(GRAPHS["full"])
    found = Lambdas.of(np.broadcast_to([0.0, 1.0], seen.target.shape), seen)
    p = seen.target[:, 1] / seen.target.sum(axis=1)
    assert found.cor == pytest.approx(0, abs=1e-12)
    assert (found.herding, found.approx) == (pytest.approx(0.5), pytest.approx(0.5))
    assert found.z == pytest.approx(np.ptp(p) / 2)


def test_rao_blackwellised_means_are_bounded_by_marginals_where_those_say_all():
    """HGW19 eq. 12 and 13: of f = [x = 1], and of one whose mean given z is a sum of functions of one variable each."""
    graph = boltzmann_machine(np.full((3, 3), 0.1) - 0.1 * np.eye(3), [0.2, -0.1, 0.3], (-1, 1))
    found = count_visits(graph, plain_gibbs(), [200], seed=3)
    visits, seen = found.visits[-1], found.focus
    p = seen.target[:, 1] / seen.target.sum(axis=1)
    z = visits.sum(axis=(0, 2)) / visits.sum()
    f = np.broadcast_to([0.0, 1.0], seen.target.shape)
    assert rao_blackwell_error(f, visits, seen) == pytest.approx(float(p @ z - p @ seen.target.sum(axis=1)))
    linear = np.array([0.0, 1.0, 3.0, 4.0])  # of the two others: 3 x0 + x1
    off = (z - seen.target.sum(axis=1)).reshape(2, 2)
    by_hand = np.abs(off.sum(axis=1)).sum() * 3 / 2 + np.abs(off.sum(axis=0)).sum() / 2
    assert rao_blackwell_bound(np.repeat(linear[:, None], 2, 1), visits, seen) == pytest.approx(by_hand)


# ---- usage errors ----


@pytest.mark.parametrize(
    ("graph", "plan", "lengths", "more", "words"),
    [
        (
            potts(0.3, np.zeros((2, 2, 3))),
            rdhg(),
            [10],
            {"sharing": blanket_sharing()},
            "must be omitted if the plan has sharing=random-bins",
        ),
        (potts(0.3, np.zeros((2, 2, 3))), plain_gibbs(), [2**27], {}, "use fewer sweeps"),
        (potts(0.3, np.zeros((4, 3, 3))), plain_gibbs(), [10], {}, "5.31e\\+05 joint states"),
        (ising(0.3, np.zeros((5, 5))), plain_gibbs(), [10], {}, "1 to 16 binary variables"),
        (GRAPHS["ring"], annealed_gibbs(), [10], {}, "annealing"),
        (GRAPHS["ring"], plain_gibbs(), [], {}, "increasing numbers of sweeps"),
        (GRAPHS["ring"], plain_gibbs(), [0, 5], {}, "increasing numbers of sweeps"),
        (GRAPHS["ring"], plain_gibbs(), [10, 10], {}, "increasing numbers of sweeps"),
        (GRAPHS["ring"], plain_gibbs(), [10], {"variable": 8}, "variable 8"),
        (GRAPHS["ring"], rdhg(), [10], {"sharing": blanket_sharing()}, "random bins"),
        (GRAPHS["ring"], plain_gibbs(), [10], {"sharing": random_bin_sharing(4)}, "random bins"),
    ],
)
def test_what_cannot_be_counted_is_told(graph, plan, lengths, more, words):
    with pytest.raises(ValueError, match=words) as raised:
        count_visits(graph, plan, lengths, seed=1, **more)
    assert "\n" not in str(raised.value)


def test_no_samples_no_errors():
    seen = focus_variable(GRAPHS["ring"])
    with pytest.raises(ValueError, match="at least one sample"):
        ErrorParts.of(np.zeros((1, 128, 2)), seen)
