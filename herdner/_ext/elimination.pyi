import numpy as np
from numpy.typing import NDArray

def find_order(
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    log_sizes: NDArray[np.float64],
    criterion: int,
    seed: int,
    limit: float,
    spread: float,
    most_work: int,
    order: NDArray[np.int32],
) -> tuple[float, int]: ...

class Bucket:
    def __new__(
        cls,
        tables: list[NDArray[np.float64]],
        strides: NDArray[np.int64],
        sizes: NDArray[np.int32],
        n_states: int,
        beliefs: list[NDArray[np.float64] | None] | None = None,
    ) -> Bucket: ...
    @property
    def n_blocks(self) -> int: ...
    @property
    def n_slices(self) -> int: ...
    def collect(
        self, log_domain: bool, maximise: bool, message: NDArray[np.float64], first: int, last: int
    ) -> None: ...
    def distribute(
        self,
        log_domain: bool,
        message: NDArray[np.float64],
        probability: NDArray[np.float64],
        marginal: NDArray[np.float64],
        first: int,
        last: int,
    ) -> None: ...
