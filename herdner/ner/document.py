"""Documents and entities: the values that flow through the tagger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Entity:
    """A labelled span of a document's text; ``text == document.text[start:end]``, offsets count characters."""

    start: int
    end: int
    label: str
    text: str
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its tokens and sentences; ``tags`` or ``entities`` where they are known.

    ``text`` is the input, untouched. Token t is ``text[token_starts[t]:token_ends[t]]`` (white space is never a token)
    and equals ``tokens[t]``. Sentence s holds the tokens ``sentence_offsets[s]:sentence_offsets[s + 1]``; no sentence
    is empty.
    """

    text: str
    tokens: Sequence[str]
    token_starts: NDArray[np.int64]
    token_ends: NDArray[np.int64]
    sentence_offsets: NDArray[np.int64]
    tags: Sequence[str] | None = None
    entities: tuple[Entity, ...] = ()
    id: str | None = None
    fields: dict[str, object] = field(default_factory=dict)
