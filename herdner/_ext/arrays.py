"""Types of arrays in the declarations of compiled loops."""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]  # states, variables
Int64s = NDArray[np.int64]  # offsets, counts
Uint8s = NDArray[np.uint8]
Uint64s = NDArray[np.uint64]
