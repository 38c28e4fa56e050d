import numpy as np
from numpy.typing import NDArray

class CompiledConditionals:
    @property
    def widest(self) -> int: ...
    def __init__(
        self,
        sizes: NDArray[np.int32],
        widths: NDArray[np.int32],
        unary_at: NDArray[np.int64],
        unary: NDArray[np.float64],
        starts: NDArray[np.int64],
        row_at: NDArray[np.int32],
        others_at: NDArray[np.int64] | None,
        others: NDArray[np.int32],
        places: NDArray[np.int32] | None,
        rows: NDArray[np.float64],
    ) -> None: ...

def add_unary(
    unary: NDArray[np.float64],
    unary_at: NDArray[np.int64] | None,
    scopes: NDArray[np.int32],
    table_of_factor: NDArray[np.int32],
    scale: NDArray[np.float64],
    tables: NDArray[np.float64],
) -> None: ...
def normalise(
    rows: NDArray[np.float64],
    row_at: NDArray[np.int64],
    sizes: NDArray[np.int32],
    widths: NDArray[np.int32],
    spread: NDArray[np.float64],
) -> int: ...
def count_incidences(scopes: NDArray[np.int32], starts: NDArray[np.int64]) -> None: ...
def fill_incidences(
    scopes: NDArray[np.int32],
    term_of_factor: NDArray[np.int32],
    blocks: NDArray[np.int64],
    places: NDArray[np.int32],
    spreads: NDArray[np.float64],
    cursor: NDArray[np.int64],
    row_at: NDArray[np.int32],
    others_at: NDArray[np.int64] | None,
    others: NDArray[np.int32],
    all_places: NDArray[np.int32] | None,
    spread: NDArray[np.float64],
) -> None: ...
def sort_pairs(starts: NDArray[np.int64], row_at: NDArray[np.int32], others: NDArray[np.int32]) -> None: ...
def mark_independent(
    starts: NDArray[np.int64], others: NDArray[np.int32], size: int, flags: NDArray[np.uint8]
) -> None: ...
def pad_incidences(
    starts: NDArray[np.int64],
    row_at: NDArray[np.int32],
    others: NDArray[np.int32],
    rows: NDArray[np.float64],
    new_starts: NDArray[np.int64],
    new_row_at: NDArray[np.int32],
    new_others: NDArray[np.int32],
    new_rows: NDArray[np.float64],
) -> None: ...
def count_others(scopes: NDArray[np.int32], cursor: NDArray[np.int64], others_at: NDArray[np.int64]) -> None: ...
def sort_distinct(starts: NDArray[np.int64], members: NDArray[np.int32]) -> int: ...
def colour(starts: NDArray[np.int64], members: NDArray[np.int32], colours: NDArray[np.int32]) -> int: ...
def largest_odds(unary: NDArray[np.float64]) -> tuple[float, int]: ...
def grid_columns(scopes: NDArray[np.int32], n_variables: int) -> tuple[int, bool]: ...
