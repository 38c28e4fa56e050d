"""What inference returns, whichever backend did it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Result:
    """The outcome of ``backend.infer``; what was not asked for, or what a backend cannot give, is None.

    state          int32[V]: the state of largest log-potential that was found (exact backends: there is)
    log_potential  its log-potential, not normalised
    log_z          the logarithm of the partition function
    marginals      float64[V, K]: P(variable = label), K the largest number of labels, 0 for labels a variable has not
    table_counts   per group of factors an array like its tables, the derivative of log Z by them: the expected number
                   of factors whose table and labels these are, each factor counted ``scale`` times
    trace          float64[n_sweeps]: the log-potential after each sweep
    samples        int32[S, V]: recorded states
    n_updates      single variables drawn anew
    seconds        wall time, compilation of the graph included
    """

    state: NDArray[np.int32]
    log_potential: float
    log_z: float | None = None
    marginals: NDArray[np.float64] | None = None
    table_counts: tuple[NDArray[np.float64], ...] | None = None
    trace: NDArray[np.float64] | None = None
    samples: NDArray[np.int32] | None = None
    n_updates: int | None = None
    seconds: float = 0.0
