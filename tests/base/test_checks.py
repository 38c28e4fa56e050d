"""Checks of the options of dataclasses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from herdner.base.checks import check_counts


@dataclass
class Options:
    n_sweeps: int = 1
    width: int | None = None


def test_counts_are_checked_by_name() -> None:
    check_counts(Options(), n_sweeps=1, width=2)
    with pytest.raises(ValueError, match="width must be a whole number of at least 2, not 1"):
        check_counts(Options(width=1), n_sweeps=1, width=2)
    with pytest.raises(ValueError, match="n_sweeps must be a whole number of at least 1, not None"):
        check_counts(Options(n_sweeps=None), n_sweeps=1)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="n_sweep"):
        check_counts(Options(), n_sweep=1)
