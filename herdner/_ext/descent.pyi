import numpy as np
from numpy.typing import NDArray

from herdner._ext.influence import InfluenceMatrix

def choose_dense(
    influence: InfluenceMatrix,
    q: NDArray[np.float64],
    rows: NDArray[np.float64],
    d: NDArray[np.float64],
    goal: float,
    order: NDArray[np.int32],
    w: NDArray[np.float64],
) -> int: ...

class Descent:
    def __init__(self, influence: InfluenceMatrix) -> None: ...
    def run(
        self,
        order: NDArray[np.int32],
        important: NDArray[np.int32],
        importance: NDArray[np.float64],
        goal: float,
        before: NDArray[np.float64],
    ) -> tuple[float, int]: ...
    def variation(
        self, order: NDArray[np.int32], important: NDArray[np.int32], importance: NDArray[np.float64]
    ) -> float: ...
    def mark_reaching(
        self,
        order: NDArray[np.int32],
        important: NDArray[np.int32],
        importance: NDArray[np.float64],
        reach: NDArray[np.uint8],
    ) -> None: ...
    def reset(self) -> int: ...
