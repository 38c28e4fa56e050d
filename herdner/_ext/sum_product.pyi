import numpy as np
from numpy.typing import NDArray

from herdner.inference.sum_product import SkipChains

class SumProduct:
    unaries: NDArray[np.float64]
    marginals: NDArray[np.float64]
    log_zs: NDArray[np.float64]
    n_stale: int
    n_updates: int
    fault: int
    def __init__(self, chains: SkipChains, damping: float, tolerance: float) -> None: ...
    def advance(self, at: int, backward: bool, send: bool) -> int: ...
    def log_corrections(self) -> float: ...
    def pairs(self, edge: NDArray[np.int32], out: NDArray[np.float64]) -> None: ...
