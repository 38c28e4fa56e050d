"""States forbidden by -inf entries are never visited, and the updated log-potential is correct."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gibbs_families import FAMILIES, shared, sharings

from herdner.graph import FactorGraph, TableFactors, ising
from herdner.graph.scan import checkerboard_scan, jacobi_scan, random_scan
from herdner.inference import BACKENDS, make_backend
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs import DrivingSequence, bin_sharing, blanket_sharing, linear_annealing, random_bin_sharing
from herdner.inference.gibbs.driving import Uniforms
from herdner.inference.record import Record

RECORD = Record(trace=True, every=1)
FORBIDDING = [name for name, graph in FAMILIES.items() if any(np.isneginf(g.tables).any() for g in graph.factors)]
FORMS = ("circular", "threshold")


def assert_allowed(result, graph: FactorGraph) -> None:
    values = graph.log_potential(result.samples[0])
    assert (values > -np.inf).all()
    assert result.trace[0] == pytest.approx(values, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("family", "sharing", "form", "bound"), shared(FORMS, (0.0, 0.6), families=FORBIDDING), ids=str
)
def test_impossible_states_are_never_visited(family, sharing, form, bound):
    graph = FAMILIES[family]
    plan = Gibbs(300, sharing=sharing, form=form, error_bound=bound, record=RECORD)
    assert_allowed(plan.infer(graph, 1), graph)


@pytest.mark.parametrize("family", FORBIDDING)
def test_impossible_states_are_never_visited_in_any_order_or_heat(family):
    graph = FAMILIES[family]
    for sharing in (None, *sharings(family)):
        for scan in (random_scan(), checkerboard_scan()):
            assert_allowed(Gibbs(100, sharing=sharing, scan=scan, record=RECORD).infer(graph, 2), graph)
        assert_allowed(
            Gibbs(100, sharing=sharing, annealing=linear_annealing(0.0, 5.0), record=RECORD).infer(graph, 3), graph
        )


def test_even_infinite_heat_keeps_the_support():
    for family in FORBIDDING:
        assert_allowed(Gibbs(300, annealing=0.0, record=RECORD).infer(FAMILIES[family], 4), FAMILIES[family])


@pytest.mark.parametrize("sharing", [None, blanket_sharing(), bin_sharing(3), random_bin_sharing(3)], ids=str)
@pytest.mark.parametrize("n_labels", [2, 3, 6])
def test_labels_of_probability_zero_stay_out_though_neighbours_allow_them(n_labels, sharing):
    """Unary -inf entries forbid states that strong pairs favour."""
    n = 30
    rng = np.random.default_rng(n_labels)
    unary = rng.normal(size=(n, n_labels))
    impossible = rng.integers(0, n_labels, n)
    unary[np.arange(n), impossible] = -np.inf
    edges = np.array([[i, i + 1] for i in range(n - 1)], np.int32)
    pull = TableFactors(edges, np.eye(n_labels)[None] * 300.0)
    graph = FactorGraph(np.full(n, n_labels), [TableFactors(np.arange(n, dtype=np.int32)[:, None], unary), pull])
    for form in FORMS:
        plan = Gibbs(200, sharing=sharing, form=form, record=RECORD)
        result = plan.infer(graph, 1)
        assert not (result.samples[0] == impossible).any()
        assert (result.marginals[np.arange(n), impossible] == 0).all()


class Constant(DrivingSequence):
    """Driving sequence of one constant number."""

    def __init__(self, number: float) -> None:
        self.number = number

    def begin(self, n_steps: int, n_sweeps: int, rng: np.random.Generator) -> Uniforms:
        return lambda first, last: np.full(last - first, self.number)


@pytest.mark.parametrize("number", [0.0, 2.0**-52, 0.5, 1 - 2.0**-52])
@pytest.mark.parametrize("n_bins", [1, 2, 7])
def test_extreme_uniform_numbers_keep_the_support(number, n_bins):
    """Probabilities 1/3 in multiples of 2^-32 add up to slightly less than 1; the first and last state have none."""
    tables = np.array([[-np.inf, 0, 0, 0, -np.inf]])
    for table in (tables, tables[:, ::-1], tables[:, 1:], tables[:, :4], tables[:, :2], tables[:, 3:]):
        graph = FactorGraph([table.shape[1]] * 3, [TableFactors([[0], [1], [2]], table)])
        for sharing in (None, random_bin_sharing(n_bins)):
            for form in FORMS:
                plan = Gibbs(20, sharing=sharing, form=form, driving=Constant(number), record=RECORD)
                assert_allowed(plan.infer(graph, 1), graph)


def test_a_jacobi_scan_that_leaves_the_support_says_so():
    """The scan updates neighbours at once, so both updates are allowed but their combination is not."""
    for n_threads in (1, 2):
        for sharing in (None, blanket_sharing(), bin_sharing(4)):
            plan = Gibbs(10_000, sharing=sharing, scan=jacobi_scan(), n_threads=n_threads)
            with pytest.raises(
                ValueError, match=r"Jacobi scan reached a state .* use a systematic or checkerboard scan"
            ):
                plan.infer(FAMILIES["binary_hard"], 1)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("annealing", [None, linear_annealing(0.1, 3.0)], ids=["constant", "annealed"])
def test_the_log_potential_is_right_after_a_million_updates(family, annealing):
    graph = FAMILIES[family]
    n_sweeps = 1_000_000 // graph.n_variables + 1
    plan = Gibbs(n_sweeps, annealing=annealing, record=Record(trace=True, every=n_sweeps // 50))
    for chosen in (plan, replace(plan, sharing=blanket_sharing())):
        result = chosen.infer(graph, 1)
        assert result.n_updates >= 1_000_000
        values = graph.log_potential(result.samples[0])
        scale = np.abs(values).max()
        assert np.abs(result.trace[0, result.sample_sweeps] - values).max() <= 1e-9 * scale
        assert abs(result.log_potential - graph.log_potential(result.state)) <= 1e-9 * scale
        assert result.log_potential >= result.trace.max() - 1e-9 * scale


def hard_grid(table: list[list[float]], forbidden: float) -> FactorGraph:
    """Return a 6 x 7 grid with this table for every pair and this log-potential for one state of some variables."""
    fields, pairs = ising(1.0, np.random.default_rng(0).normal(size=(6, 7))).factors
    some = np.zeros((42, 2))
    some[::9, 1] = forbidden
    return FactorGraph(np.full(42, 2), [fields, TableFactors(pairs.scopes, [table]), TableFactors(fields.scopes, some)])


HARD = {
    "two-colouring": [[-np.inf, 0.0], [0.0, -np.inf]],
    "hard core": [[0.0, 0.0], [0.0, -np.inf]],
    "one direction": [[0.0, -np.inf], [0.0, 0.0]],
    "all alike": [[0.0, -np.inf], [-np.inf, 0.0]],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "sharing",
    [None, blanket_sharing(), bin_sharing(1), bin_sharing(16), bin_sharing(2**20), random_bin_sharing(16)],
    ids=str,
)
@pytest.mark.parametrize("kind", HARD)
def test_grids_with_hard_pairs(kind, sharing):
    """A NaN conditional, of a neighbour state that does not occur, must not become a key."""
    graph = hard_grid(HARD[kind], 0.0 if kind == "two-colouring" else -np.inf if kind == "all alike" else -1.0)
    for form in FORMS:
        for loop in ("auto", "general"):
            assert_allowed(Gibbs(50, sharing=sharing, form=form, loop=loop, record=RECORD).infer(graph, 1), graph)


@pytest.mark.parametrize("size", [1e298, -1e298, 5e-324, 1e-310])
def test_huge_and_tiny_log_potentials_are_exact(size):
    for table in ([[0.0, size], [size, 0.0]], [[size, 0.0], [0.0, -size]], [[0.0, size], [0.0, 0.0]]):
        graph = hard_grid(table, 0.0)
        for sharing in (None, blanket_sharing(), bin_sharing(16), random_bin_sharing(16)):
            for form in FORMS:
                result = Gibbs(20, sharing=sharing, form=form, record=RECORD).infer(graph, 1)
                assert result.trace[0] == pytest.approx(graph.log_potential(result.samples[0]), rel=1e-9, abs=1e-9)
                assert result.log_potential == pytest.approx(graph.log_potential(result.state), rel=1e-9)


@pytest.mark.parametrize("name", BACKENDS)
def test_log_potentials_that_add_up_to_no_number_are_told_by_every_backend(name):
    """Each group is in the range of doubles, but their sum is not."""
    groups = [TableFactors([[0, 1]], [[[0.0, 9e299], [-9e299, 0.0]]]) for _ in range(3)]
    graph = FactorGraph([2, 2], groups)
    with pytest.raises(ValueError, match=r"^the log-potentials of all factors could add up to more than 1e\+300"):
        make_backend(name).infer(graph, 1)
