import numpy as np
from numpy.typing import NDArray

def herd(
    features: NDArray[np.float64],
    moments: NDArray[np.float64],
    weights: NDArray[np.float64],
    samples: NDArray[np.int64],
) -> None: ...
def herd_categorical(
    parts: NDArray[np.int64], whole: int, weights: NDArray[np.int64], samples: NDArray[np.int64]
) -> None: ...
