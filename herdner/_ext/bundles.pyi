import numpy as np
from numpy.typing import NDArray

def bundle(
    uses: NDArray[np.int32],
    starts: NDArray[np.int64],
    values: NDArray[np.float64] | None,
    n_dense: int,
    n_features: int,
) -> tuple[
    tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
    tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
    NDArray[np.float64] | None,
]: ...
