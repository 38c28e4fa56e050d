"""Checked documents with token scores from an external tagger."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int64s
from herdner.text.tags import Scheme, SentenceOffsets, convert_tags, split_tag

ScoreKind = Literal["log-potentials", "marginals"]
FLOOR = 1e-10  # smaller probabilities are raised to this, so that links can overrule a tagger that is certain but wrong
LARGEST = 1e100  # largest magnitude of log-potentials, so that sums cannot overflow; scores below -LARGEST become -inf
SUM_TOLERANCE = 0.01  # the probabilities of a token may be half-precision numbers, whose sum differs from 1


class ScoredDocument(NamedTuple):
    """Document with log-potentials for each token and tag.

    Attributes:
        unary: float64[tokens, tags], log-potentials; the largest of each token is 0.
        tokens: Tokens as they are written in the text.
        sentence_offsets: int64[S + 1]; sentence s has the tokens ``sentence_offsets[s]:sentence_offsets[s + 1]``. No
            sentence is empty.
    """

    unary: Floats
    tokens: list[str]
    sentence_offsets: Int64s

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        tokens: Sequence[str],
        sentence_offsets: SentenceOffsets | None,
        n_tags: int,
        kind: ScoreKind,
    ) -> ScoredDocument:
        """Check scores, tokens and sentence offsets, and build a scored document from them.

        Args:
            scores: [n, K], log-potentials or marginals of K tags for each of n tokens.
            tokens: The n tokens.
            sentence_offsets: int[S + 1], first token of each sentence, and n; None is a single sentence.
            n_tags: Number of tags, K.
            kind: Type of the scores.

        Returns:
            The scored document, with log-potentials.

        Raises:
            ValueError: An argument has the wrong type, shape or values.
        """
        if isinstance(tokens, str | bytes):
            raise ValueError(f"tokens must be a list of strings, got a value of type {type(tokens).__name__}")
        tokens = list(tokens)
        for t, token in enumerate(cast(Sequence[object], tokens)):
            if not isinstance(token, str):
                raise ValueError(
                    f"token {t} must be a string, got {type(token).__name__}; for a spaCy token pass its .text"
                )
        tokens = list(map(str.__str__, tokens))  # plain strings, which compiled code requires
        array = _as_float64(scores, len(tokens), n_tags)
        unary = _log_potentials(array, tokens, kind)
        return cls(unary, tokens, check_offsets(sentence_offsets, len(tokens)))


@contextmanager
def error_prefix(prefix: str) -> Generator[None]:
    """Put ``prefix`` before the message of any `ValueError` that the body of a ``with`` statement raises.

    Args:
        prefix: The text, without the colon that follows it.

    Raises:
        ValueError: The body of the ``with`` statement raises a `ValueError`.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{prefix}: {error}") from None


def check_kind(kind: str) -> ScoreKind:
    """Check that ``kind`` is "log-potentials" or "marginals", and return it.

    Args:
        kind: Type of the scores.

    Raises:
        ValueError: ``kind`` has another value.
    """
    if kind not in get_args(ScoreKind):
        raise ValueError(f"scores must be one of {', '.join(get_args(ScoreKind))}, got {kind!r}")
    return cast(ScoreKind, kind)


def check_tag_set(tags: Sequence[str]) -> tuple[str, ...]:
    """Check that the tags of the score columns are distinct non-empty strings, and return them as a tuple.

    Args:
        tags: The tags, or labels without prefixes.

    Raises:
        ValueError: There is no tag, a tag is not a non-empty string, or two tags are equal.
    """
    if isinstance(tags, str):
        raise ValueError(f"tags must be a list of strings, one for each column of scores, got {tags!r:.80}")
    tags = tuple(tags)
    if not tags:
        raise ValueError("tags must have at least one item, a tag for each column of scores")
    for tag in cast(Sequence[object], tags):
        if not isinstance(tag, str) or not tag:
            raise ValueError(f"tags must be non-empty strings, got {tag!r:.80}")
    duplicate = next((tag for k, tag in enumerate(tags) if tag in tags[:k]), None)
    if duplicate is not None:
        raise ValueError(f"tags must be distinct, got {duplicate!r} twice")
    return tags


