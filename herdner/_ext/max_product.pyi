from typing import Any

import numpy as np
from numpy.typing import NDArray

class MaxProductLoop:
    state: NDArray[np.int32]
    change: float
    fault: int
    def __init__(self, slots: Any, unary: NDArray[np.float64], damping: float) -> None: ...
    def sweep(self, at: int, backward: bool) -> int: ...
    def decode(self, at: int) -> int: ...
    def log_potential(self) -> float: ...

def traverse(
    scope: NDArray[np.int32],
    factor_of: NDArray[np.int32],
    factor_at: NDArray[np.int64],
    starts: NDArray[np.int64],
    slots: NDArray[np.int32],
) -> NDArray[np.int32]: ...
