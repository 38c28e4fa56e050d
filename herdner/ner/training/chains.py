"""Trainers of linear chains, both on all documents and on the documents outside each fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from herdner.base.arrays import Floats
from herdner.crf.chain_data import ChainData
from herdner.crf.crfsuite_files import train_crfsuite
from herdner.crf.trainer import StoppingRule, TrainingProgress, train_chain
from herdner.crf.weights import ChainWeights, Keys
from herdner.ner.training.corpus import TrainingCorpus
from herdner.ner.training.options import Regularisation
from herdner.text.tags import labels_of

ChainTrainer = Callable[[Sequence[int] | None, TrainingProgress | None], ChainWeights]
"""Function that trains a linear chain on a selection of documents of one corpus.

Its arguments are the indices of the documents (None is all) and a function that is called after each iteration.
"""


class HerdnerTrainer:
    """Trainer of linear chains by L-BFGS (`herdner.crf.trainer`).

    The first chain must be trained on all documents. The other chains start at its weights.

    Args:
        features: Features of each document.
        corpus: Documents with the tags that their tokens may have.
        regularisation: Penalties of the weights.
        stopping_rule: Rule that ends the training.
        base: Weights that are the mean of the prior. Weights of features that the documents lack stay unchanged.
        start: Weights at which the first chain starts.
    """

    def __init__(
        self,
        features: Sequence[Keys],
        corpus: TrainingCorpus,
        regularisation: Regularisation,
        stopping_rule: StoppingRule,
        *,
        base: ChainWeights | None = None,
        start: ChainWeights | None = None,
    ) -> None:
        """Store the options, and prepare the training data of all documents."""
        self.corpus, self.stopping_rule, self.base, self.c1 = corpus, stopping_rule, base, regularisation.c1
        self.data = ChainData.of(
            features, [document.sentence_offsets for document in corpus.documents], corpus.allowed, corpus.tags,
            min_freq=regularisation.min_freq, base=base, counted=corpus.counted,
        )  # fmt: skip
        self.origin = None if base is None else self.data.vector_of(base)
        self.c2: float | Floats = regularisation.c2
        if base is not None and self.origin is not None:
            is_base, factor = self.origin != 0, regularisation.base_factor
            if labels_of(self.data.tags) - labels_of(base.tags):
                # Otherwise the base's labels lose more than 0.5 F1 on texts unlike the documents (bench_adapting.py).
                is_base[: self.data.n_features] = np.isin(np.array(self.data.tags)[self.data.entries[1]], base.tags)
                factor = regularisation.new_label_factor
                if any(document.partial is None for document in corpus.documents):
                    # The strong penalty keeps the loss of the annotated labels of the base, which may be most of the
                    # loss. Otherwise training stops before the new labels are learned.
                    decrease = stopping_rule.min_decrease * regularisation.new_label_decrease
                    self.stopping_rule = replace(stopping_rule, min_decrease=decrease)
            self.c2 = regularisation.c2 * np.where(is_base, factor, 1.0)
        self.start = None if start is None else self.data.vector_of(start)

    def train(self, indices: Sequence[int] | None, progress: TrainingProgress | None) -> ChainWeights:
        """Train a linear chain on a selection of documents.

        Args:
            indices: Indices of the documents to train on; None is all.
            progress: Function called after each iteration.

        Returns:
            The weights of the chain.

        Raises:
            ImpossibleTags: Forbidden transitions rule out every tag sequence that the annotation of a document allows.
        """
        weights, start, rule = self.corpus.weights, self.start, self.stopping_rule
        if indices is not None:
            weights = np.zeros(len(weights))
            weights[list(indices)] = self.corpus.weights[list(indices)]
            # Chains of folds are used only to learn links and the calibration, which need less precision.
            rule = replace(rule, min_decrease=max(rule.min_decrease, StoppingRule.min_decrease))
            if start is not None:
                origin = 0.0 if self.origin is None else self.origin
                start = np.where(self.data.occurring_weights(weights > 0), start, origin)
        vector = train_chain(
            self.data, c1=self.c1, c2=self.c2, stopping_rule=rule, start=start, origin=self.origin,
            document_weights=weights, borders=self.corpus.borders, progress=progress,
        )  # fmt: skip
        if indices is None:
            self.start = vector
        chain = self.data.weights_of(vector, self.base)
        return chain.select(chain.entry_weights != 0) if self.c1 else chain


def crfsuite_trainer(
    features: Sequence[Keys], corpus: TrainingCorpus, regularisation: Regularisation, max_iterations: int
) -> ChainTrainer:
    """Return a function that trains linear chains with CRFsuite. Training always starts from weights of 0.

    Args:
        features: Features of each document.
        corpus: Fully annotated documents.
        regularisation: Penalties of the weights.
        max_iterations: Maximum number of iterations.
    """
    offsets = [document.sentence_offsets for document in corpus.documents]
    examples = list(zip(features, offsets, corpus.gold, strict=True))

    def train(indices: Sequence[int] | None, progress: TrainingProgress | None) -> ChainWeights:
        selected = examples if indices is None else [examples[i] for i in indices]
        return train_crfsuite(
            *zip(*selected, strict=True), c1=regularisation.c1, c2=regularisation.c2, min_freq=regularisation.min_freq,
            max_iterations=max_iterations, progress=progress,
        )  # fmt: skip

    return train
