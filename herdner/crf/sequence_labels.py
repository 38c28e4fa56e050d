"""Labels of sequences as indices, with partial annotation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Int32s, Int64s
from herdner.base.messages import format_count, number_advice
from herdner.crf.weights import MOST_TAGS


@dataclass(frozen=True, eq=False)
class EncodedLabels:
    """Labels of the items of sequences, encoded as integers.

    Attributes:
        labels: The K labels.
        states: int32[n], label of each item, or -1 if it may have several.
        allowed: uint8[n, K], 1 for the labels that an item may have.
    """

    labels: tuple[str, ...]
    states: Int32s
    allowed: NDArray[np.uint8]


def encode_labels(y: Iterable[Any], offsets: Int64s, first_labels: Sequence[str] = ()) -> EncodedLabels:
    """Convert the labels of sequences to indices; labels are numbered in the order of their first occurrence.

    Args:
        y: Labels of each sequence: a string for each item, a set of strings for a partial annotation, or None for an
            unknown label.
        offsets: int64[S + 1], first item of each sequence, and the number of items.
        first_labels: Labels that get the first indices.

    Returns:
        The K distinct labels, the index of each item's label, and the labels that each item may have.

    Raises:
        TypeError: A label is neither a string, a set of strings nor None.
        ValueError: ``y`` does not fit the sequences, or there are no or more than 256 labels.
    """
    sequences = iterable_as_list(y, "`y` must be a list of lists of labels")
    check_lengths(offsets[1:], sequences)
    index = {label: k for k, label in enumerate(first_labels)}
    states: list[int] = []
    partial: dict[int, list[int] | None] = {}
    for s, (sequence, n_items) in enumerate(zip(sequences, np.diff(offsets).tolist(), strict=True)):
        if isinstance(sequence, str):
            raise TypeError(f"`y` must be a list of lists of labels, got the string {sequence!r:.60} at index {s}")
        begin = len(states)
        sequence = iterable_as_list(sequence, f"sequence {s} of `y` must be a list of labels")
        try:
            states.extend(map(index.__getitem__, sequence))
        except (KeyError, TypeError):  # new or partial labels
            del states[begin:]
            for label in sequence:
                if isinstance(label, str):
                    states.append(index.setdefault(label, len(index)))
                else:
                    partial[len(states)] = _options(label, index)
                    states.append(-1)
        if len(states) - begin != n_items:
            counts = format_count(n_items, "item"), format_count(len(states) - begin, "label")
            raise ValueError(f"sequence {s} must have a label for each item, got {' and '.join(counts)}")
    if not 1 <= len(index) <= MOST_TAGS:
        raise ValueError(f"there must be 1 to {MOST_TAGS} labels, got {len(index)}")
    allowed = np.zeros((len(states), len(index)), np.uint8)
    numbers = np.array(states, np.int32)
    single = np.flatnonzero(numbers >= 0)
    allowed[single, numbers[single]] = 1
    for item, options in partial.items():
        allowed[item, slice(None) if options is None else options] = 1
        if options is not None and len(options) == 1:
            numbers[item] = options[0]
    return EncodedLabels(tuple(str(label) for label in index), numbers, allowed)


def check_lengths(sequences: Sized, values: Sized, name: str = "y") -> None:
    """Raise `ValueError` unless there is one value for each sequence.

    Args:
        sequences: Sequences.
        values: Values of the sequences, such as their labels.
        name: Name of the argument that contains the values.

    Raises:
        ValueError: The lengths differ.
    """
    if len(values) != len(sequences):
        raise ValueError(f"`X` and `{name}` must have equal lengths, got {len(sequences)} and {len(values)}")


def iterable_as_list(values: Any, requirement: str) -> list[Any]:
    """Convert an iterable to a list; raise `TypeError` for other values.

    Args:
        values: The iterable; a list is returned as it is.
        requirement: Beginning of the error message.

    Returns:
        The values as a list.

    Raises:
        TypeError: ``values`` is not iterable.
    """
    if not isinstance(values, Iterable) and not hasattr(values, "__getitem__"):
        raise TypeError(f"{requirement}, got {values!r:.60}")
    return cast("list[Any]", values) if isinstance(values, list) else list(cast("Iterable[Any]", values))


def _options(label: object, index: dict[str, int]) -> list[int] | None:
    """Return the indices of the labels that a partial annotation allows; return None if it allows all labels."""
    if label is None:
        return None
    if not isinstance(label, set | frozenset | list | tuple) or not all(isinstance(each, str) for each in label):  # pyright: ignore[reportUnknownVariableType]
        advice = number_advice(cast("object", label))
        raise TypeError(f"a label must be a string, a set of strings or None, got {label!r:.60}{advice}")
    if not label:
        raise ValueError("a set of labels must not be empty; use None for an unknown label")
    return [index.setdefault(each, len(index)) for each in sorted(label)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


class Labellings(np.ndarray):
    """One-dimensional array with one list per sequence: the labels, or the label probabilities, of its items.

    ``==`` compares like the array that ``sklearn_crfsuite.CRF.predict`` returns, which has two dimensions if all
    sequences have equal lengths.
    """

    @staticmethod
    def of(sequences: Sequence[list[Any]]) -> Labellings:
        """Return a one-dimensional array whose elements are the lists of the sequences.

        Args:
            sequences: List of each sequence.
        """
        return np.fromiter(sequences, dtype=object, count=len(sequences)).view(Labellings)

    def __eq__(self, other: object) -> Any:
        """Compare with other sequences; return an array of booleans as NumPy does, one per label or sequence."""
        return _as_table(self) == _as_table(other)

    def __ne__(self, other: object) -> Any:
        """Negate ``==``."""
        return _as_table(self) != _as_table(other)


def _as_table(sequences: object) -> NDArray[Any]:
    """Return sequences as an object array, which has two dimensions if all sequences have equal lengths."""
    return np.array(sequences.tolist() if isinstance(sequences, Labellings) else sequences, dtype=object)


def decode_states(states: Int32s, offsets: Int64s, labels: Sequence[str]) -> list[list[str]]:
    """Convert indices of labels to one list of labels for each sequence.

    Args:
        states: int32[n], index of the label of each item.
        offsets: int64[S + 1], first item of each sequence, and n.
        labels: The K labels.

    Returns:
        For each sequence, the label of each item.
    """
    indices: list[int] = states.tolist()
    names = [labels[k] for k in indices]
    return [names[begin:end] for begin, end in pairwise(offsets.tolist())]
