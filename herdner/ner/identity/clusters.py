"""Clusters of mentions: each mention joins the name with the highest score or begins a new name.

Mentions of several words come first, then mentions of one word, each in the order of the text. A short form such as
"Reyes" is thus compared with all full names of the document. Names are found by their words in an index, and a mention
is compared with at most eight names for each of its words. Time and memory are linear in the document. The loops are
compiled (``herdner._ext.identity``).

All features are binary; each has a name and a weight. They compare the words, labels, titles, first names, numbers and
genders of a mention with those of a name, and count positions and rival names.
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
"""Function of the index of a mention, the names to which it may belong, and the features of a new name and of each of
these names; there are no features without such names. It returns the name of the mention, possibly a new one."""


@cache
def weights() -> NameWeights:
    """Return the weight of each feature, learned by ``scripts/models/train_identity.py``."""
    path = importlib.resources.files("herdner") / "data" / "identity.json"
    values: Mapping[str, float] = json.loads(path.read_text(encoding="utf-8"))["weights"]
    return NameWeights(values)


def with_names(document: Document, choose: NameWeights | Choose | None = None) -> Document:
    """Return the document with a `name_id` for each entity.

    Names are numbered from 0 in the order of their first mentions.

    Args:
        document: Document with entities, in the order of the text.
        choose: Weights of the features, or a function that decides to which name a mention belongs. None is `weights`.

    Returns:
        The document, whose `Document.names` lists the names.
    """
    entities = document.entities
    if not entities:
        return document
    forms = read_forms(document.text, entities, parse_form, TITLES)
    return document.with_name_ids(cluster_mentions(document.text, entities, forms, choose or weights()))
