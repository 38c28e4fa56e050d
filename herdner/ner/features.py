"""Feature plans: specifications of a tagger's features as plain values, which are stored in model files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from herdner._ext.feature_tables import FeatureWeights
from herdner._ext.features import (
    MAX_GAZETTEERS,
    MAX_OCCURRENCES,
    MAX_OFFSET,
    POSITION_ATTRIBUTES,
    TYPE_ATTRIBUTES,
    Extractor,
)
from herdner._ext.hashing import hash_string
from herdner._ext.network import CompiledNetwork
from herdner.base.arrays import Int32s
from herdner.base.locks import ForkLock
from herdner.ner.lexicon import Lexicon

if TYPE_CHECKING:
    from herdner._ext.features import PlanArrays

MAX_TEMPLATES, MAX_ITEMS = 2000, 5000  # limits of a plan; each item of an untrusted model file costs time per token
_SIDES = "left", "right"  # of another occurrence of a word, whose neighbour has an attribute in `elsewhere`
TOPIC_ATTRIBUTES = POSITION_ATTRIBUTES[-3:]
_ITEM = re.compile(r"([^][|]+)\[(-?\d+)\]")
_Template = tuple[str, list[tuple[int, int]]]  # text of the template; column of the attribute and offset of each item


class CompiledTemplate(NamedTuple):
    """Compiled feature template: a list of items, each an attribute and the offset of the token with this attribute.

    Attributes:
        items: Column of the attribute and offset of each item.
        side: "left" or "right" if the template reads the neighbour on this side of other occurrences of the word; None
            if it reads tokens near the token itself.
    """

    items: tuple[tuple[int, int], ...]
    side: str | None = None


@dataclass(frozen=True)
class FeaturePlan:
    """Templates and options from which the features of a tagger are computed.

    Attributes:
        templates: Templates such as ``"lower[-1]|brief_shape[0]"``: items ``attribute[offset]`` joined by ``|``.
            Attributes are ``TYPE_ATTRIBUTES``, which depend only on the word; ``POSITION_ATTRIBUTES``, which depend
            also on its context; and ``gazetteer:NAME`` for each of ``gazetteers``.
        elsewhere: Attributes to read from the neighbours of other occurrences of a capitalised word in the document
            (context aggregation, Chieu and Ng 2003; Ratinov and Roth 2009).
        n_occurrences: Largest number of other occurrences to read before the word, and the same number after it. The
            nearest ones are read.
        gazetteers: Names of the gazetteers that the features read.
        recasing: Restore the usual case of texts that are entirely in lower or upper case, and of headlines in title
            case, with capitals for names in these gazetteers (``herdner.ner.recasing``). None leaves all texts
            unchanged.
    """

    templates: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()
    n_occurrences: int = 0
    gazetteers: tuple[str, ...] = ()
    recasing: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        """Return a summary of the feature plan. The templates are omitted, because there may be hundreds."""
        return f"FeaturePlan({len(self.templates)} templates, gazetteers={self.gazetteers!r})"

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> FeaturePlan:
        """Build a feature plan from the dict that `dataclasses.asdict` returns for a plan.

        Args:
            values: Values, for example from a file.

        Returns:
            The feature plan.

        Raises:
            ValueError: A key is unknown.
            KeyError: A key is missing.
        """
        names = [field.name for field in fields(FeaturePlan)]
        if unknown := sorted(set(values) - set(names)):
            raise ValueError(f"feature plan: unknown key {unknown[0]!r}; expected {', '.join(names)}")
        templates, elsewhere, n_occurrences, gazetteers, recasing = (values[name] for name in names)
        recasing = None if recasing is None else tuple(recasing)
        return FeaturePlan(tuple(templates), tuple(elsewhere), n_occurrences, tuple(gazetteers), recasing)

    def compile(self) -> PlanArrays:
        """Return the feature plan as arrays, the input of ``herdner._ext.features.Extractor``.

        Raises:
            ValueError: A template, an attribute or a number is invalid.
        """
        n = cast(object, self.n_occurrences)  # a value from a file may have any type
        if not isinstance(n, int) or not 0 <= n <= MAX_OCCURRENCES:
            raise ValueError(f"feature plan: n_occurrences must be an integer from 0 to {MAX_OCCURRENCES}, got {n!r}")
        if len(self.gazetteers) > MAX_GAZETTEERS or len(set(self.gazetteers)) < len(self.gazetteers):
            raise ValueError(
                f"feature plan: gazetteers must be at most {MAX_GAZETTEERS} distinct names, got {self.gazetteers!r:.80}"
            )
        singles, conjunctions = self._split_templates()
        lengths = [len(items) for _, items in conjunctions]
        offsets = [abs(offset) for _, items in singles for _, offset in items]
        beside = [f"{side}:{name}" for name, side in product(self.elsewhere, _SIDES)]
        return {
            "singles": _pairs([items[0] for _, items in singles]),
            "single_seeds": _seeds([template for template, _ in singles]),
            "conjunctions": _pairs([item for _, items in conjunctions for item in items]),
            "conjunction_starts": np.cumsum([0, *lengths], dtype=np.int32),
            "conjunction_seeds": _seeds([template for template, _ in conjunctions]),
            "elsewhere": np.array([_word_attribute(name) for name in self.elsewhere], np.int32),
            "elsewhere_seeds": _seeds(beside).reshape(-1, 2),
            "n_occurrences": self.n_occurrences,
            "window": max(offsets, default=0),
        }

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes of a token, in the order of the columns of ``herdner._ext.features.Extractor``."""
        return (*TYPE_ATTRIBUTES, *POSITION_ATTRIBUTES, *(f"gazetteer:{name}" for name in self.gazetteers))

    def compiled_templates(self) -> list[CompiledTemplate]:
        """Return the compiled templates, in the order of their indices in the feature extractor."""
        singles, conjunctions = (
            [CompiledTemplate(tuple(items)) for _, items in templates] for templates in self._split_templates()
        )
        sides = product(self.elsewhere, _SIDES)
        beside = [CompiledTemplate(((_word_attribute(name), 0),), side) for name, side in sides]
        return [*singles, *beside, *conjunctions]

    def _split_templates(self) -> tuple[list[_Template], list[_Template]]:
        """Return two lists: templates with a single item whose attribute depends only on the word, and all others."""
        if len(set(self.elsewhere)) < len(self.elsewhere):
            raise ValueError(f"feature plan: `elsewhere` must not repeat an attribute, got {self.elsewhere!r:.80}")
        n_items = len(self.templates) + sum(template.count("|") for template in self.templates)
        if len(self.templates) > MAX_TEMPLATES or n_items > MAX_ITEMS:
            raise ValueError(
                f"feature plan: there must be at most {MAX_TEMPLATES} templates and {MAX_ITEMS} items in total, got"
                f" {len(self.templates)} templates and {n_items} items"
            )
        attributes = {name: i for i, name in enumerate(self.attributes)}
        singles: list[_Template] = []
        conjunctions: list[_Template] = []
        for template in self.templates:
            items = self._parse(template, attributes)
            is_single = len(items) == 1 and items[0][0] < len(TYPE_ATTRIBUTES)
            (singles if is_single else conjunctions).append((template, items))
        return singles, conjunctions

    @staticmethod
    def _parse(template: str, attributes: Mapping[str, int]) -> list[tuple[int, int]]:
        items: list[tuple[int, int]] = []
        for item in template.split("|"):
            match = _ITEM.fullmatch(item)
            if match is None or match[1] not in attributes or abs(int(match[2])) > MAX_OFFSET:
                raise ValueError(
                    f"feature template {template!r}: {item!r} must have the form attribute[offset]; the attributes are"
                    f" {', '.join(attributes)}, and offsets range from -{MAX_OFFSET} to {MAX_OFFSET}"
                )
            items.append((attributes[match[1]], int(match[2])))
        return items


