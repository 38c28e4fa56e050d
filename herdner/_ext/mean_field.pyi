import numpy as np
from numpy.typing import NDArray

from herdner._ext.conditionals import CompiledConditionals

class MeanFieldLoop:
    change: float
    def __init__(self, conditionals: CompiledConditionals, q: NDArray[np.float64], damping: float) -> None: ...
    def sweep(self, i: int) -> int: ...

def expected(
    q: NDArray[np.float64],
    sizes: NDArray[np.int32],
    scopes: NDArray[np.int32],
    table_of_factor: NDArray[np.int32],
    scale: NDArray[np.float64],
    tables: NDArray[np.float64],
    f: int,
) -> tuple[float, int]: ...
def entropy(q: NDArray[np.float64], sizes: NDArray[np.int32], i: int) -> tuple[float, int]: ...
