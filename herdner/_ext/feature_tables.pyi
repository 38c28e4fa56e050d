import numpy as np
from numpy.typing import NDArray

from herdner._ext.arrays import Floats, Uint8s, Uint64s

class WordTable:
    def __init__(self, keys: Uint64s, values: Uint64s) -> None: ...

class FeatureWeights:
    n_tags: int
    def __init__(
        self, keys: Uint64s, starts: NDArray[np.uint32], tags: Uint8s, weights: Floats, n_tags: int
    ) -> None: ...
