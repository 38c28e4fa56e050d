"""Runs of samplers, as the backends make them."""

from __future__ import annotations

import numpy as np
import pytest

from herdner.graph import ising, potts
from herdner.graph.scan import jacobi_scan
from herdner.graph.tables import compile_tables
from herdner.inference.backends.gibbs import Gibbs
from herdner.inference.gibbs.plan import Plan
from herdner.inference.gibbs.run import Run
from herdner.inference.gibbs.setup import Setup

KEYS = np.arange(1, 5, dtype=np.uint64)


@pytest.mark.parametrize(
    ("graph", "plan"),
    [
        (ising(0.3, np.linspace(-1, 1, 30).reshape(5, 6)), Gibbs(40)),
        (ising(0.3, np.linspace(-1, 1, 30).reshape(5, 6)), Gibbs(40, scan=jacobi_scan())),
        (potts(0.3, np.linspace(-1, 1, 60).reshape(4, 5, 3)), Gibbs(40)),
    ],
)
def test_changes_of_the_start_do_not_reach_a_run(graph, plan: Plan) -> None:
    """The loops read table cells at the states, so states out of range would end the process."""
    compiled = compile_tables(graph)
    setup, n, states = Setup.of(plan, compiled, None), len(compiled.sizes), []
    for change in (False, True):
        start = np.zeros(n, np.uint16)
        run = Run(setup, start, KEYS)
        if change:
            start[:] = 2**16 - 1
        assert len(run.arrays.state) == 0
        assert run.arrays.next_state is None
        while not run.is_finished:
            run.end_piece(*run.engine.advance(*run.begin_piece()))
        states.append(run.engine.state(n))
    np.testing.assert_array_equal(*states)
