"""Results: one-line text, conversion to ArviZ, diagnostics, plots."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import fields

import matplotlib
import numpy as np
import pytest
from data import REPOSITORY
from matplotlib import pyplot

from herdner.graph import DensityFactors, FactorGraph, chain_graph, ising
from herdner.inference import Result, UnsupportedGraph, make_backend
from herdner.inference.registry import BACKENDS

matplotlib.use("Agg")


def markov(rng, stay, n_chains=4, n_draws=400):
    """Return chains of two states that stay with probability ``stay``."""
    moves = rng.random((n_chains, n_draws)) > stay
    return (np.cumsum(moves, axis=1) + rng.integers(0, 2, (n_chains, 1))) % 2


def make_result(samples=None, **fields):
    return Result(state=np.zeros(3, np.int32), log_potential=0.0, samples=samples, **fields)


@pytest.fixture
def axes():
    yield pyplot.subplots()[1]
    pyplot.close("all")


@pytest.mark.slow
def test_arviz_gets_the_samples_and_their_log_potentials():
    rng = np.random.default_rng(0)
    samples = rng.integers(0, 3, (2, 5, 3)).astype(np.int32)
    trace = rng.normal(size=(2, 20))
    data = make_result(samples, trace=trace, sample_sweeps=np.arange(3, 20, 4)).to_arviz()
    assert data.posterior["x"].dims == ("chain", "draw", "variable")
    assert np.array_equal(data.posterior["x"], samples)
    assert np.array_equal(data.sample_stats["lp"], trace[:, 3::4])
    every = make_result(samples, trace=trace[:, :5]).to_arviz()
    assert np.array_equal(every.sample_stats["lp"], trace[:, :5])
    assert "sample_stats" not in make_result(samples, trace=trace).to_arviz().groups()
    assert "sample_stats" not in make_result(samples).to_arviz().groups()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_diagnostics_of_mixing_slow_and_stuck_variables():
    rng = np.random.default_rng(1)
    constant, stuck = np.ones((4, 400), int), np.repeat(np.arange(4)[:, None] % 2, 400, axis=1)
    thirds = rng.integers(0, 3, (4, 400))
    samples = np.stack([markov(rng, 0.5), markov(rng, 0.995), constant, stuck, thirds], axis=2).astype(np.int32)
    found = make_result(samples).diagnostics()
    assert "array" not in repr(found)
    assert f"{len(found.variables)} variables" in repr(found)
    assert found.constant.tolist() == [False, False, True, False, False]
    assert found.r_hat[[0, 4]] == pytest.approx(1, abs=0.02)
    assert found.r_hat[1] > 1.05
    assert found.r_hat[2:4].tolist() == [1, np.inf]
    assert (found.ess[[0, 4]] > 1000).all()
    assert found.ess[1] < 60  # in truth 1600 * 0.005 / 0.995, about 8
    assert found.ess[2] == 1600
    assert found.ess[3] < 10
    some = make_result(samples).diagnostics([3, 0])
    assert some.variables.tolist() == [3, 0]
    assert some.ess.tolist() == found.ess[[3, 0]].tolist()


def test_r_hat_is_arvizs_split_r_hat():
    arviz = pytest.importorskip("arviz")
    samples = markov(np.random.default_rng(2), 0.9, n_draws=101)[:, :, None].astype(np.int32)
    result = make_result(samples)
    assert result.diagnostics().r_hat[0] == pytest.approx(float(arviz.rhat(result.to_arviz(), method="split")["x"][0]))


def test_one_chain_is_compared_with_itself():
    rng = np.random.default_rng(3)
    mixing, turned = markov(rng, 0.5, 1), np.repeat([[0, 1]], 200, axis=1)
    found = make_result(np.stack([mixing, turned], axis=2).astype(np.int32)).diagnostics()
    assert found.r_hat[0] == pytest.approx(1, abs=0.05)
    assert found.r_hat[1] == np.inf


def test_the_trace_is_thinned_but_whole(axes):
    trace = np.cumsum(np.random.default_rng(4).normal(size=(2, 30_001)), axis=1)
    shown = make_result(trace=trace).plot_trace(axes)
    assert shown is axes
    chains = [line for line in axes.get_lines() if line.get_label().startswith("chain")]
    assert len(chains) == 2
    for line, chain in zip(chains, trace, strict=True):
        sweeps = np.asarray(line.get_xdata())
        assert len(sweeps) <= 4000
        assert np.array_equal(line.get_ydata(), chain[sweeps - 1])
        assert sweeps[-1] > 29_900
    assert "best state" not in [line.get_label() for line in axes.get_lines()]  # the result's is not the best


def test_the_best_state_is_a_line_above_the_trace(axes):
    make_result(trace=np.full((1, 5), -1.0)).plot_trace(axes)
    best = next(line for line in axes.get_lines() if line.get_label() == "best state")
    assert list(best.get_ydata()) == [0, 0]


def test_bars_are_stacked_to_one(axes):
    marginals = np.random.default_rng(5).dirichlet(np.ones(3), size=1000)
    make_result(marginals=marginals).plot_marginals(axes)
    assert len(axes.patches) == 150
    tops = {}
    for bar in axes.patches:
        tops[round(bar.get_x(), 3)] = bar.get_y() + bar.get_height()
    assert list(tops.values()) == pytest.approx([1.0] * 50)
    assert "50 of 1000" in axes.get_xlabel()


def test_rao_blackwell_goes_before_counts(axes):
    counts, better = np.full((4, 2), 0.5), np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0, 1]])
    result = make_result(marginals=counts, rao_blackwell=better)
    result.plot_marginals(axes, variables=[3, 1])
    assert [bar.get_height() for bar in axes.patches] == [1, 0.2]


def test_images(axes):
    result = make_result(marginals=np.random.default_rng(6).dirichlet(np.ones(4), size=6))
    result.plot_marginals(axes, shape=(2, 3))
    assert np.array_equal(axes.images[0].get_array(), result.marginals.argmax(axis=1).reshape(2, 3))
    result.plot_marginals(axes, shape=(3, 2), state=2)
    assert np.array_equal(axes.images[1].get_array(), result.marginals[:, 2].reshape(3, 2))
    binary = make_result(marginals=result.marginals[:, :2])
    assert np.array_equal(binary.plot_marginals(shape=(1, 6)).images[0].get_array(), [result.marginals[:, 1]])


SAMPLES, MARGINALS = np.zeros((1, 9, 3), np.int32), np.full((3, 2), 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_result().to_arviz(), "the result holds no samples; pass record=Record"),
        (lambda: make_result().diagnostics(), "the result holds no samples"),
        (lambda: make_result(SAMPLES[:, :7]).diagnostics(), "at least 8 recorded states per run, not 7"),
        (lambda: make_result(SAMPLES).diagnostics(5), "no variable 5: the graph's variables are 0 to 2"),
        (lambda: make_result().plot_trace(), "the result holds no trace"),
        (lambda: make_result().plot_marginals(), "no marginals"),
        (
            lambda: make_result(marginals=MARGINALS).plot_marginals(shape=(2, 2)),
            "shape must have 3 cells, .* not 2 x 2",
        ),
        (lambda: make_result(marginals=MARGINALS).plot_marginals(state=2), "state must be 0 to 1, not 2"),
        (lambda: make_result(marginals=MARGINALS).plot_marginals(variables=[-1]), "no variable -1"),
        (
            lambda: make_result(marginals=MARGINALS).plot_marginals(variables=[1], shape=(1, 3)),
            "`shape` and `variables` cannot be combined",
        ),
    ],
)
def test_what_is_missing_is_said_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    pyplot.close("all")


def test_a_missing_extra_is_named(monkeypatch):
    result = make_result(SAMPLES, trace=np.zeros((1, 9)), marginals=MARGINALS)
    monkeypatch.setitem(sys.modules, "arviz", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for call in (result.to_arviz, result.diagnostics):
        with pytest.raises(ImportError, match=r"pip install '\.\[evaluate\]'"):
            call()
    for call in (result.plot_trace, result.plot_marginals):
        with pytest.raises(ImportError, match=r"pip install '\.\[evaluate\]'"):
            call()


def test_results_and_graphs_print_one_short_line():
    graph = ising(1.0, np.zeros((3, 4)))
    assert repr(graph) == "FactorGraph(12 variables of 2 states, 29 factors in 2 groups)"
    assert repr(FactorGraph([2, 3], [])) == "FactorGraph(2 variables of 2 to 3 states, 0 factors in 0 groups)"
    text = repr(make_backend("exact").infer(graph))
    assert text.startswith("Result(state=int32[12], log_potential=17, log_z=")
    assert "marginals=float64[12, 2], table_counts=(2 arrays)" in text
    assert "\n" not in text


def test_groups_and_domains_print_one_short_line():
    graph = ising(1.0, np.zeros((30, 40)))
    assert repr(graph.domains) == "Discrete(sizes=int32[1200])"
    assert repr(graph.factors[-1]) == (
        "TableFactors(scopes=int32[2330, 2], tables=float64[1, 2, 2], table_of_factor=int32[2330], scale=float64[2330])"
    )
    density = DensityFactors([[0, 1]], lambda x: -(x**2).sum(1), lambda x: -2 * x)
    assert repr(density) == "DensityFactors(scopes=int32[1, 2], log_density=<lambda>, grad=<lambda>, n_terms=0)"


@pytest.mark.slow
@pytest.mark.parametrize("name", list(BACKENDS))
def test_every_result_prints_one_short_line(name: str):
    text = repr(make_backend(name).infer(chain_graph(np.zeros((50, 3)), np.zeros((3, 3))), 0))
    assert "\n" not in text
    assert len(text) < 400
    assert "array(" not in text


def results_of_page() -> dict[str, set[str]]:
    """Fields of `Result` and the backends that fill them, as the page on backends says."""
    page = (REPOSITORY / "docs" / "pages" / "backends.md").read_text(encoding="utf-8")
    table = page.partition("| field | backends |\n|---|---|\n")[2].partition("\n\n")[0]
    filled: dict[str, set[str]] = {}
    for row in table.splitlines():
        fields, backends = (cell.strip() for cell in row.strip("|").split("|"))
        names = set(re.findall(r"`([\w-]+)`", backends))
        for each in re.findall(r"`(\w+)`", fields):
            filled[each] = set(BACKENDS) - names if backends.startswith("all") else names
    return filled


def test_the_page_on_backends_says_what_each_returns():
    graph = chain_graph(np.array([[0.0, 1.0], [0.5, 0.0], [0.0, 0.3]]), np.array([[0.3, 0.0], [0.0, 0.3]]))
    results = {name: make_backend(name).infer(graph, 0) for name in BACKENDS}
    page = results_of_page()
    assert len(page) == 11
    for field, backends in page.items():
        assert {name for name, result in results.items() if getattr(result, field) is not None} == backends, field
    others = {each.name for each in fields(Result)} - set(page) - {"seconds", "n_updates", "method"}
    filled = {name for name in others if any(getattr(result, name) is not None for result in results.values())}
    assert filled <= {"best_log_potentials"}


def test_the_description_of_converged_names_the_backends_that_report_it() -> None:
    entry = re.search(r"^ {8}converged: (.*?)^ {8}n_updates:", Result.__doc__ or "", re.MULTILINE | re.DOTALL)
    assert entry is not None
    graph = ising(J=0.3, h=np.full((2, 2), 0.1))
    reporting = set()
    for name in BACKENDS:
        with suppress(UnsupportedGraph):  # chains only
            if make_backend(name).infer(graph, seed=0).converged is not None:
                reporting.add(name)
    assert set(re.findall(r"``([\w-]+)``", entry[1])) == reporting
