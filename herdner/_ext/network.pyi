import numpy as np
from numpy.typing import NDArray

from herdner._ext.arrays import Int32s, Uint8s

class CompiledNetwork:
    window: int
    units: int
    row_width: int
    n_tags: int
    def __init__(
        self,
        attributes: Int32s,
        tables: NDArray[np.int8],
        codes: Uint8s,
        places: Int32s,
        place_rows: NDArray[np.int8],
        hidden: NDArray[np.int8],
        bias: NDArray[np.int16],
        outputs: NDArray[np.int8],
        output_bias: Int32s,
        shift: int,
        scale: float,
        columns: Int32s,
    ) -> None: ...
