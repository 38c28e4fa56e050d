"""A trained tagger as a value: weights, feature plan, word knowledge, tokenizer settings and card; saved and loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from herdner._ext.feature_tables import FeatureWeights
from herdner._ext.features import Extractor
from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.templates import SkipChain
from herdner.crf.weights import MOST_TAGS, ChainWeights
from herdner.ner.calibration import Calibration
from herdner.ner.features import FeaturePlan, make_extractor
from herdner.ner.lexicon import Gazetteers, Lexicon, Topics, WordValues
from herdner.ner.model_file import check_arrays, read_model, undamaged, write_model
from herdner.text.tags import SCHEMES, Scheme, check_tags
from herdner.text.tokenize import TokenizerSettings


@dataclass(frozen=True)
class TaggerModel:
    """Everything that tagging depends on.

    Attributes:
        weights: Of the features and transitions.
        plan: The features.
        lexicon: Word classes and gazetteers that they read.
        scheme: Of the tags.
        constrained: Tag sequences that are not well formed in ``scheme`` have log-potential -inf.
        tokenizer: Settings with which text is split.
        card: Where the model comes from (corpora, licences, options, scores).
        link_tables: Link the tokens of a document.
        calibration: How often names are right of which the CRF is so sure; None, as in older files: not known.
    """

    weights: ChainWeights
    plan: FeaturePlan
    lexicon: Lexicon = field(default_factory=Lexicon)
    scheme: Scheme = "iobes"
    constrained: bool = True
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    card: Mapping[str, Any] = field(default_factory=dict[str, Any])
    link_tables: tuple[LinkTable, ...] = ()
    calibration: Calibration | None = None

    def crf(self) -> SkipChainModel:
        """The tied tables, with -inf for what the scheme forbids."""
        scheme = self.scheme if self.constrained else None
        return SkipChainModel.for_tags(self.weights.labels, scheme, self.weights.transition, self.link_tables)

    def extractor(self) -> Extractor:
        """The compiled features, with their weights."""
        w = self.weights
        table = FeatureWeights(w.keys, w.starts, w.entry_labels, w.entry_weights, len(w.labels))
        return make_extractor(self.plan, self.lexicon, table)

    def save(self, where: str | os.PathLike[str] | IO[bytes], *, weight_type: str = "float64") -> None:
        """Write one file, atomically, or to a stream. ``weight_type`` float32 or float16 makes it smaller and rounds
        the weights.
        """
        w = self.weights
        arrays = {
            "transition": w.transition,
            "feature_keys": np.diff(
                w.keys, prepend=np.uint64(0)
            ),  # differences of sorted keys are smaller, so pack better
            "feature_sizes": np.diff(w.starts).astype(np.uint16),
            "feature_labels": w.entry_labels.astype(np.uint8),
            "feature_weights": w.entry_weights.astype(weight_type),
        }
        if self.link_tables:
            arrays["link_tables"] = np.stack([each.table for each in self.link_tables])
        if self.lexicon.classes is not None:
            arrays |= _packed("classes", self.lexicon.classes)
        if self.lexicon.vectors is not None:
            arrays |= _packed("vectors", self.lexicon.vectors)
        if self.lexicon.topics is not None:
            arrays["topics"] = self.lexicon.topics.centres
        if self.lexicon.gazetteers is not None:
            arrays |= _packed("gazetteers", self.lexicon.gazetteers.phrases)
        header = {
            "labels": list(w.labels), "plan": asdict(self.plan), "scheme": self.scheme, "constrained": self.constrained,
            "gazetteers": list(self.lexicon.gazetteers.names) if self.lexicon.gazetteers is not None else [],
            "tokenizer": self.tokenizer.to_dict(), "card": dict(self.card),
            "links": [link_table_to_dict(each) for each in self.link_tables],
        }  # fmt: skip
        if self.calibration is not None:
            header["calibration"] = self.calibration.to_dict()
        write_model(where, header, arrays)

    @staticmethod
    def load(where: str | os.PathLike[str] | IO[bytes]) -> TaggerModel:
        """Read a model file, or a stream of its bytes.

        Raises:
            ModelError: The file is not a whole, sound model.
        """
        file = read_model(where)
        with undamaged(where, "model", "train"):
            return _model(file.header, file.arrays)


# Types, and numbers of axes.
_ARRAYS = {
    "transition": ("<f8", 2), "feature_keys": ("<u8", 1), "feature_sizes": ("<u2", 1), "feature_labels": ("|u1", 1),
    "feature_weights": ("<f8 <f4 <f2", 1), "link_tables": ("<f8", 3),
    "classes_keys": ("<u8", 1), "classes_values": ("<u4", 1), "vectors_keys": ("<u8", 1), "vectors_values": ("<u4", 1),
    "topics": ("<f4", 2), "gazetteers_keys": ("<u8", 1), "gazetteers_values": ("<u4", 1),
}  # fmt: skip


def _packed(name: str, table: WordValues) -> dict[str, NDArray[Any]]:
    return {f"{name}_keys": np.diff(table.keys, prepend=np.uint64(0)), f"{name}_values": table.values}


def _model(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TaggerModel:
    check_arrays(arrays, _ARRAYS)
    labels = words(header["labels"], "tags")
    plan = FeaturePlan.from_dict(header["plan"])
    scheme: Scheme = header["scheme"]
    if scheme not in SCHEMES:
        raise ValueError(f"unknown tag scheme {scheme!r}; known are {', '.join(SCHEMES)}")
    check_tags(labels, scheme)
    plan.compile()  # templates that do not exist are found here, not when the first text is tagged
    classes = _unpacked("classes", arrays) if "classes_keys" in arrays else None
    vectors = _unpacked("vectors", arrays) if "vectors_keys" in arrays else None
    topics = Topics(arrays["topics"]) if "topics" in arrays else None
    names = words(header["gazetteers"], "gazetteers")
    if plan.gazetteers != names:
        raise ValueError(f"its plan reads the gazetteers {plan.gazetteers}, and it holds {names}")
    gazetteers = Gazetteers(names, _unpacked("gazetteers", arrays)) if names else None
    return TaggerModel(
        weights=_weights(labels, arrays),
        plan=plan,
        lexicon=Lexicon(classes, gazetteers, vectors, topics),
        scheme=scheme,
        constrained=truth(header["constrained"], "constrained"),
        tokenizer=TokenizerSettings.from_dict(header["tokenizer"]),
        card=dict(header["card"]),
        link_tables=link_tables_from(header.get("links", ()), arrays, len(labels)),
        calibration=Calibration.from_dict(header["calibration"]) if "calibration" in header else None,
    )


def words(value: object, name: str) -> tuple[str, ...]:
    """A list of strings out of a header.

    Raises:
        ValueError: The value is anything else.
    """
    listed = cast(list[object], value) if isinstance(value, list) else [None]
    if not all(isinstance(word, str) for word in listed):
        raise ValueError(f"its {name} are no list of strings")
    return tuple(map(str, listed))


def truth(value: object, name: str) -> bool:
    """True or False out of a header.

    Raises:
        ValueError: The value is anything else.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r:.80}, not true or false")
    return value


