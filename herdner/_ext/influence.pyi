from typing import Any

import numpy as np
from numpy.typing import NDArray

def count_pairs(pairs: NDArray[np.int32], starts: NDArray[np.int64]) -> None: ...
def place_pairs(
    pairs: NDArray[np.int32],
    strength: NDArray[np.float64],
    cursor: NDArray[np.int64],
    sources: NDArray[np.int32],
    values: NDArray[np.float64],
) -> None: ...
def merge_repeated(starts: NDArray[np.int64], sources: NDArray[np.int32], values: NDArray[np.float64]) -> int: ...
def bound_pairwise(values: NDArray[np.float64]) -> None: ...
def bound_binary(
    starts: NDArray[np.int64], values: NDArray[np.float64], fields: NDArray[np.float64], as_printed: bool
) -> None: ...
def multiply(influence: Any, x: NDArray[np.float64], to: NDArray[np.float64]) -> None: ...
def multiply_transposed(influence: Any, x: NDArray[np.float64], to: NDArray[np.float64]) -> None: ...
def largest_changes(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    tables: NDArray[np.float64],
    table: NDArray[np.int32],
    possible: NDArray[np.uint8],
    out: NDArray[np.float64],
) -> None: ...
