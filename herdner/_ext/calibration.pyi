from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def regressors(
    confidence: NDArray[np.float64],
    without_links: NDArray[np.float64],
    length: NDArray[np.int64],
    document: NDArray[np.int64],
    nearest: float,
    longest: int,
) -> NDArray[np.float64]: ...
def calibrated(
    confidence: NDArray[np.float64],
    without_links: NDArray[np.float64],
    is_linked: NDArray[np.bool_],
    length: NDArray[np.int64],
    document: NDArray[np.int64],
    label_constants: NDArray[np.float64],
    linked: Sequence[float],
    unlinked: Sequence[float],
    length_weight: float,
    document_weight: float,
    nearest: float,
    longest: int,
) -> NDArray[np.float64]: ...
