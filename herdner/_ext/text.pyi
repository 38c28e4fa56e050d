from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

def place(
    text: str, splits: Mapping[str, tuple[str, ...]], long_splits: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[list[str], NDArray[np.int64], NDArray[np.int64]], set[str]]: ...
def misplaced(
    text: str,
    tokens: Sequence[str],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> str | None: ...

class SentenceLoop:
    def __init__(
        self, titles: Iterable[str], starters: Iterable[str], marks: str, closers: str, openers: str
    ) -> None: ...
    def offsets(
        self, text: str, tokens: list[str], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.int64]: ...