def link_table_to_dict(each: LinkTable) -> dict[str, Any]:
    """Plain data for JSON: what finds the links; the table is stored beside it."""
    return {"template": each.template.to_dict()}


def link_tables_from(
    headers: Sequence[Mapping[str, Any]], arrays: Mapping[str, NDArray[Any]], n_labels: int
) -> tuple[LinkTable, ...]:
    """The links of a document with their tables, finite ones, as a model file has them.

    Raises:
        ValueError: The header or the arrays are anything else.
    """
    if not headers:
        return ()
    tables = arrays["link_tables"]
    if tables.shape != (len(headers), n_labels, n_labels):
        raise ValueError("its tables of links do not fit its tags")
    return tuple(
        LinkTable(SkipChain.from_dict(header["template"]), table) for header, table in zip(headers, tables, strict=True)
    )


def _weights(labels: tuple[str, ...], arrays: Mapping[str, NDArray[Any]]) -> ChainWeights:
    """The weights, checked so far that compiled loops can trust their indices."""
    transition, entry_labels = arrays["transition"], arrays["feature_labels"]
    sizes = arrays["feature_sizes"].astype(np.int64)
    entry_weights = arrays["feature_weights"].astype(np.float64)
    keys = _ascending(arrays["feature_keys"])
    starts = np.append(0, np.cumsum(sizes))
    if not 1 <= len(labels) <= MOST_TAGS or len(set(labels)) != len(labels):
        raise ValueError(f"its tags are not 1 to {MOST_TAGS} distinct strings")
    if transition.shape != (len(labels), len(labels)):
        raise ValueError("its transition table does not fit its tags")
    if len(keys) != len(sizes) or starts[-1] != len(entry_labels) or len(entry_labels) != len(entry_weights):
        raise ValueError("its feature arrays differ in length")
    if len(entry_labels) and entry_labels.max() >= len(labels):
        raise ValueError("its feature weights name tags that it has not")
    return ChainWeights(labels, transition, keys, starts.astype(np.uint32), entry_labels, entry_weights)


def _unpacked(name: str, arrays: Mapping[str, NDArray[Any]]) -> WordValues:
    keys, values = _ascending(arrays[f"{name}_keys"]), arrays[f"{name}_values"]
    if keys.shape != values.shape:
        raise ValueError(f"its {name} differ in length")
    return WordValues(keys, values)


def _ascending(differences: NDArray[Any]) -> NDArray[np.uint64]:
    """Keys from their differences; they must ascend, so that none is 0 and none stands twice."""
    keys = np.cumsum(differences, dtype=np.uint64)
    if len(keys) and (keys[0] == 0 or (keys[1:] <= keys[:-1]).any()):
        raise ValueError("its keys do not ascend")
    return keys