def make_extractor(
    plan: FeaturePlan,
    lexicon: Lexicon,
    weights: FeatureWeights | None = None,
    network: CompiledNetwork | None = None,
) -> Extractor:
    """Return the compiled feature extractor for a feature plan.

    Args:
        plan: Feature plan.
        lexicon: Lexical resources that the features read.
        weights: Weights of the features. None for training, which needs features but no scores.
        network: Neural network whose scores are added to those of the features, or None.

    Raises:
        ValueError: The plan is invalid.
    """
    phrases = None if lexicon.gazetteers is None else lexicon.gazetteers.phrases
    values = lexicon.classes, lexicon.vectors, phrases
    classes, vectors, gazetteers = (None if each is None else each.table() for each in values)
    arrays, n_gazetteers, lock = plan.compile(), len(plan.gazetteers), ForkLock()
    return Extractor(arrays, classes, vectors, gazetteers, n_gazetteers, lock, weights, lexicon.topics, network)


def _word_attribute(name: str) -> int:
    if name not in TYPE_ATTRIBUTES:
        raise ValueError(
            f"feature plan: {name!r} is not an attribute of words; expected one of {', '.join(TYPE_ATTRIBUTES)}"
        )
    return TYPE_ATTRIBUTES.index(name)


def _pairs(items: list[tuple[int, int]]) -> Int32s:
    return np.reshape(np.array(items, np.int32), (-1, 2))


