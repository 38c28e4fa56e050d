from collections.abc import Iterable, Mapping, Sequence

from herdner.base.arrays import Int64s

def place(
    text: str, splits: Mapping[str, tuple[str, ...]], long_splits: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[list[str], Int64s, Int64s], set[str]]: ...
def misplaced(text: str, tokens: Sequence[str], starts: Int64s, ends: Int64s, offsets: Int64s) -> str | None: ...

class SentenceLoop:
    def __init__(
        self, titles: Iterable[str], starters: Iterable[str], marks: str, closers: str, openers: str
    ) -> None: ...
    def offsets(self, text: str, tokens: list[str], starts: Int64s, ends: Int64s) -> Int64s: ...
