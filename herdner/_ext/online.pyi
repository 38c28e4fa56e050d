import numpy as np
from numpy.typing import ArrayLike, NDArray

PERCEPTRON: int

class OnlineChains:
    def __init__(
        self,
        offsets: ArrayLike,
        starts: ArrayLike,
        uses: ArrayLike,
        values: ArrayLike | None,
        entry_tags: ArrayLike,
        states: ArrayLike,
        allowed: ArrayLike,
        learned: ArrayLike,
        fixed: ArrayLike,
    ) -> None: ...
    def __len__(self) -> int: ...

def margin_epoch(
    data: OnlineChains,
    order: ArrayLike,
    sample_weights: ArrayLike,
    weights: NDArray[np.float64],
    sums: NDArray[np.float64],
    count: float,
    kind: int,
    c: float,
    error_sensitive: bool,
) -> tuple[float, float]: ...
def arow_epoch(
    data: OnlineChains,
    order: ArrayLike,
    sample_weights: ArrayLike,
    weights: NDArray[np.float64],
    variances: NDArray[np.float64],
    gamma: float,
) -> float: ...
def sgd_epoch(
    data: OnlineChains,
    order: ArrayLike,
    sample_weights: ArrayLike,
    weights: NDArray[np.float64],
    t: float,
    rate: float,
    decay: float,
    penalty: float,
) -> tuple[float, float]: ...
