import numpy as np
from numpy.typing import NDArray

from herdner.dobrushin.influence import Influence

def walk(
    influence: Influence,
    order: NDArray[np.int32],
    b: NDArray[np.float64],
) -> None: ...
def walk_recorded(
    influence: Influence,
    order: NDArray[np.int32],
    b: NDArray[np.float64],
    d: NDArray[np.float64],
    support: NDArray[np.int32],
    curve: NDArray[np.float64],
) -> None: ...
def walk_random(
    influence: Influence,
    q: NDArray[np.float64],
    rows: NDArray[np.float64],
) -> None: ...
