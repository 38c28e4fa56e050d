from typing import Any

import numpy as np
from numpy.typing import NDArray

def number_keys(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]: ...
def count_pairs(
    numbers: NDArray[np.int32],
    starts: NDArray[np.int64],
    allowed: NDArray[np.uint8],
    columns: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> None: ...
def column_hashes(numbers: NDArray[np.int32], starts: NDArray[np.int64], n_features: int) -> NDArray[np.uint64]: ...
def lay_out(
    numbers: NDArray[np.int32],
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    n_dense: int,
    entry_starts: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]: ...
def mark_used_weights(
    data: Any, allowed: NDArray[np.uint8], dense: NDArray[np.uint8], entries: NDArray[np.uint8]
) -> None: ...

class TrainingData:
    def __init__(self, data: Any, first: int, last: int) -> None: ...

def add_gradient(
    data: TrainingData,
    sentence_weights: NDArray[np.float64],
    dense: NDArray[np.float64],
    entries: NDArray[np.float64],
    transition: NDArray[np.float64],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    dense_slope: NDArray[np.float64],
    entry_slope: NDArray[np.float64],
    transition_slope: NDArray[np.float64],
) -> tuple[float, int]: ...
