from numpy.typing import ArrayLike

from herdner._ext.arrays import Floats

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
    weights: Floats,
    sums: Floats,
    count: float,
    kind: int,
    c: float,
    error_sensitive: bool,
) -> tuple[float, float]: ...
def arow_epoch(
    data: OnlineChains, order: ArrayLike, sample_weights: ArrayLike, weights: Floats, variances: Floats, gamma: float
) -> float: ...
def sgd_epoch(
    data: OnlineChains,
    order: ArrayLike,
    sample_weights: ArrayLike,
    weights: Floats,
    t: float,
    rate: float,
    decay: float,
    penalty: float,
) -> tuple[float, float]: ...
