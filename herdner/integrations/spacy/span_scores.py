"""Scores of tokens, for `herdner.SkipChainLayer`, from entities of a tagger that has given no scores of tokens.

A span says that its label is likely there and others are not, how much so is a matter of `Trust`; tokens outside of all
spans may have been missed. Only what is linked to something is open to change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats
from herdner.text.tags import Span

FLOOR = 1e-4  # a probability below counts as this: what is wrong and certain can still be overruled
SPLIT = float(np.log(0.02))  # log-potential of a border where the tagger has none, and of none where it has one


@dataclass(frozen=True)
class Trust:
    """How far a tagger's entities are believed, whatever their labels.

    ``scripts/models/learn_consistency.py`` finds the defaults: the F1 of ``en_core_web_sm`` on openly licensed news
    (Worldwide train, ODC-By, and herdner-news, CC0) is best there, by coordinate ascent. The optimum is flat:
    neighbours on the grid differ by 0.1 to 0.3 points.

    Attributes:
        right: The share of spans whose label is right.
        outside: The share of spans that are no name; the rest has another label.
        missed: The share of linked tokens outside all spans that belong to a name.
        power: The power that probabilities which the tagger itself gives are raised to (a greedy tagger is too sure of
            itself).
        caution: The log-potential that speaks for no name beside such probabilities.
    """

    right: float = 0.8
    outside: float = 0.06
    missed: float = 0.2
    power: float = 0.5
    caution: float = 1.5

    def of_span(self, n_labels: int, label: int, confidence: float | None = None) -> Floats:
        """[n_labels + 1]: log-potentials of the labels and, last, of no name, for a span of this label.

        Args:
            confidence: The probability of the span, where the tagger has given it.
        """
        right = self.right if confidence is None else min(max(confidence, FLOOR), 1 - FLOOR)
        outside = self.outside / (1 - self.right) * (1 - right)
        scores = np.full(n_labels + 1, (1 - right - outside) / max(n_labels - 1, 1))
        scores[label], scores[-1] = right, outside
        return np.log(scores)

    def of_outside(self, n_labels: int) -> Floats:
        """[n_labels + 1]: the same for a token that no span holds."""
        return np.log(np.append(np.full(n_labels, self.missed / n_labels), 1 - self.missed))

    def of_tagger(self, probabilities: Floats) -> Floats:
        """[..., n_labels + 1]: the same from probabilities that the tagger gives, of no name last."""
        scores = self.power * np.log(np.maximum(probabilities, FLOOR))
        scores[..., -1] += self.caution
        return scores


def tags_of(labels: Sequence[str]) -> list[str]:
    """The tags that the columns of `token_scores` are of: O, and B and I of each label."""
    return ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]


def token_scores(
    n_tokens: int,
    labels: Sequence[str],
    spans: Sequence[Span],
    span_scores: Sequence[Floats],
    outside: NDArray[np.int64],
    outside_scores: Floats,
    linked: NDArray[np.bool_],
    *,
    otherwise: float = -np.inf,
) -> Floats:
    """float64[n_tokens, 2 K + 1]: log-potentials of `tags_of` the K labels.

    Each token of a span has the scores of the span. Spans without a linked token, and tokens that are neither in a span
    nor in ``outside``, keep their tags: others have ``otherwise``.

    Args:
        spans: Disjoint, of these labels.
        span_scores: [K + 1] of each.
        outside: Tokens that no span holds but a name may.
        outside_scores: [C, K + 1], theirs.
        linked: bool[n_tokens].
    """
    scores = np.full((n_tokens, 2 * len(labels) + 1), otherwise)
    scores[:, 0] = 0
    scores[outside, 0], scores[outside, 1::2] = outside_scores[:, -1], outside_scores[:, :-1]
    scores[outside, 2::2] = outside_scores[:, :-1] + SPLIT / 2
    number = {label: k for k, label in enumerate(labels)}
    for (start, end, label), each in zip(spans, span_scores, strict=True):
        if linked[start:end].any():
            scores[start:end, 0] = each[-1]
            scores[start:end, 1::2], scores[start:end, 2::2] = each[:-1] + SPLIT, each[:-1]
            scores[start, 1::2], scores[start, 2::2] = each[:-1], each[:-1] + SPLIT
        else:
            scores[start:end] = otherwise
            scores[start, 1 + 2 * number[label]] = 0
            scores[start + 1 : end, 2 + 2 * number[label]] = 0
    return scores
