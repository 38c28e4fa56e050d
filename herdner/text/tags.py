"""Chunk tags (IOB1, IOB2, IOBES; BILOU as input): reading and writing labelled spans, and which tag may follow which.

IOB1 is the scheme of Ramshaw & Marcus (1995), IOB2 that of Tjong Kim Sang & Veenstra (1999). A *tag* is the string of
one token (``"B-PER"``), a *label* the class of a span (``"PER"``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from herdner._ext.tags import make_spans, read_spans

SentenceOffsets = Sequence[int] | NDArray[np.int64]
Scheme = Literal["iob1", "iob2", "iobes", "bilou"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

_PREFIXES: dict[Scheme, str] = {"iob1": "BIO", "iob2": "BIO", "iobes": "BIOES", "bilou": "BIOLU"}
_TO_IOBES = {"L": "E", "U": "S"}


class Span(NamedTuple):
    """The tokens ``start:end`` (half-open) carry the label."""

    start: int
    end: int
    label: str


class Chunks(NamedTuple):
    """M spans as columns: int64[M] first tokens, int64[M] the tokens behind them, and labels."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    labels: list[str]

    @classmethod
    def of(cls, spans: Sequence[Span]) -> Chunks:
        """The columns of spans."""
        starts = np.fromiter((span.start for span in spans), np.int64, len(spans))
        ends = np.fromiter((span.end for span in spans), np.int64, len(spans))
        return cls(starts, ends, [span.label for span in spans])

    def spans(self, chosen: slice = slice(None), origin: int = 0) -> list[Span]:
        """The chosen ones as values, tokens counted from ``origin``."""
        return make_spans(Span, self.starts[chosen], self.ends[chosen], self.labels[chosen], origin)


class Transitions(NamedTuple):
    """Which tag may follow which: ``follow[i, j]`` says that tag j may come right after tag i."""

    follow: NDArray[np.bool_]  # [K, K]
    start: NDArray[np.bool_]  # [K]: may open a sentence
    end: NDArray[np.bool_]  # [K]: may close a sentence


@lru_cache(maxsize=4096)
def split_tag(tag: str) -> tuple[str, str]:
    """Prefix and label of a tag: ``"B-creative-work"`` is ``("B", "creative-work")``, ``"O"`` is ``("O", "")``.

    BILOU's L and U are returned as E and S.

    Raises:
        ValueError: The text is no tag.
    """
    if tag == "O":
        return "O", ""
    prefix, dash, label = tag.partition("-")
    if not label or not dash or prefix not in {"B", "I", "E", "S", "L", "U"}:
        raise ValueError(f"{tag!r} is not a tag; expected O, or one of B- I- E- S- L- U- and a label")
    return _TO_IOBES.get(prefix, prefix), label


def classes_of(tags: Iterable[str]) -> set[str]:
    """The classes that tags speak of."""
    return {split_tag(tag)[1] for tag in tags if tag != "O"}


def sentences_of(tags: Sequence[str], sentence_offsets: SentenceOffsets | None) -> Iterator[tuple[int, int]]:
    """Borders (start, end) of the sentences; the whole sequence is one sentence when no offsets are given."""
    if sentence_offsets is None:
        return iter([(0, len(tags))])
    return pairwise(map(int, sentence_offsets))


def spans_from_tags(
    tags: Sequence[str],
    sentence_offsets: SentenceOffsets | None = None,
    *,
    strict: Scheme | None = None,
) -> list[Span]:
    """Labelled spans of a tag sequence, in the order of the text.

    The default reading is conlleval's, which is also seqeval's default: it serves every scheme and mends malformed
    sequences (an I- or E- that continues nothing opens a span; a span that is never closed ends where it can go no
    further). With ``strict`` only spans that are well formed in that scheme count, as in seqeval's strict mode.
    No span crosses a sentence border.

    Raises:
        ValueError: Strings are no tags; not for ``strict="iob1"``, where nothing is malformed.
    """
    if strict == "iob1":
        raise ValueError("every sequence is well formed in iob1; read it without strict")
    if strict is None:
        number = {tag: k for k, tag in enumerate(dict.fromkeys(tags))}
        states = np.fromiter(map(number.__getitem__, tags), np.int32, len(tags))
        return spans_from_states(states, tuple(number), sentence_offsets)
    spans: list[Span] = []
    for start, end in sentences_of(tags, sentence_offsets):
        if strict == "iob2":
            _read_iob2(tags, start, end, spans)
        else:
            _read_iobes(tags, start, end, spans)
    return spans


def spans_from_states(
    states: NDArray[np.int32], tags: tuple[str, ...], sentence_offsets: SentenceOffsets | None = None
) -> list[Span]:
    """`spans_from_tags` of the sequence whose token t has the tag ``tags[states[t]]``, in conlleval's reading."""
    return chunks_from_states(states, tags, sentence_offsets).spans()


def chunks_from_states(
    states: NDArray[np.int32], tags: tuple[str, ...], sentence_offsets: SentenceOffsets | None = None
) -> Chunks:
    """`spans_from_states` as columns."""
    prefixes, labels, names = _columns(tags)
    borders = [0, len(states)] if sentence_offsets is None else sentence_offsets
    starts, ends, found = read_spans(states, prefixes, labels, np.ascontiguousarray(borders, np.int64))
    return Chunks(starts, ends, [names[k] for k in found.tolist()])


