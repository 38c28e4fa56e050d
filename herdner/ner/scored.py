"""Tokens with scores that somebody else's tagger gave them, checked."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner.text.tags import Scheme, SentenceOffsets, convert_tags, split_tag

ScoreKind = Literal["log-potentials", "marginals"]
FLOOR = 1e-10  # probabilities below count as this: a tagger that is wrong and certain can still be overruled
LARGEST = 1e100  # of log-potentials: further apart is as good as forbidden, and no sum leaves the range of a double
SUM_TOLERANCE = 0.01  # of the probabilities of a token, which may be half-precision numbers


class Scored(NamedTuple):
    """One document: ``unary`` float64[tokens, labels], log-potentials with 0 as the largest of each token; its tokens;
    sentence s, never empty, holds the tokens ``sentence_offsets[s]:sentence_offsets[s + 1]``.
    """

    unary: NDArray[np.float64]
    tokens: list[str]
    sentence_offsets: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        tokens: Sequence[str],
        sentence_offsets: SentenceOffsets | None,
        n_labels: int,
        kind: ScoreKind,
    ) -> Scored:
        """The document that was given, or one ValueError, in one line, that says what is wrong with it."""
        if isinstance(tokens, str | bytes):
            raise ValueError(f"tokens must be a list of strings, not one {type(tokens).__name__}")
        tokens = list(tokens)
        for t, token in enumerate(cast(Sequence[object], tokens)):
            if not isinstance(token, str):
                raise ValueError(f"token {t} must be a string, not {type(token).__name__}; of a spaCy token give .text")
        array = _numbers(scores, len(tokens), n_labels)
        unary = _log_potentials(array, tokens, kind)
        return cls(unary, tokens, checked_offsets(sentence_offsets, len(tokens)))


@contextmanager
def named(what: str) -> Generator[None]:
    """A ValueError says what it is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def checked_kind(kind: str) -> ScoreKind:
    """What scores are; ValueError for an unknown kind."""
    for known in get_args(ScoreKind):
        if kind == known:
            return known
    raise ValueError(f"scores must be one of {', '.join(get_args(ScoreKind))}, not {kind!r}")


