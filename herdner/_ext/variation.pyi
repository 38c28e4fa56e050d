from typing import Any

import numpy as np
from numpy.typing import NDArray

def walk(influence: Any, order: NDArray[np.int32], b: NDArray[np.float64]) -> None: ...
def walk_recorded(
    influence: Any,
    order: NDArray[np.int32],
    b: NDArray[np.float64],
    d: NDArray[np.float64],
    support: NDArray[np.int32],
    curve: NDArray[np.float64],
) -> None: ...
def walk_random(influence: Any, q: NDArray[np.float64], rows: NDArray[np.float64]) -> None: ...
