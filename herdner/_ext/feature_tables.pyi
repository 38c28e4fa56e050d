import numpy as np
from numpy.typing import NDArray

class WordTable:
    def __init__(self, keys: NDArray[np.uint64], values: NDArray[np.uint64]) -> None: ...

class FeatureWeights:
    n_tags: int
    def __init__(
        self,
        keys: NDArray[np.uint64],
        starts: NDArray[np.uint32],
        tags: NDArray[np.uint8],
        weights: NDArray[np.float64],
        n_tags: int,
    ) -> None: ...