def checked_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels of the columns; ValueError where they are not distinct strings."""
    if isinstance(labels, str):
        raise ValueError(f"labels must be a list of strings, one for each column of scores, not {labels!r:.80}")
    labels = tuple(labels)
    if not labels:
        raise ValueError("labels must name the columns of scores, one label at least")
    for label in cast(Sequence[object], labels):
        if not isinstance(label, str) or not label:
            raise ValueError(f"labels must be strings that are not empty, not {label!r:.80}")
    twice = next((label for k, label in enumerate(labels) if label in labels[:k]), None)
    if twice is not None:
        raise ValueError(f"label {twice!r} stands twice in labels; each column of scores has a label of its own")
    return labels


def scheme_of(labels: Sequence[str]) -> Scheme:
    """The tag scheme that a set of tags can only be of: E and S mean IOBES, L and U BILOU, B IOB2. I alone is IOB1,
    where every sequence is well formed. ValueError for labels that are no tags.
    """
    for label in labels:
        if not is_tag(label):
            raise ValueError(
                f"label {label!r} is not a tag such as O or B-PER; leave its column out, or give constrained=False"
            )
    prefixes = {label[0] for label in labels}
    if prefixes & {"E", "S"}:
        return "iobes"
    if prefixes & {"L", "U"}:
        return "bilou"
    return "iob2" if "B" in prefixes else "iob1"


def is_tag(label: str) -> bool:
    """Whether a label is a tag of some scheme."""
    try:
        split_tag(label)
    except ValueError:
        return False
    return True


def as_tags(labels: Sequence[str]) -> list[str]:
    """The labels as tags from which spans can be read: plain ones are the insides of spans, but for O."""
    if all(map(is_tag, labels)):
        return list(labels)
    return [label if label == "O" else f"I-{label}" for label in labels]


def finite(name: str, value: Any, default: Any = None) -> float:
    """The number, or the default in place of None; ValueError where it is not finite."""
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise ValueError(f"{name} must be a finite number of at most {LARGEST:g}, not {value!r:.80}")
    return value


def transition_table(transition: ArrayLike | None, n_labels: int) -> NDArray[np.float64]:
    """The checked table, float64[K, K]; None is 0."""
    if transition is None:
        return np.zeros((n_labels, n_labels))
    try:
        table = np.array(transition, np.float64)
    except (ValueError, TypeError):
        raise ValueError("transition must be an array of numbers [labels, labels]") from None
    if table.shape != (n_labels, n_labels):
        raise ValueError(f"transition must have shape [{n_labels}, {n_labels}], as there are {n_labels} labels")
    if not ((np.abs(table) <= LARGEST) | (table == -np.inf)).all():
        raise ValueError(f"transition holds NaN, +inf or more than {LARGEST:g}; log-potentials are finite or -inf")
    return table


def among(labels: tuple[str, ...], tags: Sequence[str], document: Scored, scheme: Scheme | None) -> list[str]:
    """Right tags, converted to the scheme of the labels; ValueError where one is not among them."""
    if isinstance(tags, str) or len(tags) != len(document.tokens):
        raise ValueError(f"{len(document.tokens)} tokens but {len(tags)} tags")
    tags = list(tags) if scheme is None else convert_tags(tags, None, scheme, document.sentence_offsets)
    if scheme == "iob1" and not any(label[0] == "B" for label in labels):  # IO: names that touch are one
        tags = [tag.replace("B-", "I-", 1) if tag[0] == "B" else tag for tag in tags]
    missing = next((t for t, tag in enumerate(tags) if tag not in labels), None)
    if missing is not None:
        raise ValueError(f"the tag of token {missing}, {tags[missing]!r:.80}, is not among the labels")
    return tags


def _numbers(scores: ArrayLike, n_tokens: int, n_labels: int) -> NDArray[np.float64]:
    """A copy of ``scores`` as float64[tokens, labels]."""
    try:
        array = np.asarray(scores)
    except (ValueError, TypeError, RuntimeError):  # ragged lists; tensors that keep gradients or live elsewhere
        raise ValueError("scores must be an array of numbers [tokens, labels]") from None
    if not n_tokens and not array.size:
        return np.empty((0, n_labels))
    if array.dtype.kind not in "fiu":
        raise ValueError(f"scores must be an array of numbers [tokens, labels], not of {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"scores must have shape [tokens, labels], those of one document, not {array.shape}")
    if len(array) != n_tokens:
        raise ValueError(f"scores have {len(array)} rows but there are {n_tokens} tokens")
    if array.shape[1] != n_labels:
        raise ValueError(f"scores have {array.shape[1]} columns but there are {n_labels} labels")
    return np.array(array, np.float64, order="C")


def _log_potentials(array: NDArray[np.float64], tokens: Sequence[str], kind: ScoreKind) -> NDArray[np.float64]:
    """Checked scores, as log-potentials, less the largest of each token, so that no sum of them can overflow."""
    if not len(array):
        return array
    wrong = ~(array < np.inf).all(axis=1)
    if wrong.any():
        raise ValueError(f"scores of {_first(wrong, tokens)} hold NaN or +inf; they must be finite, or -inf to forbid")
    if kind == "marginals":
        wrong = ~((array >= 0) & (array <= 1 + SUM_TOLERANCE)).all(axis=1)
        if wrong.any():
            raise ValueError(
                f"marginals of {_first(wrong, tokens)} are not between 0 and 1; for logits give scores='log-potentials'"
            )
        wrong = np.abs(array.sum(axis=1) - 1) > SUM_TOLERANCE
        if wrong.any():
            total = array[wrong][0].sum()
            raise ValueError(f"marginals of {_first(wrong, tokens)} must add up to 1, not to {total:.4g}")
        array = np.log(np.maximum(array, FLOOR))
    top = array.max(axis=1, keepdims=True)
    wrong = top[:, 0] == -np.inf
    if wrong.any():
        raise ValueError(f"scores of {_first(wrong, tokens)} are all -inf; allow one label at least")
    with np.errstate(over="ignore"):
        array = array - top
    array[array < -LARGEST] = -np.inf
    return array


def _first(wrong: Any, tokens: Sequence[str]) -> str:
    """The first of the tokens that something is wrong with."""
    t = int(np.argmax(wrong))
    return f"token {t} ({tokens[t]!r:.40})"


def checked_offsets(sentence_offsets: SentenceOffsets | None, n_tokens: int) -> NDArray[np.int64]:
    """Checked offsets; one sentence where there are none."""
    if sentence_offsets is None:
        return np.array([0, n_tokens] if n_tokens else [0], np.int64)
    offsets = np.asarray(sentence_offsets)
    sound = offsets.ndim == 1 and offsets.dtype.kind in "iu" and len(offsets) and offsets[0] == 0
    if sound and not n_tokens and not offsets.any():
        return np.zeros(1, np.int64)
    if not sound or offsets[-1] != n_tokens or not (np.diff(offsets.astype(np.int64)) > 0).all():
        raise ValueError(
            f"sentence_offsets must rise from 0 to the number of tokens, {n_tokens}: where each sentence begins, and"
            " the end; leave empty sentences out"
        )
    return offsets.astype(np.int64)
