import numpy as np
from numpy.typing import NDArray

def forward_paths(scopes: NDArray[np.int32], n_variables: int, offsets: NDArray[np.int64]) -> int: ...
def cut_runs(nearest: NDArray[np.int32], joined: NDArray[np.uint8], first: NDArray[np.int32]) -> int: ...
def order_paths(
    n_variables: int, edges: NDArray[np.int32], order: NDArray[np.int64], offsets: NDArray[np.int64]
) -> int: ...
def add_rows(
    totals: NDArray[np.float64],
    to: NDArray[np.int32],
    table_of: NDArray[np.int32] | None,
    scale: NDArray[np.float64],
    rows: NDArray[np.float64],
) -> None: ...
