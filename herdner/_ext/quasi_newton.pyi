import numpy as np
from numpy.typing import ArrayLike, NDArray

BLOCK: int

def measure(
    point: NDArray[np.float64],
    trial: NDArray[np.float64],
    gradient: NDArray[np.float64],
    trial_gradient: NDArray[np.float64],
    l1: NDArray[np.float64],
    rows: NDArray[np.float32],
    slot: int,
    used_rows: ArrayLike,
    slope: NDArray[np.float64],
    sums: NDArray[np.float64],
    first: int,
    last: int,
) -> None: ...
def step(
    point: NDArray[np.float64],
    slope: NDArray[np.float64],
    l1: NDArray[np.float64],
    rows: NDArray[np.float32],
    used_rows: ArrayLike,
    coefficients: NDArray[np.float64],
    length: float,
    direction: NDArray[np.float64],
    trial: NDArray[np.float64],
    sums: NDArray[np.float64],
    first: int,
    last: int,
) -> None: ...
