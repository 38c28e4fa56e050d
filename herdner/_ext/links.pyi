import numpy as np
from numpy.typing import NDArray

def capitalised(tokens: list[str], min_letters: int) -> list[int]: ...
def nearest_links(
    mentions: NDArray[np.int32], groups: NDArray[np.int32], n_groups: int, nearest: int
) -> NDArray[np.int32]: ...
