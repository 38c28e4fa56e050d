import numpy as np
from numpy.typing import ArrayLike, NDArray

def possible_states(
    sizes: ArrayLike, scope_at: ArrayLike, scopes: ArrayLike, table_at: ArrayLike, tables: ArrayLike
) -> tuple[NDArray[np.uint8], int]: ...
