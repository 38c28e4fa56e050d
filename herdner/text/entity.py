"""A name in a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entity:
    """A labelled span of a document's text; ``text == document.text[start:end]``, offsets count characters."""

    start: int
    end: int
    label: str
    text: str
    confidence: float | None = None


class WithEntities(Protocol):
    """A text and the names in it, as a `Document` has them."""

    @property
    def id(self) -> str | None: ...

    @property
    def text(self) -> str: ...

    @property
    def entities(self) -> tuple[Entity, ...]: ...
