"""Topics of documents: what a document is about, learned without labels from those that a tagger is trained on.

The name of a city is a place in politics and a team in sports. The topic of a document is the nearest of some clusters
(k-means of the square roots of the shares that word classes have of its tokens); features join it with words.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import vq  # pyright: ignore[reportMissingTypeStubs]

from herdner._ext.features import TYPE_ATTRIBUTES
from herdner.base.seeds import Seed, generator
from herdner.ner.features import default_plan, make_extractor
from herdner.ner.lexicon import TOPICS, VECTOR_CLASSES, Topics
from herdner.ner.model import TaggerModel
from herdner.text.document import Document

_EACH = 10  # documents for each of the most topics: fewer would not tell them apart
_ROUNDS = 30
_CLASSES = TYPE_ATTRIBUTES.index(f"vector{VECTOR_CLASSES[2]}")


def with_topics(
    model: TaggerModel, documents: Sequence[Document], start: TaggerModel | None, seed: Seed
) -> TaggerModel:
    """The model, which lacks its weights, with topics of the documents among its features: those of the model that it
    starts from, if there is one. It stays as it is where it has topics, where its words have no vector classes, or the
    documents are too few.
    """
    lexicon = model.lexicon
    if lexicon.topics is not None or lexicon.vectors is None:
        return model
    if start is not None:
        topics = start.lexicon.topics
    else:
        enough = len(documents) >= _EACH * max(TOPICS)
        topics = learn_topics(square_roots(model, documents), seed) if enough else None
    if topics is None:
        return model
    names = lexicon.gazetteers.names if lexicon.gazetteers else ()
    plan = default_plan(names, model.plan.recased, topics=True)
    return replace(model, lexicon=replace(lexicon, topics=topics), plan=plan)


def square_roots(model: TaggerModel, documents: Sequence[Document]) -> NDArray[np.float64]:
    """float64[documents, 513]: of the shares that vector classes have of a document's tokens, first those without."""
    extractor, none = make_extractor(model.plan, model.lexicon), np.empty(0, np.int64)
    shares = np.zeros((len(documents), VECTOR_CLASSES[2] + 1))
    for row, document in zip(shares, documents, strict=True):
        *_, attributes = extractor.origins(document.tokens, document.sentence_offsets, none)
        row[:] = np.bincount(attributes[:, _CLASSES].astype(np.int64), minlength=len(row)) / max(len(attributes), 1)
    return np.sqrt(shares)


def learn_topics(points: NDArray[np.float64], seed: Seed) -> Topics:
    """Clusters of documents, from what `square_roots` gives; each begins at a document."""
    rng, found, k_means = generator(seed), list[NDArray[np.float64]](), cast(Any, vq).kmeans2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a cluster is empty: it keeps its centre
        for k in TOPICS:
            first = points[rng.choice(len(points), k, replace=False)]
            found.append(k_means(points, first, iter=_ROUNDS, minit="matrix")[0])
    return Topics(np.concatenate(found).T.astype(np.float32))
