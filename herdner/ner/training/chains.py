"""The chains that a training needs: one on all documents, and one for each fold without some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from herdner.crf.chain_data import ChainData
from herdner.crf.crfsuite_files import train_crfsuite
from herdner.crf.likelihood import Borders
from herdner.crf.trainer import StoppingRule, TrainingProgress, train_chain
from herdner.crf.weights import ChainWeights, Keys
from herdner.text.tags import labels_of

TrainerName = Literal["herdner", "crfsuite"]
TRAINERS: tuple[TrainerName, ...] = get_args(TrainerName)


@dataclass(frozen=True)
class Penalty:
    """What keeps weights small, and which there are: ``c1`` and ``c2`` weigh the L1 and the squared L2 norm; pairs of a
    feature and a tag that are met fewer than ``min_freq`` times have no weight. The weights of a base are held at their
    values by ``held`` times ``c2``, others at 0 by ``c2``.
    """

    c1: float = 0.0
    c2: float = 0.3
    min_freq: int = 2
    held: float = 1.0


class Chains(Protocol):
    """Trains chains on the same documents, or on some of them."""

    def train(self, chosen: Sequence[int] | None, progress: TrainingProgress | None) -> ChainWeights:
        """The weights learned from the documents of these numbers; None: from all."""
        ...


class OwnChains:
    """By `herdner.crf.trainer`. The first chain is trained on all documents; the others start from its weights, without
    those that their own documents do not show.

    Args:
        allowed: uint8[tokens, K] of each document, the tags its tokens may have.
        base: Weights that the prior has as its mean, and that are kept where the documents say nothing.
        start: Where the first chain begins.
        counted: As in `ChainData.of`.
    """

    def __init__(
        self,
        features: Sequence[Keys],
        sentence_offsets: Sequence[NDArray[np.int64]],
        allowed: Sequence[NDArray[np.uint8]],
        labels: Sequence[str],
        penalty: Penalty,
        stop: StoppingRule,
        *,
        base: ChainWeights | None = None,
        start: ChainWeights | None = None,
        document_weights: NDArray[np.float64] | None = None,
        borders: Borders | None = None,
        counted: Sequence[NDArray[np.uint8]] | None = None,
    ) -> None:
        self.data = ChainData.of(
            features, sentence_offsets, allowed, labels, min_freq=penalty.min_freq, base=base, counted=counted
        )
        self.stop, self.borders, self.base = stop, borders, base
        self.origin = None if base is None else self.data.vector_of(base)
        self.c2 = penalty.c2
        if base is not None and self.origin is not None:
            self.c2 = penalty.c2 * np.where(_is_held(self.data, base, self.origin), penalty.held, 1.0)
        self.start = None if start is None else self.data.vector_of(start)
        self.document_weights = np.ones(len(features)) if document_weights is None else document_weights

    def train(self, chosen: Sequence[int] | None, progress: TrainingProgress | None) -> ChainWeights:
        data, weights, start, stop = self.data, self.document_weights, self.start, self.stop
        if chosen is not None:
            weights = np.zeros(len(weights))
            weights[list(chosen)] = self.document_weights[list(chosen)]
            stop = replace(
                stop, min_decrease=max(stop.min_decrease, StoppingRule.min_decrease)
            )  # it serves links and calibration alone
            if start is not None:
                rest = 0.0 if self.origin is None else self.origin
                start = np.where(data.met(weights > 0), start, rest)
        vector = train_chain(
            data, c2=self.c2, stopping_rule=stop, start=start, origin=self.origin, document_weights=weights,
            borders=self.borders, progress=progress,
        )  # fmt: skip
        if chosen is None:
            self.start = vector
        return data.weights_of(vector, self.base)


def _is_held(data: ChainData, base: ChainWeights, origin: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which weights are held at those of a base: all that it has; but none of the tag O where the documents have
    classes that it never looked for, as names of these were outside to it.
    """
    held = origin != 0
    if labels_of(data.labels) - labels_of(base.labels):
        held[: data.n_features] &= np.array(data.labels)[data.entries[1]] != "O"
    return held


class CRFsuiteChains:
    """By CRFsuite, each chain from nothing."""

    def __init__(
        self,
        features: Sequence[Keys],
        sentence_offsets: Sequence[NDArray[np.int64]],
        tags: Sequence[Sequence[str]],
        penalty: Penalty,
        max_iterations: int,
    ) -> None:
        self.examples = list(zip(features, sentence_offsets, tags, strict=True))
        self.options: dict[str, Any] = {
            "c1": penalty.c1, "c2": penalty.c2, "min_freq": penalty.min_freq, "max_iterations": max_iterations,
        }  # fmt: skip

    def train(self, chosen: Sequence[int] | None, progress: TrainingProgress | None) -> ChainWeights:
        examples = self.examples if chosen is None else [self.examples[i] for i in chosen]
        features, sentence_offsets, tags = zip(*examples, strict=True)
        return train_crfsuite(features, sentence_offsets, tags, progress=progress, **self.options)


def allowed_tags(tags: Sequence[str], labels: Sequence[str]) -> NDArray[np.uint8]:
    """uint8[tokens, K]: each token may have its own tag alone."""
    number = {label: k for k, label in enumerate(labels)}
    allowed = np.zeros((len(tags), len(labels)), np.uint8)
    allowed[np.arange(len(tags)), [number[tag] for tag in tags]] = 1
    return allowed
