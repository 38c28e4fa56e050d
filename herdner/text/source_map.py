"""Positions of extracted text in its source file, such as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SourceRun(NamedTuple):
    """Run of consecutive characters in an extracted text, and the corresponding range of characters in the source file.

    If both ranges have the same length, their characters correspond one to one. Otherwise the whole range belongs to
    each character, as ``&eacute;`` does to ``é``.

    Attributes:
        start: Offset of the first character in the text; the run ends where the next run begins.
        source_start: Offset of the first character of the range in the source.
        source_end: Offset behind the last character of the range in the source.
    """

    start: int
    source_start: int
    source_end: int


@dataclass(frozen=True, eq=False)
class SourceMap:
    """Map from the characters of an extracted text to their positions in the source file.

    Attributes:
        starts: int64[n + 1], offsets of n > 0 runs in the text, from 0 to the length of the text.
        source_starts: int64[n], offset of each run in the source.
        source_ends: int64[n], offset behind each run in the source.
    """

    starts: NDArray[np.int64]
    source_starts: NDArray[np.int64]
    source_ends: NDArray[np.int64]

    @classmethod
    def of(cls, runs: Sequence[SourceRun], length: int) -> SourceMap:
        """Build the source map of a text from runs of consecutive characters, each with its range in the source file.

        Args:
            runs: The runs in the order of the text; the first one starts at 0.
            length: Number of characters of the text.

        Returns:
            The source map.
        """
        starts, source_starts, source_ends = np.array(runs, np.int64).reshape(-1, 3).T.copy()
        return cls(np.append(starts, length), source_starts, source_ends)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the source file that corresponds to the characters ``start:end`` of the text.

        Args:
            start: Offset of the first character in the text.
            end: Offset behind the last character in the text, larger than ``start``.

        Returns:
            Offset of the first character in the source, and offset behind the last one.
        """
        return self._position(start)[0], self._position(end - 1)[1]

    def _position(self, character: int) -> tuple[int, int]:
        """Return the range of the source file that corresponds to one character of the text."""
        run = int(np.searchsorted(self.starts, character, side="right")) - 1
        begin, end = int(self.source_starts[run]), int(self.source_ends[run])
        first, stop = int(self.starts[run]), int(self.starts[run + 1])
        if stop - first != end - begin:
            return begin, end
        return begin + character - first, begin + character - first + 1

    def __eq__(self, other: object) -> bool:
        """Return whether two source maps have equal runs."""
        if not isinstance(other, SourceMap):
            return NotImplemented
        names = ("starts", "source_starts", "source_ends")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)
