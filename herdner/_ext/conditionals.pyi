import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int32s, Int64s

def add_unary(
    unary: Floats, unary_at: Int64s | None, scopes: Int32s, table_of_factor: Int32s, scale: Floats, tables: Floats
) -> None: ...
def normalise(rows: Floats, row_at: Int64s, sizes: Int32s, widths: Int32s, spread: Floats) -> int: ...
def count_incidences(scopes: Int32s, starts: Int64s) -> None: ...
def fill_incidences(
    scopes: Int32s,
    term_of_factor: Int32s,
    blocks: Int64s,
    places: Int32s,
    spreads: Floats,
    cursor: Int64s,
    row_at: Int32s,
    others_at: Int64s | None,
    others: Int32s,
    all_places: Int32s | None,
    spread: Floats,
) -> None: ...
def sort_pairs(starts: Int64s, row_at: Int32s, others: Int32s) -> None: ...
def mark_independent(starts: Int64s, others: Int32s, size: int, flags: NDArray[np.uint8]) -> None: ...
def pad_incidences(
    starts: Int64s,
    row_at: Int32s,
    others: Int32s,
    rows: Floats,
    new_starts: Int64s,
    new_row_at: Int32s,
    new_others: Int32s,
    new_rows: Floats,
) -> None: ...
def count_others(scopes: Int32s, cursor: Int64s, others_at: Int64s) -> None: ...
def sort_distinct(starts: Int64s, members: Int32s) -> int: ...
def colour(starts: Int64s, members: Int32s, colours: Int32s) -> int: ...
def largest_odds(unary: Floats) -> tuple[float, int]: ...
def grid_columns(scopes: Int32s, n_variables: int) -> tuple[int, bool]: ...
