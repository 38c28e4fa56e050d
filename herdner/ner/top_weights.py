"""Largest weights of a tagger, as a table.

Models store only hashes of features. The descriptions of features are computed from documents that contain them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from herdner.crf.attribute_weights import AttributeWeights
from herdner.crf.sequence_tagger import WeightTable
from herdner.ner.decode import Decoder
from herdner.ner.descriptions import Describer
from herdner.ner.model import TaggerModel
from herdner.text.document import Document


def top_weights(model: TaggerModel, decoder: Decoder, documents: Iterable[Document], top: int) -> WeightTable:
    """Return the largest weights among the features of documents, and the largest transition weights.

    Args:
        model: The model.
        decoder: Compiled form of the model.
        documents: Documents with tokens.
        top: Number of features for each tag, and number of transitions. The features and transitions with the largest
            absolute weights are returned.
    """
    names: dict[int, str] = {}
    for document in documents:
        _add_descriptions(names, model, decoder, document)
    names = dict(sorted(names.items()))
    weights = model.weights
    rows, entries = weights.entries_of(np.array(list(names), np.uint64))
    attributes, states = rows.astype(np.uint32), weights.entry_tags[entries].astype(np.uint32)
    selected = AttributeWeights(
        list(weights.tags), list(names.values()), attributes, states, weights.entry_weights[entries], weights.transition
    )
    return WeightTable.of(selected, top)


def _add_descriptions(names: dict[int, str], model: TaggerModel, decoder: Decoder, document: Document) -> None:
    """Add to ``names`` a description of each weighted feature of a document, unless ``names`` contains it already."""
    tokens = decoder.read(document).tokens  # recased, as for tagging
    describer, starts, keys, origins = Describer.of(
        document, tokens, (), model.plan, decoder.extractor, np.arange(len(tokens), dtype=np.int64)
    )
    distinct, first = np.unique(keys, return_index=True)
    owners = np.searchsorted(starts, first, side="right") - 1
    with_weights = np.unique(model.weights.entries_of(distinct)[0])
    for row in with_weights.tolist():
        key = int(distinct[row])
        if key not in names:
            template, position = origins[first[row]].tolist()
            names[key] = describer.feature(template, int(owners[row]), position)
