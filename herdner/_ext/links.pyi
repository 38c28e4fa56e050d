import numpy as np
from numpy.typing import NDArray

def capitalised(tokens: list[str], min_letters: int) -> list[int]: ...
def names(tokens: list[str], sentence_offsets: NDArray[np.int64], min_letters: int) -> list[int]: ...
def nearest_links(
    mentions: NDArray[np.int32], groups: NDArray[np.int32], n_groups: int, nearest: int
) -> NDArray[np.int32]: ...
def add_messages(
    total: NDArray[np.float64],
    ends: NDArray[np.int32],
    scale: NDArray[np.float64] | None,
    table: NDArray[np.float64],
    beliefs: NDArray[np.float64],
) -> None: ...