def infer_scheme(tags: Sequence[str]) -> Scheme:
    """Infer the tag scheme, such as IOB2, from the tags of a model.

    Tags with E or S are IOBES, tags with L or U are BILOU, other tags with B are IOB2, and tags with only I are IOB1.

    Args:
        tags: Tags of the model.

    Returns:
        The tag scheme.

    Raises:
        ValueError: A string is not a tag.
    """
    for tag in tags:
        if not is_tag(tag):
            raise ValueError(
                f"{tag!r} is not a tag such as O or B-PER; remove it and its scores, or set constrained=False"
            )
    prefixes = {tag[0] for tag in tags}
    if prefixes & {"E", "S"}:
        return "iobes"
    if prefixes & {"L", "U"}:
        return "bilou"
    return "iob2" if "B" in prefixes else "iob1"


def is_tag(text: str) -> bool:
    """Return True if a string is a tag such as O or B-PER in any tag scheme.

    Args:
        text: The string.
    """
    try:
        split_tag(text)
    except ValueError:
        return False
    return True


def as_tags(labels: Sequence[str]) -> list[str]:
    """Convert labels to tags: a label other than O gets the prefix I-; tags stay unchanged.

    Args:
        labels: Labels or tags.

    Returns:
        A tag for each label.
    """
    if all(map(is_tag, labels)):
        return list(labels)
    return [label if label == "O" else f"I-{label}" for label in labels]


def check_finite(name: str, value: Any, default: Any = None) -> float:
    """Return ``value``, or ``default`` if ``value`` is None, after a check that it is a finite number.

    Args:
        name: Name of the value in the error message.
        value: A number, or None.
        default: Number that replaces None.

    Raises:
        ValueError: The result is not a number, or its absolute value is above `LARGEST`.
    """
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise ValueError(f"{name} must be a finite number from {-LARGEST:g} to {LARGEST:g}, got {value!r:.80}")
    return value


def check_transition(transition: ArrayLike | None, n_tags: int) -> Floats:
    """Check a transition table, and return it as float64[K, K].

    Args:
        transition: [K, K], log-potentials of adjacent tags, -inf or finite; None is a table of zeros.
        n_tags: Number of tags, K.

    Raises:
        ValueError: The table has another shape, or an invalid number.
    """
    if transition is None:
        return np.zeros((n_tags, n_tags))
    try:
        table = np.array(transition, np.float64, order="C")
    except (ValueError, TypeError):
        raise ValueError(
            f"transition must be an array of numbers [tags, tags], got {' '.join(repr(transition).split()):.80}"
        ) from None
    if table.shape != (n_tags, n_tags):
        raise ValueError(f"transition must have shape [{n_tags}, {n_tags}], got {list(table.shape)}")
    if not ((np.abs(table) <= LARGEST) | (table == -np.inf)).all():
        raise ValueError(
            f"transition must contain -inf or finite numbers from {-LARGEST:g} to {LARGEST:g}, got"
            f" {table.tolist()!s:.80}"
        )
    return table


def gold_tags(
    tag_set: tuple[str, ...], tags: Sequence[str], document: ScoredDocument, scheme: Scheme | None
) -> list[str]:
    """Convert gold tags to the tag scheme of the model.

    Args:
        tag_set: Tags of the model.
        tags: Gold tag of each token, in any scheme.
        document: Document with the tokens and sentences.
        scheme: Tag scheme of the model; None leaves the tags unchanged.

    Returns:
        A tag of the model for each token.

    Raises:
        ValueError: ``tags`` does not fit the tokens, or the model lacks a converted tag.
    """
    if isinstance(tags, str):
        raise ValueError(f"tags must be a list of strings, got {tags!r:.80}")
    if len(tags) != len(document.tokens):
        raise ValueError(f"tags must have one item for each of the {len(document.tokens)} tokens, got {len(tags)}")
    tags = list(tags) if scheme is None else convert_tags(tags, None, scheme, document.sentence_offsets)
    if scheme == "iob1" and not any(tag[0] == "B" for tag in tag_set):  # IO tags cannot separate adjacent entities
        tags = [tag.replace("B-", "I-", 1) if tag[0] == "B" else tag for tag in tags]
    missing = next((t for t, tag in enumerate(tags) if tag not in tag_set), None)
    if missing is not None:
        raise ValueError(f"the tag {tags[missing]!r:.80} of token {missing} is not among the model's tags; correct it")
    return tags


