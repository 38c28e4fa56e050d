import numpy as np
from numpy.typing import NDArray

class GreedyOrder:
    n_ordered: int
    width: int
    cells: float
    message_cells: float
    is_hopeless: bool
    def __new__(
        cls,
        starts: NDArray[np.int64],
        neighbours: NDArray[np.int32],
        log_sizes: NDArray[np.float64],
        criterion: int,
        seed: int,
        limit: float,
        spread: float,
    ) -> GreedyOrder: ...
    @property
    def order(self) -> NDArray[np.int32]: ...
    @property
    def work(self) -> int: ...
    def peak_cells(self, starts_: NDArray[np.int64], neighbours_: NDArray[np.int32]) -> float: ...
    def advance(self, most_work: int) -> bool: ...

def least_largest_bucket(
    starts: NDArray[np.int64], neighbours: NDArray[np.int32], log_sizes: NDArray[np.float64]
) -> float: ...
def find_block(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    log_sizes: NDArray[np.float64],
    width: int,
    most_log2_cells: float,
    ties: NDArray[np.float64],
    is_missing: NDArray[np.uint8],
) -> NDArray[np.int32]: ...
