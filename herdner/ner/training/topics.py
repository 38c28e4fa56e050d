"""Topics of documents, learned by clustering without labels.

The name of a city is a place in texts on politics, and often a team in texts on sports. A topic is a cluster of
documents (k-means on the square roots of the shares of word classes among a document's tokens). Features combine the
topic of a document with its words.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from herdner._ext.features import TYPE_ATTRIBUTES
from herdner.base.arrays import Floats
from herdner.base.extras import import_extra
from herdner.base.seeds import Seed, generator
from herdner.ner.features import default_plan, make_extractor
from herdner.ner.lexicon import TOPICS, VECTOR_CLASSES, Topics
from herdner.ner.model import TaggerModel
from herdner.text.document import Document

_DOCUMENTS_PER_TOPIC = 10  # with fewer documents, clusters do not separate topics
_MAX_ITERATIONS = 30
_VECTOR_CLASS = TYPE_ATTRIBUTES.index(f"vector{VECTOR_CLASSES[2]}")


def with_topics(
    model: TaggerModel, documents: Sequence[Document], start: TaggerModel | None, seed: Seed
) -> TaggerModel:
    """Cluster documents into topics, and add the topics to the features of a model.

    Args:
        model: Model without weights.
        documents: Training documents.
        start: Model whose topics are taken; None learns topics from the documents.
        seed: Seed of the starting points of k-means.

    Returns:
        The model with topics. It is unchanged if it already has topics, if its lexicon has no vector classes, or if
        there are too few documents.
    """
    lexicon = model.lexicon
    if lexicon.topics is not None or lexicon.vectors is None:
        return model
    topics = None if start is None else start.lexicon.topics
    if start is None and len(documents) >= _DOCUMENTS_PER_TOPIC * max(TOPICS):
        topics = learn_topics(class_shares(model, documents), seed)
    if topics is None:
        return model
    plan = default_plan(lexicon.gazetteer_names, model.plan.recasing, topics=True)
    return replace(model, lexicon=replace(lexicon, topics=topics), plan=plan)


def class_shares(model: TaggerModel, documents: Sequence[Document]) -> Floats:
    """Return, for each document, the square root of the share of its tokens that belong to each class of word vectors.

    Args:
        model: Model with the lexicon of vector classes.
        documents: Documents with tokens.

    Returns:
        float64[documents, 513]; the first column is for tokens without a class.
    """
    extractor, no_keys = make_extractor(model.plan, model.lexicon), np.empty(0, np.int64)
    shares = np.zeros((len(documents), VECTOR_CLASSES[2] + 1))
    for row, document in zip(shares, documents, strict=True):
        *_, attributes = extractor.origins(document.tokens, document.sentence_offsets, no_keys)
        counts = np.bincount(attributes[:, _VECTOR_CLASS].astype(np.int64), minlength=len(row))
        row[:] = counts / max(len(attributes), 1)
    return np.sqrt(shares)


def learn_topics(points: Floats, seed: Seed) -> Topics:
    """Cluster documents by k-means, once for each number of clusters. Each centre starts at a random document.

    Args:
        points: float64[documents, 513], rows of `class_shares`.
        seed: Seed of the starting points.

    Returns:
        The topics: the centres of all clusters.
    """
    k_means = import_extra("scipy.cluster.vq", "training needs SciPy").kmeans2
    rng, centres = generator(seed), list[Floats]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty cluster keeps its centre
        for k in TOPICS:
            start = points[rng.choice(len(points), k, replace=False)]
            centres.append(k_means(points, start, iter=_MAX_ITERATIONS, minit="matrix")[0])
    return Topics(np.concatenate(centres).T.astype(np.float32))
