"""Learning of tied tables, against enumeration of the joint and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from tiny_crfs import ENDS, conditional, joint, many, tiny

from herdner.crf.learning import Learner, MCMCLikelihood, learn_tables
from herdner.crf.model import SkipChainModel
from herdner.crf.objectives import Piecewise, PseudoLikelihood
from herdner.inference.backends.exact import Exact
from herdner.inference.backends.gibbs import Gibbs, herded_gibbs
from herdner.inference.backends.icm import ICM


def test_pseudo_likelihood_of_tokens_is_that_of_the_enumerated_joint():
    crf, examples = tiny(1)
    oracle = joint(crf, examples)
    expected = -sum(conditional(oracle, examples.states, [t]) for t in range(7))
    assert PseudoLikelihood("token")(crf, examples).value == pytest.approx(expected, abs=1e-9)


def test_pseudo_likelihood_of_sentences_is_that_of_the_enumerated_joint():
    crf, examples = tiny(2)
    between = ENDS[0][:3]
    without = replace(examples, links=(between, ENDS[1]))
    oracle = joint(crf, without)
    expected = -sum(conditional(oracle, examples.states, block) for block in ([0, 1, 2], [3], [4, 5, 6]))
    assert PseudoLikelihood()(crf, examples).value == pytest.approx(expected, abs=1e-9)  # drops the fourth link itself


def test_piecewise_likelihood_of_one_link_between_two_sentences_is_exact():
    crf, examples = tiny(3)
    one = replace(examples, links=(ENDS[0][:1], np.empty((0, 2), np.int32)))
    oracle = joint(crf, one)
    right = (oracle.states == examples.states).all(axis=1)
    assert Piecewise()(crf, one).value == pytest.approx(-float(np.log(oracle.probabilities[right].sum())), abs=1e-9)


def shifted(crf: SkipChainModel, what: str, k: int, at, by: float) -> SkipChainModel:
    if what == "transition":
        table = crf.transition.copy()
        table[at] += by
        return replace(crf, transition=table)
    each = crf.link_tables[k]
    table = each.table.copy()
    table[at] += by
    changed = replace(each, table=table)
    return replace(crf, link_tables=tuple(changed if i == k else s for i, s in enumerate(crf.link_tables)))


@examples(6)
@given(st.integers(0, 10**6))
@pytest.mark.parametrize("objective", [PseudoLikelihood(), PseudoLikelihood("token"), Piecewise()])
def test_slopes_are_finite_differences(objective, seed):
    crf, examples = tiny(seed)
    slope, step = objective(crf, examples), 1e-5
    cells = [("tables", k, at, slope.tables[k][at]) for k in (0, 1) for at in np.ndindex(3, 3)]
    if not isinstance(objective, Piecewise):  # its beliefs are given, not those of a changed transition table
        cells += [("transition", 0, at, slope.transition[at]) for at in np.ndindex(3, 3)]
    for what, k, at, found in cells:
        high, low = (objective(shifted(crf, what, k, at, by), examples).value for by in (step, -step))
        assert found == pytest.approx((high - low) / (2 * step), abs=1e-5), (what, k, at)


@pytest.mark.slow
def test_sampled_counts_have_the_slope_of_the_enumerated_likelihood():
    """Test that one step of Adam with exact counts has the opposite sign of the derivative of the loss."""
    crf, examples = tiny(5)
    likelihood = MCMCLikelihood(Exact(), step_size=1e-3)
    after, _ = learn_tables(crf, examples, Learner(likelihood, l2=0.0, joint=True, max_iterations=1))
    right = (joint(crf, examples).states == examples.states).all(axis=1)

    def loss(changed: SkipChainModel) -> float:
        return -float(np.log(joint(changed, examples).probabilities[right].sum()))

    for what, k, old, new in (
        ("transition", 0, crf.transition, after.transition),
        ("tables", 0, crf.link_tables[0].table, after.link_tables[0].table),
        ("tables", 1, crf.link_tables[1].table, after.link_tables[1].table),
    ):
        for at in np.ndindex(3, 3):
            slope = (loss(shifted(crf, what, k, at, 1e-5)) - loss(shifted(crf, what, k, at, -1e-5))) / 2e-5
            if abs(slope) > 1e-6:
                assert np.sign(new[at] - old[at]) == -np.sign(slope), (what, k, at)
            else:
                assert new[at] == pytest.approx(old[at], abs=1e-3)


def odds(crf: SkipChainModel) -> float:
    """Return the preference of a table for equal states, which unary log-potentials cannot replace."""
    table = crf.link_tables[0].table
    return float(table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]) / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective",
    [
        "pseudo-likelihood",
        "token-pseudo-likelihood",
        "piecewise",
        MCMCLikelihood(Gibbs(n_sweeps=20)),
        MCMCLikelihood(herded_gibbs(n_sweeps=20)),
        MCMCLikelihood(),
    ],
)
@pytest.mark.parametrize("coupling", [-1.0, 1.5])
def test_every_objective_finds_the_coupling_that_made_the_data(objective, coupling):
    crf, examples = many(2500, coupling)
    after, curve = learn_tables(crf, examples, Learner(objective, l2=0.01, max_iterations=50), seed=3)
    assert odds(after) == pytest.approx(coupling, abs=0.2)
    assert len(curve.steps) > 1


def test_the_crf_of_the_best_score_is_returned_and_patience_ends():
    crf, examples = many(500, 1.0)
    scores = iter([0.1, 0.5, 0.4, 0.3, 0.2, 0.1])
    after, curve = learn_tables(crf, examples, Learner(patience=2), score=lambda _: next(scores))
    assert (curve.best_iteration, len(curve.steps)) == (1, 4)
    assert 0 < abs(odds(after)) < 5


def test_nothing_is_learned_from_nothing():
    crf, examples = many(5, 1.0)
    none = replace(examples, links=(np.empty((0, 2), np.int32),))
    after, _ = learn_tables(crf, none)
    assert not after.link_tables[0].table.any()


def test_misuse_raises_errors():
    crf, examples = many(5, 1.0)
    for options, word in (
        ({"objective": "x"}, "objective"),
        ({"l2": -1}, "l2"),
        ({"l2": float("nan")}, "l2"),
        ({"max_iterations": 0}, "max_iterations"),
    ):
        with pytest.raises(ValueError, match=word):
            Learner(**options)
    with pytest.raises(ValueError, match="blocks"):
        PseudoLikelihood("word")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must record expected counts"):
        learn_tables(crf, examples, Learner(MCMCLikelihood(ICM())))
    forbidden = replace(examples, unary=np.where(np.eye(2)[examples.states] > 0, -np.inf, examples.unary))
    with pytest.raises(ValueError, match="two adjacent gold tags have the entry -inf"):
        learn_tables(crf, forbidden)


def test_the_curve_is_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    crf, examples = many(100, 1.0)
    _, curve = learn_tables(crf, examples, score=lambda crf: odds(crf) / 10)
    ax = curve.plot()
    assert len(ax.lines[0].get_xdata()) == len(curve.steps)
