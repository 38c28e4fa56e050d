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
def fill_incidences(
    groups: list[
        tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]
    ],
    starts: NDArray[np.int64],
    first_others: NDArray[np.int64] | None,
    spread: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.int64] | None, NDArray[np.int32], NDArray[np.int32] | None]: ...
def sort_pairs(starts: NDArray[np.int64], row_at: NDArray[np.int32], others: NDArray[np.int32]) -> None: ...
def sort_distinct(
    starts: NDArray[np.int64], members: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def colour(starts: NDArray[np.int64], members: NDArray[np.int32]) -> NDArray[np.int32]: ...
