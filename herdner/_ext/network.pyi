import numpy as np
from numpy.typing import NDArray

class CompiledNetwork:
    window: int
    units: int
    row_width: int
    n_tags: int
    def __init__(
        self,
        attributes: NDArray[np.int32],
        tables: NDArray[np.int8],
        codes: NDArray[np.uint8],
        places: NDArray[np.int32],
        place_rows: NDArray[np.int8],
        hidden: NDArray[np.int8],
        bias: NDArray[np.int16],
        outputs: NDArray[np.int8],
        output_bias: NDArray[np.int32],
        shift: int,
        scale: float,
        columns: NDArray[np.int32],
    ) -> None: ...
