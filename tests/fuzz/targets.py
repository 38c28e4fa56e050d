"""The targets by name: functions of a random generator that return, or raise an error which tells the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fuzz import graphs

TARGETS: Mapping[str, Callable[[np.random.Generator], object]] = {"graphs": graphs.infer}
