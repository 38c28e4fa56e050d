from typing import Any

from herdner._ext.arrays import Floats, Int32s, Int64s, Uint8s, Uint64s

def number_keys(keys: Uint64s) -> tuple[Uint64s, Int32s]: ...
def count_pairs(numbers: Int32s, starts: Int64s, allowed: Uint8s, columns: Int32s, counts: Int32s) -> None: ...
def column_hashes(numbers: Int32s, starts: Int64s, n_features: int) -> Uint64s: ...
def lay_out(
    numbers: Int32s, starts: Int64s, columns: Int32s, n_dense: int, entry_starts: Int64s
) -> tuple[Int32s, Int64s, Int64s]: ...
def mark_used_weights(data: Any, allowed: Uint8s, dense: Uint8s, entries: Uint8s) -> None: ...

class TrainingData:
    def __init__(self, data: Any, first: int, last: int) -> None: ...

def add_gradient(
    data: TrainingData,
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
def add_slopes(dense: Floats, entries: Floats, places: Int64s, total: Floats, first: int, last: int) -> None: ...