def _as_float64(scores: ArrayLike, n_tokens: int, n_tags: int) -> Floats:
    """Copy the scores of a document to a float64 array of shape [tokens, tags]."""
    try:
        array = np.asarray(scores)
    except (ValueError, TypeError, RuntimeError):  # ragged lists; tensors with gradients or on another device
        raise ValueError(
            f"scores must be an array of numbers [tokens, tags], got a {type(scores).__name__} that NumPy"
            " cannot convert"
        ) from None
    if not n_tokens and not array.size:
        return np.empty((0, n_tags))
    if array.dtype.kind not in "fiu":
        raise ValueError(f"scores must be an array of numbers [tokens, tags], got {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"scores of a document must have shape [tokens, tags], got {array.shape}")
    if array.shape != (n_tokens, n_tags):
        raise ValueError(
            f"scores must have {n_tokens} rows (tokens) and {n_tags} columns (tags), got shape {array.shape}"
        )
    return np.array(array, np.float64, order="C")


def _log_potentials(array: Floats, tokens: Sequence[str], kind: ScoreKind) -> Floats:
    """Convert the scores of a document to log-potentials whose largest value for each token is 0.

    Sums of such log-potentials cannot overflow. Raises `ValueError` if a score is invalid.
    """
    if not len(array):
        return array
    invalid = ~(array < np.inf).all(axis=1)
    if invalid.any():
        raise ValueError(
            f"scores of {_first(invalid, tokens)} must be finite, or -inf to forbid a tag, got"
            f" {array[invalid][0].tolist()!s:.80}"
        )
    if kind == "marginals":
        invalid = ~((array >= 0) & (array <= 1 + SUM_TOLERANCE)).all(axis=1)
        if invalid.any():
            raise ValueError(
                f"marginals of {_first(invalid, tokens)} must be between 0 and 1, got"
                f" {array[invalid][0].tolist()!s:.80}; for logits set scores='log-potentials'"
            )
        invalid = np.abs(array.sum(axis=1) - 1) > SUM_TOLERANCE
        if invalid.any():
            total = array[invalid][0].sum()
            raise ValueError(f"marginals of {_first(invalid, tokens)} must add up to 1, got {total:.4g}")
        array = np.log(np.maximum(array, FLOOR))
    top = array.max(axis=1, keepdims=True)
    invalid = top[:, 0] == -np.inf
    if invalid.any():
        raise ValueError(f"scores of {_first(invalid, tokens)} are all -inf; at least one tag must be allowed")
    with np.errstate(over="ignore"):
        array = array - top
    array[array < -LARGEST] = -np.inf
    return array


def _first(invalid: Any, tokens: Sequence[str]) -> str:
    t = int(np.argmax(invalid))
    return f"token {t} ({tokens[t]!r:.40})"


def check_offsets(sentence_offsets: SentenceOffsets | None, n_tokens: int) -> Int64s:
    """Check sentence offsets, and return them as int64[S + 1].

    Args:
        sentence_offsets: int[S + 1], first token of each sentence, and the number of tokens; None is a single sentence.
        n_tokens: Number of tokens.

    Raises:
        ValueError: The offsets do not rise from 0 to ``n_tokens``.
    """
    if sentence_offsets is None:
        return np.array([0, n_tokens] if n_tokens else [0], np.int64)
    offsets = np.asarray(sentence_offsets)
    valid = offsets.ndim == 1 and offsets.dtype.kind in "iu" and len(offsets) and offsets[0] == 0
    if valid and not n_tokens and not offsets.any():
        return np.zeros(1, np.int64)
    if not valid or offsets[-1] != n_tokens or not (np.diff(offsets.astype(np.int64)) > 0).all():
        got = " ".join(repr(sentence_offsets).split())
        raise ValueError(
            f"sentence_offsets must rise from 0 to the number of tokens, {n_tokens}, got {got:.80}; leave empty"
            " sentences out"
        )
    return offsets.astype(np.int64)
