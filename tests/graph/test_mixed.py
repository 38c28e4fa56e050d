"""Mixed graphs: likelihoods of real observations become tables once these are clamped."""

from __future__ import annotations

import numpy as np
import pytest

from herdner.graph import FactorGraph, Labels, TableFactors, ising
from herdner.graph.density import Reals
from herdner.graph.mixed import LikelihoodFactors, Mixed


def normal(y: np.ndarray) -> np.ndarray:
    return -0.5 * np.subtract.outer(y, [-1.0, 0.0, 2.0]) ** 2


def graph() -> FactorGraph:
    """x0, y1, x2, y3: two labelled variables of three labels, each seen through a real one."""
    pairs = TableFactors([[0, 2]], np.random.default_rng(0).normal(size=(1, 3, 3)), scale=[0.7])
    return FactorGraph(Mixed([3, 0, 3, 0]), [pairs, LikelihoodFactors([[0, 1], [2, 3]], normal)])


POINT = [2, 0.3, 1, -1.2]


def by_hand(x0, y0, x1, y1) -> float:
    table = 0.7 * np.random.default_rng(0).normal(size=(3, 3))
    return float(table[x0, x1] + normal(np.array([y0]))[0, x0] + normal(np.array([y1]))[0, x1])


def test_the_log_potential_of_mixed_points():
    assert graph().log_potential(POINT) == pytest.approx(by_hand(*POINT))
    assert graph().log_potential([POINT, [0, 0, 0, 0]]) == pytest.approx([by_hand(*POINT), by_hand(0, 0, 0, 0)])
    assert graph().blanket(0).tolist() == [1, 2]


@pytest.mark.parametrize("seen", [(1,), (3,), (1, 3), (0, 1), (1, 2, 3), (0, 1, 2, 3), ()])
def test_conditioning_keeps_the_log_potential(seen):
    left = graph().condition({i: POINT[i] for i in seen})
    rest = [POINT[i] for i in range(4) if i not in seen]
    if left.n_variables and isinstance(left.domains, Labels):
        rest = np.array(rest, int)
    assert left.log_potential(rest) == pytest.approx(by_hand(*POINT))
    as_arrays = graph().condition(np.array(seen, int), np.array([POINT[i] for i in seen], float))
    assert as_arrays.log_potential(rest) == pytest.approx(by_hand(*POINT))


def test_domains_that_are_left():
    assert isinstance(graph().condition({1: 0.0, 3: 0.0}).domains, Labels)
    assert isinstance(graph().condition({1: 0.0}).domains, Mixed)
    assert isinstance(Mixed([0, 2, 0]).select(np.array([0, 2])), Reals)


@pytest.mark.parametrize(
    ("point", "words"),
    [([2, 0.3, 1], "shape"), ([3, 0.0, 0, 0.0], "labels 0 to 2"), ([0.5, 0.0, 0, 0.0], "labels 0 to 2"),
     ([0, np.nan, 0, 0.0], "finite"), ([-1, 0.0, 0, 0.0], "labels")],
)  # fmt: skip
def test_points_outside_are_told(point, words):
    with pytest.raises(ValueError, match=words):
        graph().log_potential(point)


def test_misfits_are_told():
    with pytest.raises(ValueError, match="labels and real"):
        FactorGraph([3, 3], [LikelihoodFactors([[0, 1]], normal)])
    with pytest.raises(ValueError, match="likelihood 0 joins"):
        FactorGraph(Mixed([2, 0]), [LikelihoodFactors([[0, 1]], normal)])
    with pytest.raises(ValueError, match="names variable 2"):
        FactorGraph(Mixed([3, 0]), [LikelihoodFactors([[0, 2]], normal)])
    with pytest.raises(ValueError, match="observed without the real"):
        graph().condition({0: 1})
    with pytest.raises(ValueError, match="as many values"):
        graph().condition(np.array([1, 3]), np.array([0.0]))
    with pytest.raises(ValueError, match="numbers of labels"):
        Mixed([-1])


def test_groups_that_nothing_touches_are_kept_as_they_are():
    """A grid stays the grid its loop is made for, and takes no second copy."""
    prior = ising(0.5, 0.0, (4, 5)).factors[1]
    n = 20
    scopes = np.stack([np.arange(n), np.arange(n) + n], axis=1)
    whole = FactorGraph(Mixed([2] * n + [0] * n), [prior, LikelihoodFactors(scopes, lambda y: normal(y)[:, :2])])
    left = whole.condition(np.arange(n, 2 * n), np.linspace(-1, 1, n))
    assert left.factors[0] is prior
