"""Conversion between tags and labelled spans in the schemes IOB1, IOB2, IOBES and BILOU.

IOB1 is the scheme of Ramshaw & Marcus (1995), IOB2 that of Tjong Kim Sang & Veenstra (1999). A *tag* is the string of
one token (``"B-PER"``), a *label* is the entity type of a span (``"PER"``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from herdner._ext.memory import sealed
from herdner._ext.tags import make_spans, read_spans

SentenceOffsets = Sequence[int] | NDArray[np.int64]
Scheme = Literal["iob1", "iob2", "iobes", "bilou"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

_PREFIXES: dict[Scheme, str] = {"iob1": "BIO", "iob2": "BIO", "iobes": "BIOES", "bilou": "BIOLU"}
_TO_IOBES = {"L": "E", "U": "S"}
_TO_BILOU = str.maketrans("ES", "LU")


class Span(NamedTuple):
    """Labelled span of tokens, such as an entity in a document.

    Attributes:
        start: Index of the first token.
        end: Index behind the last token.
        label: Entity type, such as "PER".
    """

    start: int
    end: int
    label: str


class Chunks(NamedTuple):
    """Labelled spans stored as three columns: starts, ends and labels.

    Attributes:
        starts: int64[M], index of the first token of each span.
        ends: int64[M], index behind the last token of each span.
        labels: Label of each span.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    labels: list[str]

    @classmethod
    def of(cls, spans: Sequence[Span]) -> Chunks:
        """Convert a list of spans to columns.

        Args:
            spans: Spans of tokens.

        Returns:
            Start, end and label of all spans.
        """
        starts = np.fromiter((span.start for span in spans), np.int64, len(spans))
        ends = np.fromiter((span.end for span in spans), np.int64, len(spans))
        return cls(starts, ends, [span.label for span in spans])

    def spans(self, part: slice = slice(None), origin: int = 0) -> list[Span]:
        """Return the spans in the slice ``part`` (default: all) as a list; their offsets count from token ``origin``.

        Args:
            part: The spans to convert.
            origin: Index of the token that becomes token 0.

        Returns:
            The spans.
        """
        return make_spans(Span, self.starts[part], self.ends[part], self.labels[part], origin)


class Transitions(NamedTuple):
    """Boolean tables over K tags, which define the well-formed tag sequences.

    Attributes:
        follow: bool[K, K]; ``follow[i, j]`` is true if tag j may follow tag i directly.
        start: bool[K], tags that may begin a sentence.
        end: bool[K], tags that may end a sentence.
    """

    follow: NDArray[np.bool_]
    start: NDArray[np.bool_]
    end: NDArray[np.bool_]


@lru_cache(maxsize=4096)
def split_tag(tag: str) -> tuple[str, str]:
    """Split a tag such as ``"B-PER"`` into its prefix and its label.

    Args:
        tag: A tag such as ``"B-creative-work"`` or ``"O"``.

    Returns:
        For example ``("B", "creative-work")`` or ``("O", "")``. BILOU's L and U are returned as E and S.

    Raises:
        ValueError: The string is not a tag.
    """
    if tag == "O":
        return "O", ""
    prefix, dash, label = tag.partition("-")
    if not label or not dash or prefix not in {"B", "I", "E", "S", "L", "U"}:
        raise ValueError(f"{tag!r} is not a tag; expected O, or B-, I-, E-, S-, L- or U- followed by a label")
    return _TO_IOBES.get(prefix, prefix), label


def labels_of(tags: Iterable[str]) -> set[str]:
    """Return the distinct entity labels that occur in a list of tags.

    Args:
        tags: Tags in any scheme.
    """
    return {split_tag(tag)[1] for tag in tags if tag != "O"}


