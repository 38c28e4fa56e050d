"""Partial annotation: tokens with several possible tags, and labels that were not annotated."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from herdner.text.tags import split_tag

ANY_TAG = "?"


class UnannotatedRange(NamedTuple):
    """Character range of a document in which the tags of tokens are undecided.

    Attributes:
        start: Offset of the first character.
        end: Offset behind the last character. The range covers every token that shares a character with it.
        tags: The possible tags: ``"?"`` for any tag, ``"PER|ORG"`` for any tag inside a name with one of these
            labels, ``"B-PER|O"`` for exactly these tags.
    """

    start: int
    end: int
    tags: str


@dataclass(frozen=True, slots=True)
class PartialAnnotation:
    """Description of the parts of a document that its annotators left undecided.

    Attributes:
        unannotated: Ranges of undecided tokens; they share no character with the document's entities.
        annotated_labels: Labels of which all entities are annotated. A token outside these entities may belong to an
            entity with any other label. None: all labels.

    Raises:
        ValueError: The tags of a range cannot be parsed, or a label is listed twice.
    """

    unannotated: tuple[UnannotatedRange, ...] = ()
    annotated_labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check the possible tags of each range, and check that no annotated label is listed twice."""
        for tags in dict.fromkeys(each.tags for each in self.unannotated):
            alternatives(tags)
        counts = Counter(self.annotated_labels or ())
        if duplicates := sorted(label for label, count in counts.items() if count > 1):
            raise ValueError(f"the annotated labels contain {duplicates[0]} twice; list each label once")

    def conflict(self, entities: Iterable[tuple[int, int, str]]) -> str | None:
        """Return an error message for the first entity that contradicts this partial annotation; None if none does.

        Args:
            entities: Start, end and label of each entity.

        Returns:
            An error message, or None if there is no conflict.
        """
        labels = None if self.annotated_labels is None else set(self.annotated_labels)
        ranges = sorted(self.unannotated)
        starts = [each.start for each in ranges]
        last_ends = list(accumulate((each.end for each in ranges), max))
        for start, end, label in entities:
            if labels is not None and label not in labels:
                return f"the entity at {start}..{end} is a {label}, which is not among the annotated labels"
            n_before = bisect_left(starts, end)
            if n_before and last_ends[n_before - 1] > start:
                return f"the entity at {start}..{end} overlaps an unannotated range"
        return None


def is_ambiguous(tag: str) -> bool:
    """Return whether a tag from a file stands for several possible tags, as ``"?"`` and ``"PER|ORG"`` do.

    Args:
        tag: A tag of a file.
    """
    return tag == ANY_TAG or "|" in tag


def alternatives(tags: str) -> tuple[tuple[str, str], ...] | None:
    """Parse a string of possible tags of a token, such as ``"B-PER|O"``.

    Args:
        tags: For example ``"?"``, ``"PER|ORG"`` or ``"B-PER|O"``.

    Returns:
        Prefix and label of each possible tag. The prefix ``""`` stands for any prefix inside a name; ``("O", "")`` is
        the tag O. None: any tag is possible.

    Raises:
        ValueError: ``tags`` has another form.
    """
    if tags == ANY_TAG:
        return None
    parsed: list[tuple[str, str]] = []
    for choice in tags.split("|"):
        try:
            parsed.append(split_tag(choice))
        except ValueError:
            if not choice or choice == ANY_TAG or " ".join(choice.split()) != choice:
                raise ValueError(
                    f"cannot read {tags!r} as tags; expected ? for any tag, or labels or tags as in PER|ORG and B-PER|O"
                ) from None
            parsed.append(("", choice))
    return tuple(parsed)


def change_alternatives(tags: str, change: Callable[[str, str], tuple[str, str]]) -> str:
    """Change each tag in a string of possible tags; duplicates are removed, and ``"?"`` stays unchanged.

    Args:
        tags: Possible tags, separated by ``|``, or ``"?"``.
        change: Function that converts the prefix and the label of a tag, as in `alternatives`, to new ones.

    Returns:
        The new tags, separated by ``|``, or ``"?"``.
    """
    parsed = alternatives(tags)
    if parsed is None:
        return ANY_TAG
    changed = ["-".join(filter(None, change(prefix, label))) for prefix, label in parsed]
    return "|".join(dict.fromkeys(changed))


def without_prefixes(tags: str) -> str:
    """Replace each tag but O, in a string of possible tags, by its label: ``"B-PER|O"`` becomes ``"PER|O"``.

    Args:
        tags: Possible tags, separated by ``|``, or ``"?"``.

    Returns:
        The labels, separated by ``|``, or ``"?"``.
    """
    return change_alternatives(tags, lambda prefix, label: (prefix if prefix == "O" else "", label))
