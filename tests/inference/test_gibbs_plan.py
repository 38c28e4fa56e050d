"""Invalid plans of the Gibbs family, and graphs at the limit of validity."""

from __future__ import annotations

import numpy as np
import pytest

from herdner.graph import FactorGraph, TableFactors, compile_tables, ising
from herdner.inference import ImpossibleGraph, make_backend
from herdner.inference.backends.blocked_gibbs import BlockedGibbs
from herdner.inference.backends.gibbs import Gibbs, herded_gibbs, qmc_gibbs
from herdner.inference.gibbs import LFSR, Sobol, bin_sharing, blanket_sharing, random_bin_sharing
from herdner.inference.record import Record

GRID = ising(0.5, np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Gibbs(error_bound=1.0),
            r"error_bound=1.0 needs herding weights, but sharing is not set; set for example sharing=blanket",
        ),
        (
            lambda: Gibbs(sharing=bin_sharing(4), driving=Sobol()),
            r"sharing=bins\(4\) makes no random draws; remove `driving`",
        ),
        (lambda: Gibbs(2**32), r"n_sweeps must be at most 4294967295, not 4294967296; use several runs"),
        (lambda: LFSR(2.5), "`register` must be the length .*, got 2.5"),  # type: ignore[arg-type]
        (lambda: LFSR([5]), r"`register` must be the length .*, got \[5\]"),  # type: ignore[arg-type]
        (lambda: Gibbs().infer(GRID, "seven"), "seed must be a whole number of at least 0, .* not 'seven'"),  # type: ignore[arg-type]
        (lambda: make_backend("icm").infer(GRID, -1), "seed must be a whole number of at least 0, .* not -1"),
    ],
)
def test_what_makes_no_sense_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_driven_draws_of_every_kind_are_accepted():
    for plan in (
        qmc_gibbs(4, driving=Sobol()),
        Gibbs(4, driving=Sobol(), sharing=random_bin_sharing(4)),
        Gibbs(4, driving=Sobol(), sharing=blanket_sharing(), error_bound=1.0),
    ):
        assert plan.infer(GRID, 1).n_updates == 24


def test_memory_that_there_is_not():
    plan = Gibbs(2**32 - 1, n_chains=2**16, record=Record(marginals=False, every=1))
    asked = r"sampling 6 variables \(n_chains=65536, n_sweeps=4294967295, record=best,every=1\)"
    with pytest.raises(
        MemoryError, match=rf"^{asked} takes about 10,133,099\.2 GB of memory, .*; use a smaller n_chains"
    ):
        plan.infer(GRID)


@pytest.mark.parametrize("plan", [Gibbs(3), herded_gibbs(3), Gibbs(3, record=Record(rao_blackwell=True))])
def test_variables_of_one_label(plan):
    result = plan.infer(FactorGraph([1, 1], [TableFactors([[0, 1]], [[[0.5]]])]), 1)
    assert result.state.tolist() == [0, 0]
    assert result.marginals.tolist() == [[1.0], [1.0]]
    assert result.log_potential == 0.5


def test_a_variable_without_a_label_is_an_impossible_graph():
    unary = TableFactors([[0], [1]], [[0.0, 0.0], [-np.inf, -np.inf]])
    with pytest.raises(ImpossibleGraph, match="variable 1: its unary factors forbid every state"):
        Gibbs(3).infer(FactorGraph([2, 2], [unary]), 1)


def test_what_is_no_graph():
    with pytest.raises(TypeError, match=r"expected a FactorGraph, such as the result of herdner.ising\(\), not list"):
        compile_tables([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "most"), [("n_chains", 2**16), ("n_threads", 1024)])
def test_more_chains_or_threads_than_can_be_laid_out_are_told_at_once(name, most):
    for backend in (Gibbs, BlockedGibbs):
        with pytest.raises(ValueError, match=rf"^{name} must be at most {most}, not 1000000; "):
            backend(3, **{"n_chains": 2, name: 10**6})
