import numpy as np
from numpy.typing import NDArray

def count_pairs(pairs: NDArray[np.int32], starts: NDArray[np.int64]) -> None: ...
def place_pairs(
    pairs: NDArray[np.int32],
    strength: NDArray[np.float64],
    cursor: NDArray[np.int64],
    sources: NDArray[np.int32],
    values: NDArray[np.float64],
) -> None: ...
def merge_repeated(starts: NDArray[np.int64], sources: NDArray[np.int32], values: NDArray[np.float64]) -> int: ...
def bound_pairwise(values: NDArray[np.float64]) -> None: ...
def bound_binary(
    starts: NDArray[np.int64], values: NDArray[np.float64], fields: NDArray[np.float64], as_printed: bool
) -> None: ...
def multiply(
    starts: NDArray[np.int64],
    sources: NDArray[np.int32],
    values: NDArray[np.float64],
    x: NDArray[np.float64],
    to: NDArray[np.float64],
) -> None: ...
def multiply_transposed(
    starts: NDArray[np.int64],
    sources: NDArray[np.int32],
    values: NDArray[np.float64],
    x: NDArray[np.float64],
    to: NDArray[np.float64],
) -> None: ...
def walk(
    starts: NDArray[np.int64],
    sources: NDArray[np.int32],
    values: NDArray[np.float64],
    order: NDArray[np.int32],
    b: NDArray[np.float64],
) -> None: ...
def walk_recorded(
    starts: NDArray[np.int64],
    sources: NDArray[np.int32],
    values: NDArray[np.float64],
    order: NDArray[np.int32],
    b: NDArray[np.float64],
    d: NDArray[np.float64],
    support: NDArray[np.int32],
    curve: NDArray[np.float64],
) -> None: ...
def walk_random(
    starts: NDArray[np.int64],
    sources: NDArray[np.int32],
    values: NDArray[np.float64],
    q: NDArray[np.float64],
    rows: NDArray[np.float64],
) -> None: ...
def choose_dense(
    starts: NDArray[np.int64],
    sources: NDArray[np.int32],
    values: NDArray[np.float64],
    q: NDArray[np.float64],
    rows: NDArray[np.float64],
    d: NDArray[np.float64],
    goal: float,
    order: NDArray[np.int32],
    w: NDArray[np.float64],
) -> int: ...

class Descent:
    def __init__(self, starts: NDArray[np.int64], sources: NDArray[np.int32], values: NDArray[np.float64]) -> None: ...
    def run(
        self,
        order: NDArray[np.int32],
        important: NDArray[np.int32],
        importance: NDArray[np.float64],
        goal: float,
        before: NDArray[np.float64],
    ) -> tuple[float, int]: ...
    def variation(
        self, order: NDArray[np.int32], important: NDArray[np.int32], importance: NDArray[np.float64]
    ) -> float: ...
    def mark_reaching(
        self,
        order: NDArray[np.int32],
        important: NDArray[np.int32],
        importance: NDArray[np.float64],
        reach: NDArray[np.uint8],
    ) -> None: ...
    def reset(self) -> int: ...
