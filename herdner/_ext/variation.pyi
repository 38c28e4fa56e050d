import numpy as np
from numpy.typing import NDArray

from herdner._ext.influence import InfluenceMatrix

def walk(influence: InfluenceMatrix, order: NDArray[np.int32], b: NDArray[np.float64]) -> None: ...
def walk_recorded(
    influence: InfluenceMatrix,
    order: NDArray[np.int32],
    b: NDArray[np.float64],
    d: NDArray[np.float64],
    support: NDArray[np.int32],
    curve: NDArray[np.float64],
) -> None: ...
def walk_random(influence: InfluenceMatrix, q: NDArray[np.float64], rows: NDArray[np.float64]) -> None: ...
