"""Warnings about dubious input and inexact output, collected for each file and logged once."""

from __future__ import annotations

import logging
from types import TracebackType

from herdner.text.io.source import FormatError

logger = logging.getLogger(__name__)


class ParseWarnings:
    """Context manager that collects the warnings about one file and logs each distinct message once on exit.

    A logged message names the position of its first occurrence and the number of occurrences.

    Args:
        name: Name of the file, for messages.
        strict: Raise a `FormatError` at the first warning.
    """

    def __init__(self, name: str, strict: bool) -> None:
        """Create an empty collector of warnings about the file ``name``."""
        self.name, self.strict = name, strict
        self.first_and_count: dict[str, tuple[str, int]] = {}  # by message

    def add(self, message: str, line: int | None = None, document: int | None = None, times: int = 1) -> None:
        """Record a warning about the file that is read; in strict mode, raise the warning as an error instead.

        Args:
            message: The problem and its resolution.
            line: Number of the line, from 1.
            document: Number of the document, from 1.
            times: Number of occurrences.

        Raises:
            FormatError: The reader is in strict mode.
        """
        position = self.name if line is None else f"{self.name}:{line}"
        position += "" if document is None else f": document {document}"
        if self.strict:
            raise FormatError(f"{position}: {message}; this is an error in strict mode")
        first, count = self.first_and_count.get(message, (position, 0))
        self.first_and_count[message] = first, count + times

    def __enter__(self) -> ParseWarnings:
        """Return this collector of warnings, for the ``with`` statement."""
        return self

    def __exit__(
        self, type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Log the collected warnings at the end of the ``with`` block."""
        for message, (first, count) in self.first_and_count.items():
            logger.warning("%s: %s%s", first, message, f", {count} in all" if count > 1 else "")