@lru_cache(maxsize=256)
def _columns(tags: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int32], list[str]]:
    """The prefix of each tag, the number of its label, and the labels by number; O has the number 0."""
    split = [split_tag(tag) for tag in tags]
    names = list(dict.fromkeys(["", *(label for _, label in split)]))
    number = {name: k for k, name in enumerate(names)}
    prefixes = np.array([ord(prefix) for prefix, _ in split], np.uint8)
    return prefixes, np.array([number[label] for _, label in split], np.int32), names


def _read_iob2(tags: Sequence[str], start: int, end: int, spans: list[Span]) -> None:
    label, begin = "", start
    for i in range(start, end):
        prefix, new = split_tag(tags[i])
        if prefix == "I" and new == label:
            continue
        if label:
            spans.append(Span(begin, i, label))
        label, begin = (new, i) if prefix == "B" else ("", i)
    if label:
        spans.append(Span(begin, end, label))


def _read_iobes(tags: Sequence[str], start: int, end: int, spans: list[Span]) -> None:
    label, begin = "", start
    for i in range(start, end):
        prefix, new = split_tag(tags[i])
        if prefix == "S":
            spans.append(Span(i, i + 1, new))
        elif prefix == "E" and new == label:
            spans.append(Span(begin, i + 1, label))
        elif prefix == "I" and new == label:
            continue
        label, begin = (new, i) if prefix == "B" else ("", i)


def tags_from_spans(
    spans: Iterable[Span | tuple[int, int, str]],
    n_tokens: int,
    scheme: Scheme = "iob2",
    sentence_offsets: SentenceOffsets | None = None,
) -> list[str]:
    """Tags of ``n_tokens`` tokens that carry the spans.

    ``sentence_offsets`` matters to IOB1 alone: there a B- is written only where the span before touches, has the same
    label and stands in the same sentence.

    Raises:
        ValueError: Spans overlap or leave the text.
    """
    tags = ["O"] * n_tokens
    borders: frozenset[int] = frozenset() if sentence_offsets is None else frozenset(map(int, sentence_offsets))
    last = Span(0, 0, "")
    for span in sorted(Span(*s) for s in spans):
        start, end, label = span
        if not last.end <= start < end <= n_tokens or not label:
            raise ValueError(f"{span} overlaps {last}, is empty, has no label or leaves the {n_tokens} tokens")
        touches = start == last.end and label == last.label and start not in borders
        tags[start:end] = _tags_of_span(end - start, label, scheme, touches)
        last = span
    return tags


def _tags_of_span(n: int, label: str, scheme: Scheme, touches: bool) -> list[str]:
    inside = f"I-{label}"
    if scheme == "iob1":
        return [f"B-{label}" if touches else inside] + [inside] * (n - 1)
    if scheme == "iob2":
        return [f"B-{label}"] + [inside] * (n - 1)
    last, single = ("E", "S") if scheme == "iobes" else ("L", "U")
    if n == 1:
        return [f"{single}-{label}"]
    return [f"B-{label}"] + [inside] * (n - 2) + [f"{last}-{label}"]


def convert_tags(
    tags: Sequence[str],
    source: Scheme | None,
    target: Scheme,
    sentence_offsets: SentenceOffsets | None = None,
) -> list[str]:
    """The same spans in another scheme. Malformed sequences are mended as in `spans_from_tags`.

    With a ``source``, a tag that does not exist in it raises ValueError; None accepts any.
    """
    if source is not None:
        check_tags(tags, source)
    return tags_from_spans(spans_from_tags(tags, sentence_offsets), len(tags), target, sentence_offsets)


def check_tags(tags: Iterable[str], scheme: Scheme) -> None:
    """Raises ValueError at the first tag that the scheme does not know."""
    for tag in set(tags):
        split_tag(tag)
        if tag[0] not in _PREFIXES[scheme]:
            raise ValueError(
                f"tag {tag!r} does not exist in {scheme}, whose prefixes are {', '.join(_PREFIXES[scheme])}"
            )


def tags_of_class(label: str, scheme: Scheme) -> list[str]:
    """All tags that tokens inside a name of the class can have."""
    return [f"{prefix}-{label}" for prefix in _PREFIXES[scheme] if prefix != "O"]


def detect_scheme(sequences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme of some sentences' tags; IOB2 where nothing speaks against it.

    E and S mean IOBES, L and U BILOU. An I- that opens a span speaks for IOB1, a B- that does not follow its own label
    for IOB2; the more frequent wins, since real files and predictions hold a few malformed spans.
    """
    opens_with_i = needless_b = 0
    prefixes: set[str] = set()
    for tags in sequences:
        last = ""
        for tag in tags:
            prefix, label = split_tag(tag)
            prefixes.add(tag[0])
            opens_with_i += prefix == "I" and label != last
            needless_b += prefix == "B" and label != last
            last = label
    if prefixes & {"E", "S"}:
        return "iobes"
    if prefixes & {"L", "U"}:
        return "bilou"
    return "iob1" if opens_with_i > needless_b else "iob2"


def allowed_transitions(tags: Sequence[str], scheme: Scheme) -> Transitions:
    """Tag bigrams, first and last tags that are well formed in the scheme, for ``K = len(tags)`` distinct tags.

    Raises:
        ValueError: The scheme does not know a tag.
    """
    check_tags(tags, scheme)
    closed = [("O", ""), *map(split_tag, tags)]  # a sentence begins and ends as if beside an O
    follow = np.array([[_may_follow(left, right, scheme) for right in closed] for left in closed], dtype=np.bool_)
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
