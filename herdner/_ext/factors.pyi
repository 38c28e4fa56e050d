import numpy as np
from numpy.typing import NDArray

def find_fault(
    scopes: NDArray[np.int32],
    table_of_factor: NDArray[np.int32],
    scale: NDArray[np.float64],
    tables: NDArray[np.float64],
    most: float,
) -> tuple[str | None, int, float]: ...
def find_misfit(
    scopes: NDArray[np.int32], sizes: NDArray[np.int32], shape: tuple[int, ...]
) -> tuple[int, int] | None: ...
