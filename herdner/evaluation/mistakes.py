"""What a tagger gets wrong: gold and predicted spans matched, confusion of classes, the most frequent mistakes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from herdner.evaluation.scores import pair_up
from herdner.text.document import Document
from herdner.text.tags import Span

Kind = Literal["right", "label", "borders", "label and borders", "missed", "spurious"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Match(NamedTuple):
    """A gold span and the predicted one that stands for it; None where there is none."""

    gold: Span | None
    predicted: Span | None

    @property
    def kind(self) -> Kind:
        """What is wrong, if anything."""
        if self.gold is None:
            return "spurious"
        if self.predicted is None:
            return "missed"
        same_borders = self.gold[:2] == self.predicted[:2]
        if self.gold.label == self.predicted.label:
            return "right" if same_borders else "borders"
        return "label" if same_borders else "label and borders"


class Found(NamedTuple):
    """A match and the document, by its number, that it stands in."""

    document: int
    match: Match


def match_spans(gold: Sequence[Span], predicted: Sequence[Span]) -> list[Match]:
    """Each span in exactly one match, in the order of the text. Both sides are disjoint and sorted.

    Spans that share tokens are matched one to one: equal borders first, then the same label, then the most shared
    tokens, then the earliest. What is left is missed or spurious, even where it overlaps a span that is matched.
    """
    candidates: list[tuple[bool, bool, int, int, int]] = []
    for i, j in _overlaps(gold, predicted):
        right, guess = gold[i], predicted[j]
        shared = min(right.end, guess.end) - max(right.start, guess.start)
        candidates.append((right[:2] != guess[:2], right.label != guess.label, -shared, i, j))
    of_gold: dict[int, int] = {}
    taken: set[int] = set()
    for *_, i, j in sorted(candidates):
        if i not in of_gold and j not in taken:
            of_gold[i] = j
            taken.add(j)
    matches = [Match(span, predicted[of_gold[i]] if i in of_gold else None) for i, span in enumerate(gold)]
    matches += [Match(None, span) for j, span in enumerate(predicted) if j not in taken]
    return sorted(matches, key=lambda match: match.gold or match.predicted or ())


def _overlaps(gold: Sequence[Span], predicted: Sequence[Span]) -> Iterable[tuple[int, int]]:
    """Which spans share tokens, by one walk along both."""
    i = j = 0
    while i < len(gold) and j < len(predicted):
        if gold[i].start < predicted[j].end and predicted[j].start < gold[i].end:
            yield i, j
        if gold[i].end <= predicted[j].end:
            i += 1
        else:
            j += 1


def match_documents(gold: Sequence[Document], predicted: Sequence[Document]) -> list[Found]:
    """All matches of the documents, read as `evaluate` reads them.

    Raises:
        ValueError: Documents do not match.
    """
    pairs = pair_up(gold, predicted)
    return [Found(i, match) for i, pair in enumerate(pairs) for match in match_spans(pair.gold, pair.predicted)]


def mended(before: Iterable[Found], after: Iterable[Found]) -> list[Found]:
    """The mistakes of one prediction that another one of the same documents does not make.

    A gold entity that was missed or found wrongly is right in the other; a spurious one is not there.
    """
    right: set[tuple[int, Span | None]] = set()
    claimed: set[tuple[int, Span | None]] = set()
    for number, match in after:
        claimed.add((number, match.predicted))
        if match.kind == "right":
            right.add((number, match.gold))
    return [
        Found(number, match)
        for number, match in before
        if match.kind != "right"
        and ((number, match.gold) in right if match.gold else (number, match.predicted) not in claimed)
    ]


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often a gold label was predicted as which label, by entities.

    Attributes:
        labels: L labels of either side, sorted.
        same_borders: int64[L + 1, L + 1]: gold label by predicted label, of matches with equal borders; the last row
            counts spurious entities, the last column missed ones.
        other_borders: int64[L, L]: the same for entities that overlap, but with other borders.
    """

    labels: tuple[str, ...]
    same_borders: NDArray[np.int64]
    other_borders: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """int64[L + 1, L + 1]: whatever the borders."""
        total = np.array(self.same_borders)
        total[:-1, :-1] += self.other_borders
        return total

    def kinds(self) -> dict[Kind, int]:
        """How many matches there are of each kind."""
        same, other = self.same_borders, self.other_borders
        right, moved = int(np.trace(same[:-1, :-1])), int(np.trace(other))
        figures = (right, int(same[:-1, :-1].sum()) - right, moved, int(other.sum()) - moved)
        return dict(zip(KINDS, (*figures, int(same[:, -1].sum()), int(same[-1].sum())), strict=True))

    def to_dict(self) -> dict[str, Any]:
        return {
            "labels": list(self.labels),
            "same_borders": self.same_borders.tolist(),
            "other_borders": self.other_borders.tolist(),
            "kinds": self.kinds(),
        }


