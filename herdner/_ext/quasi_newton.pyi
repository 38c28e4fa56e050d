import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext.arrays import Floats

BLOCK: int

def measure(
    point: Floats,
    trial: Floats,
    gradient: Floats,
    trial_gradient: Floats,
    l1: Floats,
    rows: NDArray[np.float32],
    slot: int,
    used_rows: ArrayLike,
    slope: Floats,
    sums: Floats,
    first: int,
    last: int,
) -> None: ...
def step(
    point: Floats,
    slope: Floats,
    l1: Floats,
    rows: NDArray[np.float32],
    used_rows: ArrayLike,
    coefficients: Floats,
    length: float,
    direction: Floats,
    trial: Floats,
    sums: Floats,
    first: int,
    last: int,
) -> None: ...
