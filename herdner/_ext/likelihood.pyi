from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int32s, Int64s

def number_keys(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Int32s]: ...
def count_pairs(
    numbers: Int32s, starts: Int64s, allowed: NDArray[np.uint8], columns: Int32s, counts: Int32s
) -> None: ...
def column_hashes(numbers: Int32s, starts: Int64s, n_features: int) -> NDArray[np.uint64]: ...
def lay_out(
    numbers: Int32s, starts: Int64s, columns: Int32s, n_dense: int, entry_starts: Int64s
) -> tuple[Int32s, Int64s, Int64s]: ...
def meet(data: Any, allowed: NDArray[np.uint8], dense: NDArray[np.uint8], entries: NDArray[np.uint8]) -> None: ...
def slope(
    data: Any,
    first: int,
    last: int,
    sentence_weights: Floats,
    dense: Floats,
    entries: Floats,
    transition: Floats,
    start: Floats,
    end: Floats,
    dense_slope: Floats,
    entry_slope: Floats,
    transition_slope: Floats,
) -> tuple[float, int]: ...
