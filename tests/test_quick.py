"""The quick run meets every pair of options."""

from __future__ import annotations

import itertools

from quick import pairwise


def test_pairs_are_all_met_and_the_full_run_has_every_combination() -> None:
    axes = ["abcde", [None, 1, 2], [0.5, 1.5], "xy"]
    cases = pairwise(*axes, fits=lambda letter, number: letter != "c" or number is None)
    expected = [case for case in itertools.product(*axes) if case[0] != "c" or case[1] is None]
    assert [case.values for case in cases] == expected
    quick = [case.values for case in cases if not case.marks]
    assert len(quick) < len(cases) / 2
    for i, j in itertools.combinations(range(4), 2):
        assert {(case[i], case[j]) for case in quick} == {(case[i], case[j]) for case in expected}
