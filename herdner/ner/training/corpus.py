"""What a training learns from: documents as features see them, what they teach, and how much each of them counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.ner.model import TaggerModel
from herdner.ner.recasing import reader
from herdner.ner.training.adapting import tell_look_alikes
from herdner.ner.training.development import check_development
from herdner.ner.training.guidelines import Corpora
from herdner.ner.training.supervision import Supervision, supervise
from herdner.text.document import Document


class Lessons(NamedTuple):
    """Documents and what they teach.

    Attributes:
        counts: float64[documents], by how much each counts for the chain.
        sources: Of each document the number of its source; each source counts the same for the calibration.
        corpora: Whose guideline is followed, where one is.
        development: Annotated documents that are only scored.
    """

    documents: list[Document]
    taught: Supervision
    counts: NDArray[np.float64]
    sources: list[int] | None
    corpora: Corpora | None
    development: list[Document]

    @classmethod
    def of(
        cls,
        model: TaggerModel,
        base: TaggerModel | None,
        documents: Iterable[Document],
        tags: Iterable[Sequence[str]] | None,
        development: Iterable[Document] | None,
        weights: Sequence[float] | NDArray[np.float64] | None,
        groups: Sequence[str] | None,
        guideline: str | None,
    ) -> Lessons:
        """What `herdner.Tagger.fit` was given, checked, for a model that lacks its weights and may adapt a base."""
        known = () if base is None else base.weights.labels
        found, taught = supervise(list(documents), tags, model.scheme, known)
        tell_look_alikes(taught.gold, known)
        scored = _development(development)
        counts, sources = _weights(weights, len(found)), _numbered(groups, len(found))
        corpora = None if guideline is None else Corpora(tuple(groups or ()), guideline)
        read = reader(model.plan, model.lexicon)
        return cls(list(map(read, found)), taught, counts, sources, corpora, list(map(read, scored)))


def _development(documents: Iterable[Document] | None) -> list[Document]:
    """The documents, none for None; checked before a long training."""
    documents = list(documents or ())
    if any(document.partial is not None for document in documents):
        raise ValueError("development documents are annotated in full; some of these are annotated in part")
    if documents:
        check_development([document.spans or [] for document in documents])
    return documents


def _weights(weights: Sequence[float] | NDArray[np.float64] | None, n_documents: int) -> NDArray[np.float64]:
    """float64[documents]: by how much each document counts. ValueError where they are no such numbers."""
    if weights is None:
        return np.ones(n_documents)
    found = np.asarray(weights, np.float64)
    if found.shape != (n_documents,):
        raise ValueError(f"{n_documents} documents but document_weights of shape {found.shape}: give a number for each")
    if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
        raise ValueError("document_weights are finite, at least 0, and not all 0")
    return found


def _numbered(groups: Sequence[str] | None, n_documents: int) -> list[int] | None:
    """Of each document the number of its group, from 0. ValueError where there is not one for each document."""
    if groups is None:
        return None
    if len(groups) != n_documents:
        raise ValueError(f"{n_documents} documents but {len(groups)} groups: name a source for each document")
    number = {group: k for k, group in enumerate(dict.fromkeys(groups))}
    return [number[group] for group in groups]
