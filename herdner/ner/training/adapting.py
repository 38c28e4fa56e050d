"""Adapting a model to other data: learning begins at a base model, and is drawn to it (Chelba and Acero 2004)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from herdner.crf.model import LinkTable
from herdner.crf.templates import SkipChain
from herdner.crf.weights import ChainWeights
from herdner.ner.features import FeaturePlan
from herdner.ner.lexicon import Lexicon
from herdner.ner.model import TaggerModel
from herdner.ner.training.chains import Penalty
from herdner.text.tags import Scheme, split_tag
from herdner.text.tokenize import TokenizerSettings

logger = logging.getLogger(__name__)

# Names that corpora give to the same class, in small letters.
_SYNONYMS = (
    {"per", "pers", "person", "people"},
    {"loc", "location", "place", "gpe"},
    {"org", "organization", "organisation", "company", "corporation"},
    {"fac", "facility"},
    {"misc", "miscellaneous", "other"},
    {"prod", "product"},
)
# Measured by scripts/benchmarks/bench_adapting.py. What a base has learned from many documents is surer than that the
# weights it lacks are small.
ADAPTING = Penalty(c2=0.3, min_freq=1, held=10.0)


def untrained(
    base: TaggerModel,
    plan: FeaturePlan | None,
    lexicon: Lexicon | None,
    scheme: Scheme,
    tokenizer: TokenizerSettings | None,
) -> TaggerModel:
    """The base without its weights and links. ValueError where a tagger asks for features, words, tags or a tokenizer
    that are not the base's: its weights would mean other things.
    """
    if plan is not None and plan != base.plan:
        raise ValueError("the base has another feature plan: give none, so that its own is used")
    if lexicon is not None and lexicon is not base.lexicon:
        raise ValueError("the base has word classes and gazetteers of its own: give no lexicon")
    if scheme != base.scheme:
        raise ValueError(f"the base has tags in the scheme {base.scheme}, not {scheme}: give the scheme {base.scheme}")
    if tokenizer is not None and tokenizer.language != base.tokenizer.language:
        raise ValueError(
            f"the base was trained for the language {base.tokenizer.language!r}, not {tokenizer.language!r}: adapt a"
            " model of that language, or train one from nothing"
        )
    return replace(base, weights=ChainWeights.none(), link_tables=(), calibration=None, card={})


def look_alikes(classes: Collection[str], base: Collection[str]) -> dict[str, str]:
    """Of classes of documents that a base does not have: the class of the base that they seem to be, by its name, where
    the documents do not have that one too.
    """
    free = sorted(set(base) - set(classes))
    pairs = ((new, old) for new in sorted(set(classes) - set(base)) for old in free if _alike(new, old))
    return dict(pairs)


def tell_look_alikes(gold: Iterable[Iterable[str]], base: Sequence[str]) -> None:
    """A warning where classes of these tags seem to be some of a base, by its tags, under other names."""
    used = {split_tag(tag)[1] for tags in gold for tag in tags} - {""}
    found = look_alikes(used, {split_tag(tag)[1] for tag in base} - {""}) if base else {}
    if found:
        pairs = [f"{new}={old}" for new, old in found.items()]
        logger.warning(
            "%s looks like %s of the base, and will be a class beside it; if they are one, rename it: --rename %s on"
            " the command line, labels=%s for read_documents",
            " and ".join(found), " and ".join(found.values()), " --rename ".join(pairs), found,
        )  # fmt: skip


def _alike(one: str, other: str) -> bool:
    """Whether two names of classes differ in case, punctuation or number alone, or are synonyms."""
    a, b = ("".join(filter(str.isalpha, label.casefold())).removesuffix("s") for label in (one, other))
    return a == b or any(a in names and b in names for names in _SYNONYMS)


def checked_start(start: TaggerModel, plan: FeaturePlan, lexicon: Lexicon, labels: Sequence[str]) -> ChainWeights:
    """The weights with which training starts. ValueError where its features or tags are others."""
    if start.plan != plan or _names(start.lexicon) != _names(lexicon):
        raise ValueError("the model to start from has other features: start from one of the same plan and lexicon")
    if unknown := sorted(set(start.weights.labels) - set(labels)):
        raise ValueError(
            f"the model to start from has the tag {unknown[0]}, which these documents lack: start from another, or give"
            " it as base"
        )
    return start.weights


def _names(lexicon: Lexicon) -> tuple[str, ...]:
    return lexicon.gazetteers.names if lexicon.gazetteers is not None else ()


def link_tables(
    templates: Sequence[SkipChain], base: TaggerModel | None, labels: Sequence[str]
) -> tuple[LinkTable, ...]:
    """The tables where the learning of links begins: those of the base where it has the template, else 0; the tags of
    new classes have 0.
    """
    known = {} if base is None else {each.template: each for each in base.link_tables}
    old = () if base is None else base.weights.labels
    found: list[LinkTable] = []
    for template in templates:
        table, own = np.zeros((len(labels), len(labels))), known.get(template)
        if own is not None:
            places = np.array([list(labels).index(label) for label in old], np.int64)
            table[np.ix_(places, places)] = own.table
        found.append(LinkTable(template, table))
    return tuple(found)
