from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from herdner._ext.strings import Strings

class Runs:
    @property
    def splits(self) -> Strings: ...
    @property
    def long(self) -> dict[str, tuple[str, ...]]: ...
    def __init__(self, texts: list[str], splits: Strings) -> None: ...
    def unknown(self) -> set[str]: ...
    def tokens_with_offsets(self) -> list[tuple[list[str], NDArray[np.int64], NDArray[np.int64]]]: ...

def find_offset_fault(
    text: str, tokens: Sequence[str], starts: NDArray[np.int64], ends: NDArray[np.int64], offsets: NDArray[np.int64]
) -> str | None: ...

class SentenceLoop:
    def __init__(
        self, titles: Iterable[str], starters: Iterable[str], marks: str, closers: str, openers: str
    ) -> None: ...
    def offsets(
        self, text: str, tokens: list[str], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.int64]: ...
