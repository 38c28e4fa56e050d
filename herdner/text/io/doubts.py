"""What a file leaves in doubt although one reading is clear: read so, counted and told once, or refused."""

from __future__ import annotations

import logging
from types import TracebackType

from herdner.text.io.source import FormatError

logger = logging.getLogger(__name__)


class Doubts:
    """The doubts about one file. When the block ends, each kind is told in one warning, with the place of the first and
    their number. With ``strict`` the first of all is a FormatError.
    """

    def __init__(self, name: str, strict: bool) -> None:
        self.name, self.strict = name, strict
        self.found: dict[str, tuple[str, int]] = {}  # each kind: the place of the first, how many

    def add(self, what: str, line: int | None = None, document: int | None = None, times: int = 1) -> None:
        """One more of a kind, on a line or in a document, counted from 1. FormatError where that is refused."""
        place = self.name if line is None else f"{self.name}:{line}"
        place += "" if document is None else f": document {document}"
        if self.strict:
            raise FormatError(f"{place}: {what}; refused, as reading is strict")
        first, count = self.found.get(what, (place, 0))
        self.found[what] = first, count + times

    def __enter__(self) -> Doubts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for what, (place, count) in self.found.items():
            logger.warning("%s: %s%s", place, what, f", {count} in all" if count > 1 else "")