def spans_from_tags(
    tags: Sequence[str], sentence_offsets: SentenceOffsets | None = None, *, strict: Scheme | None = None
) -> list[Span]:
    """Read labelled token spans from the tags of a document.

    By default tags are read as conlleval and seqeval read them. This covers all schemes and repairs malformed
    sequences: an I- or E- that continues no span begins one, and a span without a final tag ends before the first tag
    that cannot continue it. No span crosses a sentence border.

    Args:
        tags: n tags.
        sentence_offsets: int64[S + 1], offsets of the sentences; None: one sentence.
        strict: Accept only spans that are well formed in this scheme, as seqeval's strict mode does. "iob1" is not
            possible because every sequence is well formed in it.

    Returns:
        The spans in the order of the text.

    Raises:
        ValueError: A string is not a tag, or ``strict`` is "iob1".
    """
    if strict == "iob1":
        raise ValueError(
            "`strict` must not be 'iob1', because every tag sequence is well formed in IOB1; omit `strict`"
        )
    if strict is None:
        index = {tag: k for k, tag in enumerate(dict.fromkeys(tags))}
        states = np.fromiter(map(index.__getitem__, tags), np.int32, len(tags))
        return spans_from_states(states, tuple(index), sentence_offsets)
    prefixes = "".join(split_tag(tag)[0] for tag in tags)
    spans = spans_from_tags(tags, sentence_offsets)
    return [span for span in spans if prefixes[span.start : span.end] == _span_prefixes(span.end - span.start, strict)]


def spans_from_states(
    states: NDArray[np.int32], tags: tuple[str, ...], sentence_offsets: SentenceOffsets | None = None
) -> list[Span]:
    """Read labelled token spans from states, which are indices into a list of tags.

    They are read as `spans_from_tags` reads tags.

    Args:
        states: int32[n], index into ``tags`` of each token's tag.
        tags: The distinct tags.
        sentence_offsets: int64[S + 1], offsets of the sentences; None: one sentence.

    Returns:
        The spans in the order of the text.
    """
    return chunks_from_states(states, tags, sentence_offsets).spans()


def chunks_from_states(
    states: NDArray[np.int32], tags: tuple[str, ...], sentence_offsets: SentenceOffsets | None = None
) -> Chunks:
    """Read labelled token spans from states, which are indices into ``tags``, and return them as columns.

    Otherwise like `spans_from_states`.

    Args:
        states: int32[n], index of the tag of each token.
        tags: The tags.
        sentence_offsets: int[S + 1], first token of each sentence, and n; None is a single sentence.

    Returns:
        Start, end and label of all spans.
    """
    borders = [0, len(states)] if sentence_offsets is None else sentence_offsets
    return Chunks(*read_spans(states, *_columns(tags), np.ascontiguousarray(borders, np.int64)))


@lru_cache(maxsize=256)
def _columns(tags: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int32], list[str]]:
    """Return the prefix of each tag, the index of each tag's label, and the distinct labels.

    Label 0 belongs to O.
    """
    split = [split_tag(tag) for tag in tags]
    names = list(dict.fromkeys(["", *(label for _, label in split)]))
    index = {name: k for k, name in enumerate(names)}
    prefixes = np.array([ord(prefix) for prefix, _ in split], np.uint8)
    return sealed([prefixes]), sealed([np.array([index[label] for _, label in split], np.int32)]), names


def tags_from_spans(
    spans: Iterable[Span | tuple[int, int, str]],
    n_tokens: int,
    scheme: Scheme = "iob2",
    sentence_offsets: SentenceOffsets | None = None,
) -> list[str]:
    """Convert labelled token spans to one tag for each token.

    Args:
        spans: Labelled spans in any order.
        n_tokens: Number of tokens.
        scheme: Scheme of the tags.
        sentence_offsets: int64[S + 1], offsets of the sentences. Only IOB1 uses them: there a B- occurs only directly
            after a span with the same label in the same sentence.

    Returns:
        One tag for each token.

    Raises:
        ValueError: Spans overlap, are empty or exceed the tokens.
    """
    tags = ["O"] * n_tokens
    borders: frozenset[int] = frozenset() if sentence_offsets is None else frozenset(map(int, sentence_offsets))
    last = Span(0, 0, "")
    for span in sorted(Span(*s) for s in spans):
        start, end, label = span
        if not last.end <= start < end <= n_tokens or not label:
            raise ValueError(
                f"spans must be disjoint, labelled, not empty and within the {n_tokens} tokens, got {span} after {last}"
            )
        touches = start == last.end and label == last.label and start not in borders
        prefixes = _span_prefixes(end - start, scheme, touches)
        tags[start:end] = [f"{prefix}-{label}" for prefix in prefixes.translate(_TO_BILOU if scheme == "bilou" else {})]
        last = span
    return tags


