from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

class AttributeIndex:
    def __init__(self, names: Iterable[str] = ()) -> None: ...
    def __len__(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    def encode(
        self, sequences: Iterable[object], grow: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[Any] | None]: ...
    def score(
        self,
        sequence: object,
        entry_starts: NDArray[np.int64],
        entry_labels: NDArray[np.uint8],
        entry_weights: NDArray[np.float64],
        n_labels: int,
    ) -> NDArray[np.float64]: ...

def add_scores(
    starts: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64] | None,
    entry_starts: NDArray[np.int64],
    entry_labels: NDArray[np.uint8],
    entry_weights: NDArray[np.float64],
    unary: NDArray[np.float64],
) -> None: ...
def quark_hash(text: bytes) -> int: ...
