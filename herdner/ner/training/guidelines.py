"""Corpora that annotate by different rules, in one model: features "in this corpus" beside the shared ones (Daumé III
2007).

In training a token has, beside its features, copies of some of them that occur in its own corpus alone: what is true
of that corpus only goes there. A model follows the guideline of one corpus: the weights of its copies are added to
those of the features they are copies of, and those of the other corpora are left out. So tagging costs nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from herdner._ext.hashing import hash_string
from herdner.crf.trainer import TrainingProgress
from herdner.crf.weights import ChainWeights, Keys
from herdner.ner.features import FeaturePlan, make_extractor
from herdner.ner.lexicon import Lexicon
from herdner.ner.training.chains import Chains
from herdner.text.document import Document

# What rules of annotation depend on: the word, what it looks like, the lists it is in, and the words beside it.
_COPIED = ("word", "lower", "shape", "brief_shape", "class6", "class10", "casing", "run", "headline", "bias")
_BESIDE = ("lower", "brief_shape")
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 by the golden ratio


@dataclass(frozen=True)
class Corpora:
    """Of each document the corpus that it is from, and the one whose guideline is ``followed``.

    Raises:
        ValueError: The one that is followed is none of them.
    """

    names: tuple[str, ...]
    followed: str

    def __post_init__(self) -> None:
        if self.followed not in self.names:
            raise ValueError(f"guideline {self.followed!r} is none of the groups: give groups, and one of these")


@dataclass(frozen=True, eq=False)
class Guided:
    """The features of documents with those of their corpora, and what becomes of the weights.

    Attributes:
        features: Of each document.
        own: uint64[n], the features that have a copy in the corpus that is followed.
        copies: uint64[n], these copies.
        dropped: uint64, all copies.
    """

    features: list[Keys]
    own: NDArray[np.uint64]
    copies: NDArray[np.uint64]
    dropped: NDArray[np.uint64]

    @staticmethod
    def of(
        documents: Sequence[Document], features: Sequence[Keys], corpora: Corpora, plan: FeaturePlan, lexicon: Lexicon
    ) -> Guided:
        """``features`` of documents by a plan and a lexicon, with copies of some."""
        extractor = make_extractor(_copied(plan), lexicon)
        found = [extractor.keys(d.tokens, d.sentence_offsets) for d in documents]
        copied = [_copy(keys, corpus) for (_, keys), corpus in zip(found, corpora.names, strict=True)]
        both = [
            _beside(shared, (starts, copies))
            for shared, (starts, _), copies in zip(features, found, copied, strict=True)
        ]
        mine = [keys for (_, keys), corpus in zip(found, corpora.names, strict=True) if corpus == corpora.followed]
        own = np.unique(np.concatenate(mine))
        return Guided(both, own, _copy(own, corpora.followed), np.unique(np.concatenate(copied)))

    def settled(self, weights: ChainWeights) -> ChainWeights:
        """The weights of a model that follows the guideline."""
        kept = weights.only(~np.isin(weights.entry_keys, self.dropped))
        rows, entries = weights.entries_of(self.copies)
        more = ChainWeights.grouped(
            weights.labels, weights.transition, self.own[rows], weights.entry_labels[entries],
            weights.entry_weights[entries],
        )  # fmt: skip
        return more.added_to(kept)


@dataclass(frozen=True, eq=False)
class GuidedChains:
    """Chains whose documents have the features of their corpora too; their weights are those of the guideline."""

    chains: Chains
    guided: Guided

    def train(self, chosen: Sequence[int] | None, progress: TrainingProgress | None) -> ChainWeights:
        """The weights learned from the documents of these numbers; None: from all."""
        return self.guided.settled(self.chains.train(chosen, progress))


def _copied(plan: FeaturePlan) -> FeaturePlan:
    """The templates of a plan that have copies."""
    here = {f"{name}[0]" for name in (*_COPIED, *(f"gazetteer:{name}" for name in plan.gazetteers))}
    wanted = here | {f"{name}[{offset}]" for name in _BESIDE for offset in (-1, 1)}
    templates = tuple(template for template in plan.templates if template in wanted)
    return replace(plan, templates=templates, elsewhere=(), n_occurrences=0)


def _copy(keys: NDArray[np.uint64], corpus: str) -> NDArray[np.uint64]:
    """The copies of features in a corpus: other 64-bit numbers, the same for the same feature."""
    return (keys ^ np.uint64(hash_string(f"in the corpus {corpus}"))) * _ODD


def _beside(shared: Keys, copies: Keys) -> Keys:
    """The features of both, token by token."""
    starts = shared[0] + copies[0]
    tokens = np.concatenate([np.repeat(np.arange(len(each) - 1), np.diff(each)) for each in (shared[0], copies[0])])
    return starts, np.concatenate([shared[1], copies[1]])[np.argsort(tokens, kind="stable")]
