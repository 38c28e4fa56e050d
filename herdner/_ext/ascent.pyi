from typing import Any

import numpy as np
from numpy.typing import NDArray

class Ascent:
    moved: int
    gain: float
    def __init__(self, conditionals: Any, x: NDArray[np.int32]) -> None: ...
    def climb(self, i: int) -> int: ...
    def repair(self, i: int, key: int, sweep: int) -> int: ...
