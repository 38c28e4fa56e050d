"""Effect of known names on the log-potentials of a document's tags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np

from herdner.base.arrays import Floats, Int64s
from herdner.text.tags import Scheme, Span, tags_from_spans


class SpanEvidence(NamedTuple):
    """Span with a label, and the strength of the evidence for this label.

    The strength is added to the log-potential of the label's tag at each token of the span; ``inf`` fixes the tags.
    """

    span: Span
    strength: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """Changes that known names cause in the log-potentials of one document.

    Attributes:
        tokens: Indices [m] of tokens.
        states: Indices [m] of tags.
        values: Log-potentials [m] that are added at ``tokens`` and ``states``.
        fixed: Indices [h] of tokens with a fixed tag.
        fixed_states: Indices [h] of the only allowed tags at these tokens.
        forbidden: Pairs of a token and a tag that is not allowed there.
    """

    tokens: Sequence[int] = ()
    states: Sequence[int] = ()
    values: Sequence[float] = ()
    fixed: Sequence[int] = ()
    fixed_states: Sequence[int] = ()
    forbidden: Sequence[tuple[int, int]] = ()

    def plus(self, other: Evidence) -> Evidence:
        """Return evidence that combines this evidence and ``other``.

        Args:
            other: Evidence for other tokens of the same document.
        """
        return Evidence(*([*getattr(self, each.name), *getattr(other, each.name)] for each in fields(Evidence)))

    @property
    def all_tokens(self) -> set[int]:
        """Tokens for which there is evidence or a constraint."""
        return {*self.tokens, *self.fixed, *(token for token, _ in self.forbidden)}

    def add_to(self, unary: Floats) -> None:
        """Add the evidence to the log-potentials of the document, in place.

        Args:
            unary: float64[tokens, tags], log-potentials of the tags of each token.
        """
        if self.tokens:
            np.add.at(unary, (np.array(self.tokens), np.array(self.states)), self.values)
        if self.fixed:
            rows, columns = np.array(self.fixed), np.array(self.fixed_states)
            values = unary[rows, columns]
            unary[rows] = -np.inf
            unary[rows, columns] = values
        for token, state in self.forbidden:
            unary[token, state] = -np.inf


@dataclass(frozen=True)
class SpanEncoder:
    """Converter from labelled spans to the tags of a model.

    Attributes:
        tags: Tags of the model, in the order of its tables.
        scheme: Scheme of the tags.
    """

    tags: tuple[str, ...]
    scheme: Scheme

    @cached_property
    def _index(self) -> dict[str, int]:
        return {tag: k for k, tag in enumerate(self.tags)}

    def evidence(self, spans: Iterable[SpanEvidence], sentence_offsets: Int64s) -> Evidence:
        """Convert the evidence for spans of a document to changes of the document's log-potentials.

        Args:
            spans: Spans with their evidence. Two spans must be disjoint, or equal with different labels. Evidence for a
                span that the tags of the model cannot encode has no effect.
            sentence_offsets: First token of each sentence, and the number of tokens.

        Returns:
            The changes of log-potentials.

        Raises:
            ValueError: The tags of the model cannot encode the span of a constraint.
        """
        soft: list[tuple[int, int, float]] = []
        constraints: list[Span] = []
        for span, strength in spans:
            if strength == np.inf:
                constraints.append(span)
                continue
            length = span.end - span.start
            states = self.states(tags_from_spans([Span(0, length, span.label)], length, self.scheme))
            soft += [(span.start + i, state, strength) for i, state in enumerate(states or ())]
        tokens, columns, values = zip(*soft, strict=True) if soft else ((), (), ())
        if not constraints:
            return Evidence(tokens, columns, values)
        fixed = self._fixed_tags(constraints, sentence_offsets)
        return Evidence(
            tokens, columns, values, list(fixed), list(fixed.values()),
            [pair for span in constraints for pair in self._extensions(span, sentence_offsets) if pair[0] not in fixed],
        )  # fmt: skip

    def states(self, tags: Iterable[str]) -> list[int] | None:
        """Return the indices of ``tags`` in the tags of the model; return None if the model lacks one of the tags.

        Args:
            tags: The tags.

        Returns:
            Index of each tag, or None.
        """
        states = [self._index.get(tag, -1) for tag in tags]
        return None if -1 in states else states

    def _fixed_tags(self, spans: Sequence[Span], sentence_offsets: Int64s) -> dict[int, int]:
        """Return the tag index of every token of the spans, as a dict from token to tag index.

        The spans are encoded together, because the tags of adjacent IOB1 spans depend on each other.
        """
        tags = tags_from_spans(spans, int(sentence_offsets[-1]), self.scheme, sentence_offsets)
        fixed: dict[int, int] = {}
        for span in spans:
            states = self.states(tags[span.start : span.end])
            if states is None:
                raise ValueError(
                    f"the model has no tags for a known name of {span.end - span.start} tokens with the label"
                    f" {span.label}; its tags are {', '.join(self.tags)}"
                )
            fixed.update(zip(range(span.start, span.end), states, strict=True))
        return fixed

    def _extensions(self, span: Span, sentence_offsets: Int64s) -> Iterator[tuple[int, int]]:
        """Yield (adjacent token, tag) for each tag that would extend the span. Only IOB1 and IOB2 have such tags."""
        if self.scheme not in ("iob1", "iob2"):
            return
        inside, begin = (self._index.get(f"{prefix}-{span.label}") for prefix in "IB")
        if inside is not None and span.end not in sentence_offsets:
            yield span.end, inside
        if self.scheme == "iob1" and span.start not in sentence_offsets:
            yield from ((span.start - 1, state) for state in (inside, begin) if state is not None)
