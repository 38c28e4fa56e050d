"""Every invalid input raises an error of one line that names the remedy; none gives a wrong result."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from data import ELSEWHERE
from patience import PATIENCE

import herdner
from herdner.graph import FactorGraph, TableFactors, boltzmann_machine, ising, potts
from herdner.graph.scan import fixed_scan
from herdner.inference import BACKENDS, ImpossibleGraph, UnsupportedGraph, make_backend
from herdner.inference.backends.gibbs import Gibbs, qmc_gibbs
from herdner.inference.gibbs import Sobol, bin_sharing, blanket_sharing, complete_sharing, neighbour_sum_sharing
from herdner.inference.record import Record
from herdner.ner.inference import Inference
from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
from herdner.text.tokenize import Tokenizer

INF = np.inf
GRID = ising(0.3, np.zeros((4, 4)))
GIBBS_FAMILY = ["annealed-gibbs", "bounded-error", "circular-dhg", "dhg", "gibbs", "herded-gibbs", "qmc-gibbs", "rdhg"]


def assert_one_line(message: str, run, error: type[Exception] = ValueError) -> None:
    """Assert that a call raises one line that matches ``message``, a pattern for problem and remedy."""
    with pytest.raises(error, match=message) as caught:
        run()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_sweeps": -1}, "n_sweeps must be a whole number of at least 0, not -1"),
        ({"n_sweeps": "-1"}, "n_sweeps must be a whole number of at least 0, not -1"),
        ({"n_sweeps": "2.5"}, "n_sweeps must be a whole number, not '2.5'"),
        ({"n_sweeps": True}, "n_sweeps must be a whole number"),
        ({"n_chains": 0}, "n_chains must be a whole number of at least 1, not 0"),
        ({"n_chains": "many"}, "n_chains must be a whole number, not 'many'"),
        ({"n_threads": 0}, "n_threads must be a whole number of at least 1, not 0"),
        (
            {"n_threads": "2"},
            r"checkerboard or jacobi, got scan=systematic and n_threads=2; set scan=checkerboard, or n_threads=1",
        ),
        ({"n_threads": 3, "scan": "random"}, "only if scan is checkerboard"),
        ({"scan": "snake"}, r"scan must be systematic, random, .* fixed\(0, 2, 1\), not 'snake'"),
        ({"scan": [0, 1]}, r"scan must be systematic, random, .* fixed\(0, 2, 1\), not \[0, 1\]"),
        ({"scan": "fixed"}, "a fixed scan must be a list of at least one variable"),
        ({"scan": "fixed(0.5)"}, "a scan must hold integers, not float64"),
        ({"record": "best,traces"}, "record must be a list of best, marginals, .*, got 'traces'"),
        ({"record": "every=-2"}, "got 'every=-2'"),
        ({"sweeps": 3}, "has no option 'sweeps'; it has .*n_sweeps"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", GIBBS_FAMILY)
def test_options_of_every_preset(name, options, message):
    assert_one_line(f"backend {name}:? .*{message}", lambda: make_backend(name, **options))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "gibbs",
            {"burn_in": 10, "n_sweeps": 10},
            "burn_in must be below n_sweeps=10, got 10; increase n_sweeps, or decrease",
        ),
        ("gibbs", {"burn_in": -3}, "burn_in must be a whole number of at least 0, not -3"),
        ("dhg", {"n_bins": 0}, "number of bins must be a whole number from 1 to 1073741824, not 0"),
        ("dhg", {"n_bins": "0"}, "number of bins must be a whole number from 1 to 1073741824, not 0"),
        ("dhg", {"n_bins": 2**31}, "number of bins must be a whole number from 1 to 1073741824, not 2147483648"),
        ("rdhg", {"n_bins": -4}, "number of bins must be .* not -4"),
        ("herded-gibbs", {"sharing": "bins(0)"}, "number of bins must be .* not 0"),
        ("herded-gibbs", {"sharing": "bins(2.5)"}, "number of bins must be a whole number .* not 2.5"),
        ("herded-gibbs", {"sharing": "bins"}, r"sharing must be complete, blanket, .* bins\(B\) .*, not 'bins'"),
        ("herded-gibbs", {"sharing": "neighbours"}, "sharing must be complete, blanket, neighbour-sum"),
        ("herded-gibbs", {"weight_memory": 0}, "weight_memory must be a whole number of at least 1, not 0"),
        ("dhg", {"form": "round"}, "form must be one of 'circular', 'threshold', not 'round'"),
        ("bounded-error", {"error_bound": "much"}, "error_bound must be a number, not 'much'"),
        ("bounded-error", {"error_bound": "-2"}, r"must be a number of at least 0 \(0 makes every update herded\)"),
        ("bounded-error", {"error_bound": "nan"}, "error_bound must be a number"),
        ("qmc-gibbs", {"driving": "halton"}, "driving sequence must be sobol, lfsr or lfsr.*not 'halton'"),
        ("qmc-gibbs", {"driving": "lfsr(1+x^2+x^4)"}, "`register` must be the length of the register, 2 to 32 bits"),
        ("annealed-gibbs", {"annealing": "cool"}, r"annealing must be linear\(start, end\) or geometric"),
        ("annealed-gibbs", {"annealing": "linear(-1, 2)"}, "start must be a finite inverse temperature of at least 0"),
        ("gibs", {}, "no backend 'gibs'; did you mean 'gibbs'. Backends: annealed-gibbs, .*gibbs"),
    ],
    ids=str,
)
def test_options_of_some(name, options, message):
    assert_one_line(message, lambda: make_backend(name, **options))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gibbs(form="round"), "form must be circular or threshold, not 'round'"),  # type: ignore[arg-type]
        (lambda: Gibbs(loop="fast"), "loop must be auto or general, not 'fast'"),  # type: ignore[arg-type]
        (lambda: Gibbs(error_bound="a"), "error_bound must be a number of at least 0"),  # type: ignore[arg-type]
        (lambda: Gibbs(error_bound=float("nan")), "error_bound must be a number of at least 0 .* not nan"),
        (lambda: Gibbs(sharing=3), "sharing must be complete, blanket"),  # type: ignore[arg-type]
        (lambda: Gibbs(driving=3), "driving must be sobol, lfsr"),  # type: ignore[arg-type]
        (lambda: Gibbs(record=3), "record must be a list of best"),  # type: ignore[arg-type]
        (lambda: Record(every=-1), "`every` must be a number of sweeps, .*got -1"),
        (lambda: Record(every=2.5), "`every` must be a number of sweeps, .*got 2.5"),  # type: ignore[arg-type]
        (lambda: Record(every="3"), "`every` must be a number of sweeps, .*got '3'"),  # type: ignore[arg-type]
        (
            lambda: Gibbs(5, annealing=[1, 2]),
            "5 inverse temperatures, one for each sweep, got 2; change the list, or set n_sweeps=2",
        ),
        (lambda: Gibbs(2, annealing=[1, INF]), r"annealing\[1\] must be a finite inverse temperature .*, not inf"),
        (lambda: Gibbs(2, annealing=-1.0), "finite inverse temperature of at least 0, not -1"),
        (lambda: Gibbs(dummy_edges=[(0, 1)]), r"dummy_edges requires sharing=blanket"),
        (
            lambda: Gibbs(sharing=bin_sharing(2), dummy_edges=[(0, 1)]),
            r"dummy_edges requires sharing=blanket",
        ),
        (lambda: Gibbs(sharing=blanket_sharing(), dummy_edges=[(1, 1)]), r"pairs of different variables"),
        (lambda: Gibbs(sharing=blanket_sharing(), dummy_edges=[0, 1]), r"pairs of different variables"),
        (lambda: Gibbs(sharing=blanket_sharing(), dummy_edges=[(0.5, 1)]), "dummy_edges must hold integers"),
        (lambda: fixed_scan([]), "at least one variable"),
        (lambda: fixed_scan([[0, 1]]), "at least one variable, got an array of shape"),
    ],
)
def test_plans(make, message):
    assert_one_line(message, make)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_backend(None), "`name` must be the name of a backend, such as 'gibbs', got None"),  # type: ignore[arg-type]
        (lambda: make_backend(3), "`name` must be the name of a backend, such as 'gibbs', got 3"),  # type: ignore[arg-type]
        (lambda: herdner.load(None), "`name_or_path` must be the name of a shipped model or a path, got None"),  # type: ignore[arg-type]
        (lambda: PseudonymMap().restore(5), "`text` must be a string, got 5"),  # type: ignore[arg-type]
        (lambda: Tokenizer()(5), "`text` must be a string, got 5"),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_a_wrong_type(call, message):
    assert_one_line(message, call, TypeError)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"linkz": False}, "tagging has no option 'linkz'; did you mean 'links'"),
        ({"confidence": 0.5}, "tagging has no option 'confidence'; did you mean 'min_confidence'"),
        ({"n_sweps": 3}, "backend sum-product has no option 'n_sweps'; it has .*n_sweeps.*; did you mean 'n_sweeps'.$"),
        ({"colour": 3}, "tagging has no option 'colour'; it has backend, .*, and the options of the backend$"),
        ({"n_jobs": 3}, "'n_jobs' is an option of `pipe`, not of a single text$"),
    ],
)
def test_options_of_tagging(options, message):
    assert_one_line(message, lambda: Inference.of(**options))


def pair(table) -> FactorGraph:
    return FactorGraph([2, 2], [TableFactors([[0, 1]], [table])])


def random_potts() -> FactorGraph:
    return potts(0.4, np.random.default_rng(0).normal(size=(9, 9, 3)))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: TableFactors([[0]], [[np.nan, 1.0]]), r"NaN or \+inf; log-potentials must be finite or -inf"),
        (lambda: TableFactors([[0]], [[INF, 1.0]]), r"NaN or \+inf; log-potentials must be finite or -inf"),
        (lambda: Gibbs().infer(FactorGraph([], [])), "a sampler needs at least one unobserved variable"),
        (lambda: Gibbs(scan=fixed_scan([0, 16])).infer(GRID), "scan names variable 16: .* variables are 0 to 15"),
        (lambda: Gibbs(scan=fixed_scan([-1])).infer(GRID), "scan names variable -1: .* variables are 0 to 15"),
        (
            lambda: Gibbs(sharing=blanket_sharing(), dummy_edges=[(0, 99)]).infer(GRID),
            "dummy_edges name variable 99: .* 0 to 15",
        ),
        (
            lambda: Gibbs().infer(pair([[0, 0], [0, -INF]]), start=[1, 1]),
            "start has log-potential -inf; .* .viterbi., or None",
        ),
        (lambda: Gibbs().infer(GRID, start=[0, 1]), r"must have shape \[16\], .*got \(2,\)"),
        (lambda: Gibbs().infer(GRID, start=np.zeros((1, 16), int)), r"one state of shape \[16\], not \(1, 16\)"),
        (lambda: Gibbs().infer(GRID, start=[2] * 16), "the state of variable 0 must be from 0 to 1, got 2"),
        (lambda: Gibbs().infer(GRID, start=[0.5] * 16), "states of variables must be integers"),
        (lambda: Gibbs(record=Record(joint=True)).infer(ising(0.1, np.zeros((6, 6)))), "of `joint`, record `marg"),
        (
            lambda: qmc_gibbs(driving=Sobol()).infer(FactorGraph([2] * 30_000, [])),
            "at most 21201 updates, not 30000; use lfsr",
        ),
        (
            lambda: Gibbs().infer(FactorGraph([2], [TableFactors([[0]], [[-INF, -INF]])])),
            "variable 0.* allow at least one",
        ),
        (
            lambda: Gibbs().infer(FactorGraph([3], [TableFactors([[0]], [[-INF] * 3])])),
            "variable 0.* allow at least one",
        ),
    ],
)
def test_graphs_and_starts(run, message):
    assert_one_line(message, run)


def test_graphs_that_allow_nothing():
    nothing = np.full((2, 2), -INF)
    assert_one_line("forbid every joint state of the chain", lambda: Gibbs().infer(pair(nothing)), ImpossibleGraph)
    constant = FactorGraph([2], [TableFactors(np.empty((1, 0), np.int32), [-INF])])
    assert_one_line("every joint state is forbidden", lambda: Gibbs().infer(constant), ImpossibleGraph)
    loop = TableFactors([[0, 1], [1, 2], [2, 0]], [[[-INF, 0.0], [0.0, -INF]]])  # three variables that all differ
    found = r"no joint state that the -inf entries allow.* by large finite penalties, or use the backend 'exact' "
    assert_one_line(found, lambda: Gibbs().infer(FactorGraph([2] * 3, [loop])), UnsupportedGraph)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            ising([np.ones((3, 4)), 2 * np.ones((4, 3))], np.zeros((4, 4))),
            r"equal couplings.* use sharing=blanket or bins\(B\)",
        ),
        (
            boltzmann_machine([1.0, 2.0], [0, 0, 0], edges=[[0, 1], [1, 2]]),
            r"the couplings of variable 1 differ \(see the factor with variable 2\); use",
        ),
        (FactorGraph([2] * 3, [TableFactors([[0, 1, 2]], np.zeros((1, 2, 2, 2)))]), "needs factors of 1 or 2"),
        (FactorGraph([2] * 2, [TableFactors([[0, 1], [1, 0]], np.eye(2)[None])]), "at most one on each pair"),
        (
            FactorGraph([2] * 3, [TableFactors([[0, 1], [1, 2]], [[[0.0, 1.0], [2.0, 5.0]]])]),
            "the couplings of variable 1 differ",
        ),
    ],
)
def test_sums_of_neighbours_need_equal_couplings(graph, message):
    assert_one_line(message, lambda: Gibbs(sharing=neighbour_sum_sharing()).infer(graph))


@pytest.mark.parametrize(
    ("sharing", "memory", "graph", "message"),
    [
        (blanket_sharing(), 10, GRID, "weight_memory=10 bytes: variable . has . neighbours.* or use the backend dhg"),
        (
            complete_sharing(),
            20_000,
            GRID,
            "20000 bytes: variable .* has 15 neighbours, and each of their joint states has a weight",
        ),
        (
            blanket_sharing(),
            50_000,
            random_potts(),
            "50000 bytes: variable .* neighbours.* use the backend dhg .* one weight per bin",
        ),
        (bin_sharing(1000), 50_000, random_potts(), "1000 bins are too many; increase weight_memory, or use fewer"),
    ],
)
@pytest.mark.parametrize("n_chains", [1, 2])
def test_weights_beyond_their_memory(sharing, memory, graph, message, n_chains):
    plan = Gibbs(20_000, sharing=sharing, weight_memory=memory, n_chains=n_chains)
    assert_one_line(message, lambda: plan.infer(graph, 1))


def test_weights_beyond_their_memory_on_threads():
    plan = Gibbs(20_000, sharing=bin_sharing(1000), weight_memory=100_000, scan="checkerboard", n_threads=2)  # type: ignore[arg-type]
    assert_one_line("1000 bins are too many", lambda: plan.infer(random_potts(), 1))


def run_command(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "herdner", *arguments], capture_output=True, text=True, cwd=ELSEWHERE, timeout=PATIENCE
    )


@pytest.mark.slow
def test_the_command_line_lists_every_sampler_and_its_options():
    listed = run_command("backends").stdout
    assert set(GIBBS_FAMILY) <= set(BACKENDS)
    for name in GIBBS_FAMILY:
        assert f"\n{name}: " in "\n" + listed
    assert "--set n_bins=16  (a whole number)" in run_command("backends", "dhg").stdout
    shown = run_command("backends", "herded-gibbs").stdout
    assert "--set sharing=blanket  (complete, blanket, neighbour-sum, bins(B) or random-bins(B))" in shown


def test_text_options_make_the_same_plans_as_values():
    made = make_backend("herded-gibbs", sharing="bins(8)", n_sweeps="40", scan="fixed(3, 0)", record="trace, every=2")
    assert made == make_backend(
        "herded-gibbs",
        sharing=bin_sharing(8),
        n_sweeps=40,
        scan=fixed_scan([3, 0]),
        record=Record(False, False, trace=True, every=2),
    )
    assert str(fixed_scan([3, 0])) == "fixed(3, 0)"
