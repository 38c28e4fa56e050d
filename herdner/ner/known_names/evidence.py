"""What known names add to the log-potentials of a document's tags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.text.tags import Scheme, Span, tags_from_spans


class Support(NamedTuple):
    """What is said of a span: log-odds of its label for each token, ``inf`` where it must come out."""

    span: Span
    strength: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """Log-potentials for tokens and states of one document: ``values`` [m] are added at ``tokens``, ``states`` [m].

    At ``fixed`` tokens [h] nothing but the ``fixed_states`` [h] is allowed, and ``barred`` (token, state) are not.
    """

    tokens: Sequence[int] = ()
    states: Sequence[int] = ()
    values: Sequence[float] = ()
    fixed: Sequence[int] = ()
    fixed_states: Sequence[int] = ()
    barred: Sequence[tuple[int, int]] = ()

    def add_to(self, unary: NDArray[np.float64]) -> None:
        """Into the log-potentials [n, K] of the document's tokens, in place."""
        if self.tokens:
            np.add.at(unary, (np.array(self.tokens), np.array(self.states)), self.values)
        if self.fixed:
            rows, columns = np.array(self.fixed), np.array(self.fixed_states)
            kept = unary[rows, columns]
            unary[rows] = -np.inf
            unary[rows, columns] = kept
        for token, state in self.barred:
            unary[token, state] = -np.inf


@dataclass(frozen=True)
class Spelling:
    """How a model writes spans: by which tags, in the order of its tables, and in which scheme."""

    tags: tuple[str, ...]
    scheme: Scheme

    @cached_property
    def _number(self) -> dict[str, int]:
        return {tag: k for k, tag in enumerate(self.tags)}

    def evidence(self, supports: Iterable[Support], sentence_offsets: NDArray[np.int64]) -> Evidence:
        """Of spans that are disjoint, or equal with other labels; evidence for one that the model cannot write is none.

        ValueError for a constraint that cannot be met.
        """
        soft: list[tuple[int, int, float]] = []
        settled: list[Span] = []
        for span, strength in supports:
            if strength == np.inf:
                settled.append(span)
                continue
            length = span.end - span.start
            states = self._states(tags_from_spans([Span(0, length, span.label)], length, self.scheme))
            soft += [(span.start + i, state, strength) for i, state in enumerate(states or ())]
        tokens, columns, values = zip(*soft, strict=True) if soft else ((), (), ())
        if not settled:
            return Evidence(tokens, columns, values)
        fixed = self._fixed(settled, sentence_offsets)
        return Evidence(
            tokens, columns, values, list(fixed), list(fixed.values()),
            [pair for span in settled for pair in self._longer(span, sentence_offsets) if pair[0] not in fixed],
        )  # fmt: skip

    def _states(self, tags: Iterable[str]) -> list[int] | None:
        """The numbers of the tags; None where the model lacks one."""
        states = [self._number.get(tag, -1) for tag in tags]
        return None if -1 in states else states

    def _fixed(self, spans: Sequence[Span], sentence_offsets: NDArray[np.int64]) -> dict[int, int]:
        """The state of each token of the spans, which are all written together: some tags depend on their neighbour."""
        tags = tags_from_spans(spans, int(sentence_offsets[-1]), self.scheme, sentence_offsets)
        fixed: dict[int, int] = {}
        for span in spans:
            states = self._states(tags[span.start : span.end])
            if states is None:
                raise ValueError(
                    f"a name of {span.end - span.start} tokens must be {span.label}, and the model has no tag for one;"
                    f" it has {', '.join(self.tags)}"
                )
            fixed.update(zip(range(span.start, span.end), states, strict=True))
        return fixed

    def _longer(self, span: Span, sentence_offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Tokens beside a span and states that would make it longer, where the scheme does not mark where it ends."""
        if self.scheme not in ("iob1", "iob2"):
            return
        inside, begin = (self._number.get(f"{prefix}-{span.label}") for prefix in "IB")
        if inside is not None and span.end not in sentence_offsets:
            yield span.end, inside
        if self.scheme == "iob1" and span.start not in sentence_offsets:
            yield from ((span.start - 1, state) for state in (inside, begin) if state is not None)
