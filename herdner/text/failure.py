"""What becomes of a document that cannot be read or tagged, where the rest goes on."""

from __future__ import annotations

from typing import NamedTuple

from herdner.text.document import Document


class Failure(NamedTuple):
    """A document that could not be read or tagged. Where documents are numbered, it counts as one.

    Attributes:
        error: What was raised.
        number: Its number among all, once it had been read.
        source: Itself, once it had been read.
        breaks_off: The reader gave up in the middle of a file, so that nobody knows what else there was.
    """

    error: Exception
    number: int | None = None
    source: str | Document | None = None
    breaks_off: bool = False

    @property
    def message(self) -> str:
        """What went wrong, with the name of the document, in words for a user."""
        said = str(self.error) or type(self.error).__name__
        if self.number is None:  # the reader has named the place
            return said
        id = self.source.id if isinstance(self.source, Document) else None
        return f"{id or f'document {self.number + 1}'}: {said}"
