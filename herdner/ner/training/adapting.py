"""Adaptation of a base model to other documents: training starts at its weights, which are the mean of the prior.

Source: Chelba and Acero 2004.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from herdner.crf.model import LinkTable
from herdner.crf.templates import SkipChain
from herdner.crf.weights import ChainWeights
from herdner.ner.features import FeaturePlan
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.text.labels import similar_labels
from herdner.text.tags import labels_of

if TYPE_CHECKING:
    from herdner.ner.tagger import Tagger

logger = logging.getLogger(__name__)


def without_weights(base: TaggerModel, tagger: Tagger) -> TaggerModel:
    """Return a copy of the base model without weights and links. Training stores the adapted weights in the copy.

    Args:
        base: Model that is adapted.
        tagger: Tagger to be trained. Its feature plan and its lexicon must be None or those of the base, its scheme
            must be that of the base, and its tokenizer must be None or have the language of the base.

    Raises:
        ValueError: The plan, lexicon, scheme or language of the tagger differs from that of the base, so the weights of
            the base cannot be used.
    """
    if tagger.plan not in (None, base.plan):
        raise ValueError(
            "`plan` differs from the feature plan of the base model; set `plan` to None to use the feature plan of the"
            " base model"
        )
    if tagger.lexicon is not None and tagger.lexicon is not base.lexicon:
        raise ValueError(
            "`lexicon` is not the lexicon of the base model; set `lexicon` to None to use the lexicon of the base model"
        )
    if tagger.scheme != base.scheme:
        raise ValueError(f"`scheme` must be {base.scheme!r} as in the base model, got {tagger.scheme!r}")
    tokenizer = tagger.tokenizer
    if tokenizer is not None and tokenizer.language != base.tokenizer.language:
        raise ValueError(
            f"`tokenizer` must have the language of the base model, {base.tokenizer.language!r}, got"
            f" {tokenizer.language!r}; adapt another model, or train without a base model"
        )
    return replace(base, weights=ChainWeights.empty(), link_tables=(), calibration=None, card={})


def warn_of_similar_labels(gold: Iterable[Iterable[str]], base_tags: Sequence[str]) -> None:
    """Log a warning if a label of the training documents is similar to a label of the base model, but not equal.

    Args:
        gold: Tags of each document.
        base_tags: Tags of the base model; none if there is no base.
    """
    names = similar_labels(labels_of(tag for tags in gold for tag in tags), labels_of(base_tags)) if base_tags else {}
    if names:
        logger.warning(
            "new labels are similar to labels of the base: %s; to use the labels of the base, rename the new ones: %s"
            " on the command line, or rename_labels with %s",
            ", ".join(f"{new} to {old}" for new, old in names.items()),
            " ".join(f"--rename {new}={old}" for new, old in names.items()), names,
        )  # fmt: skip


def check_start(start: TaggerModel, plan: FeaturePlan, lexicon: Lexicon, tags: Sequence[str]) -> ChainWeights:
    """Return the weights of ``start``; raise `ValueError` if it has other features than the new model, or unknown tags.

    Args:
        start: Model with these weights.
        plan: Feature plan of the training.
        lexicon: Lexicon of the training.
        tags: Tags of the training.

    Raises:
        ValueError: The model has other features, or tags that the training lacks.
    """
    if start.plan != plan or start.lexicon.gazetteer_names != lexicon.gazetteer_names:
        raise ValueError(
            "the feature plan or the gazetteers of `start` differ from those of the new model; as `start`, pass a model"
            " with the feature plan and the gazetteers of the new model"
        )
    if unknown := sorted(set(start.weights.tags) - set(tags)):
        raise ValueError(
            f"the model to start from has the tag {unknown[0]!r}, which the documents lack; pass another model as"
            " `start`, or pass this model as `base`"
        )
    return start.weights


def initial_link_tables(
    templates: Sequence[SkipChain], base: TaggerModel | None, tags: Sequence[str]
) -> tuple[LinkTable, ...]:
    """Return the initial link tables: entries that ``base`` also has are copied from ``base``, and all others are 0.

    Args:
        templates: Template of each table.
        base: Model that is adapted, or None.
        tags: Tags of the tables.

    Returns:
        One table for each template. Entries for templates and tags of the base equal the entries of the base; other
        entries are 0.
    """
    base_tables = {} if base is None else {each.template: each.table for each in base.link_tables}
    base_tags = () if base is None else base.weights.tags
    columns = np.array([list(tags).index(tag) for tag in base_tags], np.int64)
    link_tables: list[LinkTable] = []
    for template in templates:
        table = np.zeros((len(tags), len(tags)))
        if template in base_tables:
            table[np.ix_(columns, columns)] = base_tables[template]
        link_tables.append(LinkTable(template, table))
    return tuple(link_tables)


def with_base_links(model: TaggerModel, base: TaggerModel) -> TaggerModel:
    """Return a copy of ``model`` with the link weights of ``base`` for each pair of tags that ``base`` has.

    Args:
        model: Model that was adapted to documents with new labels.
        base: Base model.
    """
    initial = initial_link_tables([each.template for each in model.link_tables], base, model.weights.tags)
    is_base = np.isin(model.weights.tags, base.weights.tags)
    both = is_base[:, None] & is_base
    known = {each.template for each in base.link_tables}
    link_tables = tuple(
        replace(each, table=np.where(both, first.table, each.table)) if each.template in known else each
        for each, first in zip(model.link_tables, initial, strict=True)
    )
    return replace(model, link_tables=link_tables)
