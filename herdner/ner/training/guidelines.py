"""Training on corpora with different annotation guidelines, by corpus-specific copies of features.

Source: Daumé III 2007. In training, each token has its original features, and copies of some of them that occur only in
its corpus. The weights of the copies represent the guideline of this corpus. The finished model follows the guideline
of one corpus: the weights of the copies of this corpus are added to the weights of the original features, and the
copies of all corpora are removed. Tagging takes no longer than with a model that was trained without copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from herdner._ext.hashing import hash_string
from herdner.crf.weights import ChainWeights, Keys
from herdner.ner.features import FeaturePlan, make_extractor
from herdner.ner.lexicon import Lexicon
from herdner.text.document import Document

# Guidelines refer to the word, its shape, the gazetteers that contain it, and the adjacent words.
_COPIED = ("word", "lower", "shape", "brief_shape", "class6", "class10", "casing", "run", "headline", "bias")
_COPIED_OF_NEIGHBOURS = ("lower", "brief_shape")
_ODD = np.uint64(0x9E3779B97F4A7C15)  # factor that mixes the bits of a key: 2^64 divided by the golden ratio


@dataclass(frozen=True, eq=False)
class FeatureCopies:
    """Features of documents, extended by copies of some features for each corpus (Daumé III 2007).

    Attributes:
        features: Features and copies of each document.
        originals: uint64[n], features that have a copy in the corpus whose guideline is followed.
        copies: uint64[n], the copies of ``originals`` in this corpus.
        all_copies: uint64[m], the copies of all corpora.
    """

    features: list[Keys]
    originals: NDArray[np.uint64]
    copies: NDArray[np.uint64]
    all_copies: NDArray[np.uint64]

    @staticmethod
    def of(
        documents: Sequence[Document],
        features: Sequence[Keys],
        groups: Sequence[str],
        guideline: str,
        plan: FeaturePlan,
        lexicon: Lexicon,
    ) -> FeatureCopies:
        """Extend the features of documents by copies for each corpus.

        Args:
            documents: Documents from which features are computed (``herdner.ner.recasing.reader``).
            features: Features of each document by ``plan`` and ``lexicon``.
            groups: Corpus of each document.
            guideline: Corpus whose guideline the model follows.
            plan: Feature plan of the model.
            lexicon: Lexicon of the model.

        Returns:
            The features of each document, with copies.
        """
        extractor = make_extractor(_corpus_specific_plan(plan), lexicon)
        originals = [extractor.keys(d.tokens, d.sentence_offsets) for d in documents]
        copies = [_copy(keys, corpus) for (_, keys), corpus in zip(originals, groups, strict=True)]
        joined = [
            _join_features(own, (starts, copied))
            for own, (starts, _), copied in zip(features, originals, copies, strict=True)
        ]
        followed = [keys for (_, keys), corpus in zip(originals, groups, strict=True) if corpus == guideline]
        keys = np.unique(np.concatenate(followed))
        return FeatureCopies(joined, keys, _copy(keys, guideline), np.unique(np.concatenate(copies)))

    def merge_weights(self, weights: ChainWeights) -> ChainWeights:
        """Add the weights of feature copies to the weights of the original features, and remove the copies.

        Only the weights of copies for the corpus whose guideline is followed are added.

        Args:
            weights: Weights of features and copies.

        Returns:
            The weights of the original features.
        """
        without_copies = weights.select(~np.isin(weights.entry_keys, self.all_copies))
        rows, entries = weights.entries_of(self.copies)
        of_copies = ChainWeights.from_entries(
            weights.tags, weights.transition, self.originals[rows], weights.entry_tags[entries],
            weights.entry_weights[entries],
        )  # fmt: skip
        return of_copies.add_to(without_copies)


def _corpus_specific_plan(plan: FeaturePlan) -> FeaturePlan:
    """Return a feature plan that contains only those features of ``plan`` that are copied for each corpus."""
    names = (*_COPIED, *(f"gazetteer:{name}" for name in plan.gazetteers))
    copied = {f"{name}[0]" for name in names}
    copied |= {f"{name}[{offset}]" for name in _COPIED_OF_NEIGHBOURS for offset in (-1, 1)}
    templates = tuple(template for template in plan.templates if template in copied)
    return replace(plan, templates=templates, elsewhere=(), n_occurrences=0)


def _copy(keys: NDArray[np.uint64], corpus: str) -> NDArray[np.uint64]:
    """Return the keys of the features that apply in one corpus only: hashes of the key and the corpus name."""
    return (keys ^ np.uint64(hash_string(f"in the corpus {corpus}"))) * _ODD


def _join_features(one: Keys, other: Keys) -> Keys:
    """Join two feature lists: each token gets the features that it has in either list."""
    tokens = np.concatenate([np.repeat(np.arange(len(starts) - 1), np.diff(starts)) for starts, _ in (one, other)])
    keys = np.concatenate([one[1], other[1]])[np.argsort(tokens, kind="stable")]
    return one[0] + other[0], keys
