from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def add_borders(
    unary: NDArray[np.float64], offsets: NDArray[np.int64], start: NDArray[np.float64], end: NDArray[np.float64]
) -> None: ...
def viterbi(
    unary: NDArray[np.float64],
    tables: NDArray[np.float64],
    offsets: NDArray[np.int64],
    edge_table: NDArray[np.int32] | None,
    states: NDArray[np.int32],
    scores: NDArray[np.float64],
) -> int: ...
def forward_backward(
    unary: NDArray[np.float64],
    tables: NDArray[np.float64],
    offsets: NDArray[np.int64],
    edge_table: NDArray[np.int32] | None,
    log_z: NDArray[np.float64],
    nodes: NDArray[np.float64] | None = None,
    counts: NDArray[np.float64] | None = None,
    edges: NDArray[np.float64] | None = None,
) -> int: ...
def span_log_probability(
    unary: NDArray[np.float64],
    tables: NDArray[np.float64],
    offsets: NDArray[np.int64],
    edge_table: NDArray[np.int32] | None,
    states: NDArray[np.int32],
    span_starts: NDArray[np.int64],
    span_ends: NDArray[np.int64],
    out: NDArray[np.float64],
) -> int: ...
def linked_span_log_probability(
    unary: NDArray[np.float64],
    total: NDArray[np.float64],
    tables: NDArray[np.float64],
    offsets: NDArray[np.int64],
    states: NDArray[np.int32],
    span_starts: NDArray[np.int64],
    span_ends: NDArray[np.int64],
    links: Sequence[NDArray[np.int32]],
    link_tables: list[NDArray[np.float64]],
    beliefs: NDArray[np.float64],
    start: NDArray[np.float64] | None,
    end: NDArray[np.float64] | None,
) -> tuple[int, NDArray[np.bool_], NDArray[np.float64]]: ...
