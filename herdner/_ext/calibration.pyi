from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def means_of_documents(documents: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]: ...
def calibrated_log_odds(
    odds: NDArray[np.float64],
    chain_odds: NDArray[np.float64],
    extra_tokens: NDArray[np.float64],
    document_means: NDArray[np.float64],
    is_linked: NDArray[np.uint8],
    is_certain: NDArray[np.uint8],
    label_constants: NDArray[np.float64],
    linked: Sequence[float],
    unlinked: Sequence[float],
    length: float,
    document: float,
) -> NDArray[np.float64]: ...
