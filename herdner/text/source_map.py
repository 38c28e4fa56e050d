"""Where the characters of a text stand in the file that it was taken from, such as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Run(NamedTuple):
    """The characters of the text from ``start`` to the next run stand in ``source_start:source_end`` of the file: one
    for one where they are as many, else all together, as ``é`` in ``&eacute;``.
    """

    start: int
    source_start: int
    source_end: int


@dataclass(frozen=True, eq=False)
class SourceMap:
    """n runs in the order of the text, at least one, the first of which begins at 0; with the length of the text there
    are n + 1 starts. int64 each.
    """

    starts: NDArray[np.int64]
    source_starts: NDArray[np.int64]
    source_ends: NDArray[np.int64]

    @classmethod
    def of(cls, runs: Sequence[Run], length: int) -> SourceMap:
        """The runs of a text of this length."""
        starts, source_starts, source_ends = np.array(runs, np.int64).reshape(-1, 3).T.copy()
        return cls(np.append(starts, length), source_starts, source_ends)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters ``start:end`` of the text, at least one, begin and end in the file."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, character: int) -> tuple[int, int]:
        """Begin and end of one character in the file."""
        run = int(np.searchsorted(self.starts, character, side="right")) - 1
        begin, end = int(self.source_starts[run]), int(self.source_ends[run])
        first, stop = int(self.starts[run]), int(self.starts[run + 1])
        if stop - first != end - begin:
            return begin, end
        return begin + character - first, begin + character - first + 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SourceMap):
            return NotImplemented
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        return all(np.array_equal(mine, others) for mine, others in pairs)

    def _arrays(self) -> tuple[NDArray[np.int64], ...]:
        return self.starts, self.source_starts, self.source_ends