def _span_prefixes(n: int, scheme: Scheme, touches: bool = False) -> str:
    """Return the tag prefixes of a span of n tokens in a scheme (for BILOU: the prefixes of IOBES).

    In IOB1, the first prefix is B if the span ``touches`` the previous span with the same label.
    """
    if scheme in ("iob1", "iob2"):
        return ("B" if touches or scheme == "iob2" else "I") + "I" * (n - 1)
    return "S" if n == 1 else "B" + "I" * (n - 2) + "E"


def convert_tags(
    tags: Sequence[str], source: Scheme | None, target: Scheme, sentence_offsets: SentenceOffsets | None = None
) -> list[str]:
    """Convert tags from one scheme to another. Malformed sequences are repaired as in `spans_from_tags`.

    Args:
        tags: n tags.
        source: Scheme of the tags; None accepts any tag.
        target: Scheme of the result.
        sentence_offsets: int64[S + 1], offsets of the sentences; None: one sentence.

    Returns:
        n tags with the same spans.

    Raises:
        ValueError: A tag does not exist in ``source``.
    """
    if source is not None:
        check_tags(tags, source)
    return tags_from_spans(spans_from_tags(tags, sentence_offsets), len(tags), target, sentence_offsets)


def check_tags(tags: Iterable[str], scheme: Scheme) -> None:
    """Check that each tag exists in the tag scheme.

    Args:
        tags: The tags.
        scheme: The tag scheme.

    Raises:
        ValueError: A tag is malformed or does not exist in the scheme.
    """
    for tag in set(tags):
        split_tag(tag)
        if tag[0] not in _PREFIXES[scheme]:
            raise ValueError(f"tag {tag!r} does not exist in {scheme} (prefixes {', '.join(_PREFIXES[scheme])})")


def tags_of_label(label: str, scheme: Scheme) -> list[str]:
    """Return all tags that a token inside a name with this label can have in the tag scheme.

    Args:
        label: The label.
        scheme: The tag scheme.
    """
    return [f"{prefix}-{label}" for prefix in _PREFIXES[scheme] if prefix != "O"]


def detect_scheme(sequences: Iterable[Sequence[str]]) -> Scheme:
    """Guess the tag scheme (such as IOB2 or BILOU) of tagged sentences.

    E- and S- occur only in IOBES, L- and U- only in BILOU. An I- that begins a span indicates IOB1. A B- that does not
    follow a token with the same label indicates IOB2. The more frequent indication decides, because files and
    predictions contain malformed spans.

    Args:
        sequences: Tags of each sentence.

    Returns:
        The scheme; IOB2 if there is no indication.
    """
    n_initial_i = n_initial_b = 0
    prefixes: set[str] = set()
    for tags in sequences:
        last = ""
        for tag in tags:
            prefix, label = split_tag(tag)
            prefixes.add(tag[0])
            n_initial_i += prefix == "I" and label != last
            n_initial_b += prefix == "B" and label != last
            last = label
    if prefixes & {"E", "S"}:
        return "iobes"
    if prefixes & {"L", "U"}:
        return "bilou"
    return "iob1" if n_initial_i > n_initial_b else "iob2"


def allowed_transitions(tags: Sequence[str], scheme: Scheme) -> Transitions:
    """Return the pairs of adjacent tags that a scheme allows, and the tags that may begin and that may end a sentence.

    Args:
        tags: K distinct tags.
        scheme: Their scheme.

    Returns:
        Boolean tables of the allowed pairs, first tags and last tags.

    Raises:
        ValueError: A tag does not exist in the scheme.
    """
    check_tags(tags, scheme)
    padded = [("O", ""), *map(split_tag, tags)]  # both ends of a sentence behave like an O
    follow = np.array([[_may_follow(left, right, scheme) for right in padded] for left in padded], dtype=np.bool_)
    return Transitions(*map(np.ascontiguousarray, (follow[1:, 1:], follow[0, 1:], follow[1:, 0])))


def _may_follow(left: tuple[str, str], right: tuple[str, str], scheme: Scheme) -> bool:
    same = left[1] == right[1]
    inside = right[0] in "IE"
    if scheme == "iob1":
        return right[0] != "B" or (same and left[0] in "BI")
    if scheme == "iob2":
        return not inside or (same and left[0] in "BI")
    open_span = left[0] in "BI"
    return (inside and same) if open_span else not inside
