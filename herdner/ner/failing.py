"""Documents that fail are reported and the rest goes on: what every command that tags many documents has in common."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from herdner.text.document import Document
from herdner.text.failure import Failure

if TYPE_CHECKING:
    from herdner.ner.tagger import Tagger


class _Handed(Iterator[Document]):
    """Documents handed out up to the next failure, counted."""

    def __init__(self, items: Iterable[Document | Failure], first: int) -> None:
        self.items, self.count = iter(items), first
        self.failure: Failure | None = None

    def __next__(self) -> Document:
        item = next(self.items)
        self.count += 1
        if isinstance(item, Failure):
            self.failure = item
            raise StopIteration
        return item


class Work(NamedTuple):
    """What tagging needs, in this process or in another: ``inference`` holds the backend and its options, as
    `Tagger.pipe` takes them.
    """

    tagger: Tagger
    inference: dict[str, Any]
    seed: int

    def results(self, items: Iterable[Document | Failure], first: int) -> Iterator[Document | Failure]:
        """Tags the documents, the first of which is number ``first`` of all; goes on behind one that fails."""
        handed = _Handed(items, first)
        failed: deque[Failure] = deque()
        while True:
            pipe = self.tagger.pipe(
                handed, seed=self.seed, first=handed.count, on_error=failed.append, **self.inference
            )
            for document in chain(pipe, [None]):
                while failed:
                    yield failed.popleft()
                if document is not None:
                    yield document
            if handed.failure is None:
                return
            yield handed.failure
            handed.failure = None