def confusion(found: Iterable[Found]) -> Confusion:
    """Counts the matches of `match_documents`."""
    matches = [match for _, match in found]
    labels = tuple(sorted({span.label for match in matches for span in match if span is not None}))
    index = {label: i for i, label in enumerate(labels)}
    n = len(labels)
    same, other = np.zeros((n + 1, n + 1), np.int64), np.zeros((n, n), np.int64)
    for match in matches:
        i = n if match.gold is None else index[match.gold.label]
        j = n if match.predicted is None else index[match.predicted.label]
        (other if "borders" in match.kind else same)[i, j] += 1
    return Confusion(labels, same, other)


@dataclass(frozen=True, slots=True)
class Example:
    """One place of a mistake: the text around it, and its two readings in it; offsets count characters of ``text``."""

    document: str | None  # its id
    text: str
    gold: tuple[int, int] | None
    predicted: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class FrequentMistake:
    """A mistake that happens ``count`` times, in ``n_documents`` documents: the same texts, the same labels."""

    kind: Kind
    gold_text: str | None
    gold_label: str | None
    predicted_text: str | None
    predicted_label: str | None
    count: int
    n_documents: int
    examples: tuple[Example, ...]


def frequent_mistakes(
    found: Iterable[Found],
    documents: Sequence[Document],
    *,
    n: int | None = 20,
    n_examples: int = 3,
    n_context: int = 45,
) -> list[FrequentMistake]:
    """The ``n`` most frequent mistakes of `match_documents` (None: all); equally frequent ones in the text's order.

    Mistakes are one where kind, labels and texts (white space apart) are equal. Examples come from different documents
    as long as there are any, with ``n_context`` characters on both sides.
    """
    groups: dict[tuple[str | None, ...], list[Found]] = defaultdict(list)
    for error in found:
        if error.match.kind != "right":
            groups[_key(documents[error.document], error.match)].append(error)
    largest = sorted(groups.items(), key=lambda group: -len(group[1]))[:n]
    return [_frequent(key, errors, documents, n_examples, n_context) for key, errors in largest]


def _key(document: Document, match: Match) -> tuple[str | None, ...]:
    parts: list[str | None] = [match.kind]
    for span in match:
        parts += [None, None] if span is None else [span_text(document, span), span.label]
    return tuple(parts)


def span_text(document: Document, span: Span) -> str:
    """The text of a span with single spaces for its white space."""
    return " ".join(document.text[document.token_starts[span.start] : document.token_ends[span.end - 1]].split())


def _frequent(
    key: tuple[Any, ...], errors: Sequence[Found], documents: Sequence[Document], n_examples: int, n_context: int
) -> FrequentMistake:
    first = {error.document: error for error in reversed(errors)}
    chosen = [first[number] for number in sorted(first)]
    chosen += [error for error in errors if first[error.document] is not error]
    examples = tuple(_example(documents[e.document], e.match, n_context) for e in chosen[:n_examples])
    kind, gold_text, gold_label, predicted_text, predicted_label = key
    return FrequentMistake(
        kind, gold_text, gold_label, predicted_text, predicted_label, len(errors), len(first), examples
    )


def _example(document: Document, match: Match, n_context: int) -> Example:
    places = [_characters(document, span) for span in match]
    known = [place for place in places if place is not None]
    begin = max(0, min(start for start, _ in known) - n_context)
    end = min(len(document.text), max(end for _, end in known) + n_context)
    gold, predicted = (None if place is None else (place[0] - begin, place[1] - begin) for place in places)
    return Example(document.id, document.text[begin:end], gold, predicted)


def _characters(document: Document, span: Span | None) -> tuple[int, int] | None:
    if span is None:
        return None
    return int(document.token_starts[span.start]), int(document.token_ends[span.end - 1])
