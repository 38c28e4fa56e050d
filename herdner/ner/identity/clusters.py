"""Clusters of mentions: each mention joins the name with the highest score or begins a new name.

Mentions of several words come first, then mentions of one word, each in the order of the text. A short form such as
"Reyes" is thus compared with all full names of the document. Names are found by their words in an index, and a mention
is compared with at most eight names for each of its words. Time and memory are linear in the length of the document.
The loops are compiled (``herdner._ext.identity``).

All features are binary; each has a name and a weight. They compare a mention with a name by words, labels, titles,
first names, numbers and genders. Other features give the distance to the last mention of the name ("near", "far") and
the number of rival names ("one rival").
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable, Mapping
from functools import cache

from herdner._ext.identity import NameCluster, NameWeights, cluster_mentions, read_forms
from herdner.ner.identity.forms import TITLES, parse_form
from herdner.text.document import Document

Choose = Callable[[int, list[NameCluster], list[list[str]]], NameCluster]
"""Function that selects the name of a mention, possibly a new name.

Its arguments are the index of the mention, the candidate names, and a list of features. The list begins with the
features of a new name, followed by those of each candidate; it is empty if there are no candidates."""


@cache
def weights() -> NameWeights:
    """Return the feature weights for grouping mentions by name, learned by ``scripts/models/train_identity.py``."""
    path = importlib.resources.files("herdner") / "data" / "identity.json"
    values: Mapping[str, float] = json.loads(path.read_text(encoding="utf-8"))["weights"]
    return NameWeights(values)


def with_names(document: Document, choose: NameWeights | Choose | None = None) -> Document:
    """Set the `name_id` of each entity of a document, and return the changed document.

    Names are numbered from 0 in the order of their first mentions.

    Args:
        document: Document with entities, in the order of the text.
        choose: Weights of the features, or a function that selects the name of a mention. None: the learned `weights`.

    Returns:
        The document, whose `Document.names` lists the names.
    """
    entities = document.entities
    if not entities:
        return document
    forms = read_forms(document.text, entities, parse_form, TITLES)
    return document.with_name_ids(cluster_mentions(document.text, entities, forms, choose or weights()))
