import numpy as np
from numpy.typing import NDArray

def read_spans(
    states: NDArray[np.int32], prefixes: NDArray[np.uint8], labels: NDArray[np.int32], offsets: NDArray[np.int64]
) -> NDArray[np.int64]: ...
