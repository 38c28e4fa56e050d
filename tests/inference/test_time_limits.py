"""Time limits of backends on a graph whose set-up takes a large part of the limit."""

from __future__ import annotations

import math
from functools import partial
from time import process_time

import numpy as np
import pytest

from herdner.graph import FactorGraph, ising
from herdner.inference import (
    UnsupportedGraph,
    elimination,
    elimination_order,
    factor_messages,
    make_backend,
    tempering,
)
from herdner.inference.backends import annealed_importance, auto, belief_propagation, exact, tempered
from herdner.inference.record import Record

MODULES = (
    elimination, elimination_order, factor_messages, tempering, annealed_importance, auto, belief_propagation, exact,
    tempered,
)  # fmt: skip
LIMIT = 1.5
slow = partial(pytest.param, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def grid():
    values = np.random.default_rng(0).normal(size=(3, 100, 100))
    return ising([0.5 * values[0, 1:], 0.5 * values[1, :, 1:]], values[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "record"),
    [
        ("auto", {}, Record(best=False, marginals=True)),
        slow("auto", {}, Record(best=True, marginals=False)),
        ("auto", {}, Record(best=False, marginals=False)),
        ("auto", {"n_samples": 100}, Record(best=False, marginals=False)),
        slow("tempered", {"n_threads": 1}, None),
        ("annealed-importance", {"n_threads": 1}, None),
        slow("belief-propagation", {}, None),
    ],
    ids=["auto marginals", "auto state", "auto log Z", "auto samples", "tempered", "annealed", "propagation"],
)
def test_the_time_limit_holds_on_a_large_grid(monkeypatch, grid, name, options, record):
    for module in MODULES:  # the processor time does not depend on the load of the machine
        monkeypatch.setattr(module, "perf_counter", process_time)
    began = process_time()
    result = make_backend(name, seconds=LIMIT, **options).infer(grid, 0, record=record)
    assert process_time() - began < LIMIT + 0.6  # twice the tolerance of a quiet machine
    if name == "annealed-importance" or (name == "auto" and not (record.best or record.marginals) and not options):
        assert np.isfinite(result.log_z)
    if options.get("n_samples"):
        assert result.samples.shape[2] == 10_000
    assert result.log_potential == pytest.approx(grid.log_potential(result.state))


def test_a_short_limit_leaves_out_sampling(monkeypatch, grid):
    for module in MODULES:
        monkeypatch.setattr(module, "perf_counter", process_time)
    for record, method in [
        (Record(best=False, marginals=False), "annealed importance sampling"),
        (None, "tempered sampling"),
    ]:
        result = make_backend("auto", seconds=0.2).infer(grid, 0, record=record)
        assert result.method.startswith(f"belief propagation, not converged; the time is too short for {method}; exact")
        assert result.marginals.shape == (10_000, 2)


def test_a_reduction_beyond_the_limit_is_an_error(monkeypatch, grid):
    graph = FactorGraph(grid.domains.sizes, grid.factors)  # not reduced yet
    monkeypatch.setattr(elimination_order, "perf_counter", lambda: math.inf)
    for name, seconds, limit in [("exact", 0.5, "0.5"), ("auto", 0.5, "1"), ("auto", 30.0, "30")]:
        message = f"{name!r} could not remove the impossible states of this graph within {limit} s; increase `seconds`"
        with pytest.raises(UnsupportedGraph, match=message):
            make_backend(name, seconds=seconds).infer(graph, 0)