def _seeds(names: list[str]) -> NDArray[np.uint64]:
    return np.array([hash_string(name) for name in names], np.uint64)


def default_plan(
    gazetteers: Sequence[str] = (), recasing: Sequence[str] | None = None, topics: bool = False
) -> FeaturePlan:
    """Return the default feature plan of a tagger.

    The features are words, shapes, affixes, word classes, windows, bigrams, runs of capitalised words, the case of
    other occurrences, gazetteers, and the neighbours of other occurrences.

    Args:
        gazetteers: Names of the gazetteers that the features read.
        recasing: Value of `FeaturePlan.recasing`.
        topics: Add conjunctions of the topic of the document with shape, class and word.
    """

    def at(offsets: Sequence[int], *attributes: str) -> list[str]:
        return [f"{attribute}[{offset}]" for attribute in attributes for offset in offsets]

    templates = [
        *at((-2, -1, 0, 1, 2), "word", "lower", "brief_shape", "class4", "class6", "class10", "class20"),
        *at((-2, -1, 0, 1, 2), "vector32", "vector128", "vector512", "vector2048"),
        *at((-1, 0, 1), "shape", "prefix2", "prefix3", "suffix2", "suffix3", "casing"),
        *at((0,), "digits", "prefix1", "prefix4", "prefix5", "suffix1", "suffix4", "suffix5"),
        *at((0,), "headline", "run", "run_first", "run_last", "run_before", "run_after", "bias"),
        "word[-1]|word[0]", "word[0]|word[1]", "lower[-1]|lower[1]", "lower[-2]|lower[-1]", "lower[1]|lower[2]",
        "brief_shape[-1]|brief_shape[0]", "brief_shape[0]|brief_shape[1]",
        "brief_shape[-1]|brief_shape[0]|brief_shape[1]",
        "class6[-1]|class6[0]", "class6[0]|class6[1]", "class10[-1]|brief_shape[0]", "brief_shape[0]|class10[1]",
        "word[-1]|brief_shape[0]", "brief_shape[0]|word[1]", "casing[0]|brief_shape[0]", "word[0]|casing[0]",
        "headline[0]|lower[0]", "run[0]|run_before[0]", "run[0]|run_after[0]", "run_last[0]|run[0]",
    ]  # fmt: skip
    for name in gazetteers:
        templates += [*at((-1, 0, 1), f"gazetteer:{name}"), f"gazetteer:{name}[0]|casing[0]"]
    if topics:
        templates += [f"{t}[0]|{a}[0]" for t in TOPIC_ATTRIBUTES for a in ("brief_shape", "vector128", "lower")]
    elsewhere = "lower", "class10", "brief_shape"
    return FeaturePlan(tuple(templates), elsewhere, 3, tuple(gazetteers), None if recasing is None else tuple(recasing))
