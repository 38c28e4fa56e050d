"""Is the short form of a name right where the long one came before ("Winam" after "Winam Ferries Ltd.")?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from herdner.evaluation.scores import pair_up
from herdner.text.document import Document
from herdner.text.tags import Span

KEPT_WORD: Mapping[str, int] = {"ORG": 0, "PER": -1}
"""Which word of a longer name its short form keeps, by label: organisations the first, persons the last."""


@dataclass(frozen=True, slots=True)
class ShortForms:
    """How many short forms of a label the gold documents hold, and how many of them were predicted exactly."""

    label: str
    n: int
    n_right: int

    @property
    def share_right(self) -> float:
        """In [0, 1], 0 where there is no short form."""
        return self.n_right / max(1, self.n)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "share_right": self.share_right}


def count_short_forms(
    gold: Sequence[Document], predicted: Sequence[Document], kept_word: Mapping[str, int] = KEPT_WORD
) -> dict[str, ShortForms]:
    """By label: the short forms in the gold documents, and how many are predicted with both borders and the label.

    The documents have the same tokens and order; predicted tags are read as by `herdner.evaluation.scores.evaluate`.
    """
    n, n_right = dict.fromkeys(kept_word, 0), dict.fromkeys(kept_word, 0)
    for document, pair in zip(gold, pair_up(gold, predicted), strict=True):
        found = set(pair.predicted)
        for span in short_forms(document, kept_word):
            n[span.label] += 1
            n_right[span.label] += span in found
    return {label: ShortForms(label, n[label], n_right[label]) for label in kept_word}


def short_forms(document: Document, kept_word: Mapping[str, int] = KEPT_WORD) -> Iterator[Span]:
    """The mentions of one word that a longer name of the same label, earlier in the document, begins or ends with.

    Words are parted by white space, so that "Coca-Cola" is one; upper and lower case differ.
    """
    kept: set[tuple[str, str]] = set()
    for span in document.spans or []:
        if span.label not in kept_word:
            continue
        words = document.text[document.token_starts[span.start] : document.token_ends[span.end - 1]].split()
        if len(words) > 1:
            kept.add((span.label, words[kept_word[span.label]]))
        elif (span.label, words[0]) in kept:
            yield span
