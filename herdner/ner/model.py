"""Trained parameters of taggers, and their model files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from herdner._ext.feature_tables import FeatureWeights
from herdner._ext.features import Extractor
from herdner._ext.hashing import check_collisions
from herdner.base.npz import Where
from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.templates import MOST_LINK_TABLES, SkipChain, check_link_costs
from herdner.crf.weights import MOST_TAGS, ChainWeights
from herdner.ner.calibration import Calibration
from herdner.ner.features import FeaturePlan, make_extractor
from herdner.ner.lexicon import Gazetteers, Lexicon, Topics, WordValues
from herdner.ner.model_file import (
    add_shared_arrays,
    check_arrays,
    intact,
    read_model,
    remove_shared_arrays,
    write_model,
)
from herdner.ner.network import ARRAYS as _NETWORK_ARRAYS
from herdner.ner.network import Network
from herdner.text.tags import SCHEMES, Scheme, check_tags
from herdner.text.tokenize import TokenizerSettings


@dataclass(frozen=True)
class TaggerModel:
    """Trained parameters of a tagger: its features, tags, weights and link tables.

    Attributes:
        weights: Weights of features and transitions.
        plan: Features.
        lexicon: Word classes, gazetteers and topics that the features read.
        scheme: Scheme of the tags.
        constrained: Forbid tag sequences that are not well formed in ``scheme``.
        tokenizer: Settings of the tokenizer.
        card: Description of the model: training corpora, licences, options and scores.
        link_tables: Link rules and the log-potentials of their links.
        calibration: Calibration of confidences, or None.
        network: Neural network whose scores are added to the log-potentials of the features, or None.
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
    network: Network | None = None

    def crf(self) -> SkipChainModel:
        """Build the skip-chain model of the tagger. Transitions that the tag scheme forbids have log-potential -inf.

        Returns:
            The skip-chain model.
        """
        scheme = self.scheme if self.constrained else None
        return SkipChainModel.for_tags(self.weights.tags, scheme, self.weights.transition, self.link_tables)

    def extractor(self) -> Extractor:
        """Return the compiled feature extractor, which contains the weights and the network of the model."""
        w = self.weights
        table = FeatureWeights(w.keys, w.starts, w.entry_tags, w.entry_weights, len(w.tags))
        network = None if self.network is None else self.network.compile(w.tags, self.plan.gazetteers)
        return make_extractor(self.plan, self.lexicon, table, network)

    def save(self, where: Where, *, weight_type: str = "float64", shared_lexicon: str | None = None) -> None:
        """Write the model to a stream or a file. A file is written atomically.

        Args:
            where: Path or binary stream.
            weight_type: Type of the stored feature weights: "float64", or "float32" or "float16", which round them.
            shared_lexicon: Name of a shipped model. Word classes and vector classes are not stored in the file if they
                equal those of the shipped model; `load` reads them from the shipped model.

        Raises:
            ValueError: Neither word classes nor vector classes equal those of the shipped model, or `load` would refuse
                the model, for example because a weight is too large for ``weight_type``.
        """
        w = self.weights
        arrays = {
            "transition": w.transition,
            "feature_keys": np.diff(w.keys, prepend=np.uint64(0)),  # differences of sorted keys compress better
            "feature_sizes": np.diff(w.starts).astype(np.uint16),
            "feature_tags": w.entry_tags.astype(np.uint8),
            "feature_weights": w.entry_weights.astype(weight_type),
        }
        if self.link_tables:
            arrays["link_tables"] = np.stack([each.table for each in self.link_tables])
        if self.lexicon.classes is not None:
            arrays |= _pack("word_classes", self.lexicon.classes)
        if self.lexicon.vectors is not None:
            arrays |= _pack("vector_classes", self.lexicon.vectors)
        if self.lexicon.topics is not None:
            arrays["topics"] = self.lexicon.topics.centres
        if self.lexicon.gazetteers is not None:
            arrays |= _pack("gazetteers", self.lexicon.gazetteers.phrases)
        header = {
            "tags": list(w.tags), "plan": asdict(self.plan), "scheme": self.scheme, "constrained": self.constrained,
            "gazetteers": list(self.lexicon.gazetteer_names),
            "tokenizer": self.tokenizer.to_dict(), "card": dict(self.card),
            "links": [link_table_to_dict(each) for each in self.link_tables],
        }  # fmt: skip
        if self.calibration is not None:
            header["calibration"] = self.calibration.to_dict()
        if self.network is not None:
            header["network"], arrays = self.network.to_dict(), {**arrays, **self.network.to_arrays()}
        _model(json.loads(json.dumps(header)), arrays)  # raises for what `load` refuses
        if shared_lexicon is not None:
            header["shared_lexicon"], arrays = remove_shared_arrays(arrays, shared_lexicon, _SHARED)
        write_model(where, header, arrays)

    @staticmethod
    def load(where: Where) -> TaggerModel:
        """Read a tagger model from a file or from a stream.

        Args:
            where: Path or binary stream.

        Returns:
            The model.

        Raises:
            ModelError: The file is missing, damaged or not a model.
        """
        file = read_model(where)
        with intact(where, "model", "train"):
            return _model(file.header, add_shared_arrays(file, _SHARED))


# Type and number of axes of each array of a model file.
_ARRAYS = {
    "transition": ("<f8", 2), "feature_keys": ("<u8", 1), "feature_sizes": ("<u2", 1), "feature_tags": ("|u1", 1),
    "feature_weights": ("<f8 <f4 <f2", 1), "link_tables": ("<f8", 3),
    "word_classes_keys": ("<u8", 1), "word_classes_values": ("<u4", 1),
    "vector_classes_keys": ("<u8", 1), "vector_classes_values": ("<u4", 1),
    "topics": ("<f4", 2), "gazetteers_keys": ("<u8", 1), "gazetteers_values": ("<u4", 1), **_NETWORK_ARRAYS,
}  # fmt: skip

_SHARED = "word_classes_keys", "word_classes_values", "vector_classes_keys", "vector_classes_values"


def _pack(name: str, table: WordValues) -> dict[str, NDArray[Any]]:
    return {f"{name}_keys": np.diff(table.keys, prepend=np.uint64(0)), f"{name}_values": table.values}


def _model(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TaggerModel:
    check_arrays(arrays, _ARRAYS)
    tags = parse_strings(header["tags"], "tags")
    plan = FeaturePlan.from_dict(header["plan"])
    scheme: Scheme = header["scheme"]
    if scheme not in SCHEMES:
        raise ValueError(f"unknown tag scheme {scheme!r}; expected one of {', '.join(SCHEMES)}")
    check_tags(tags, scheme)
    plan.compile()  # raises for invalid templates, before any text is tagged
    classes = _unpack("word_classes", arrays) if "word_classes_keys" in arrays else None
    vectors = _unpack("vector_classes", arrays) if "vector_classes_keys" in arrays else None
    topics = Topics(arrays["topics"]) if "topics" in arrays else None
    names = parse_strings(header["gazetteers"], "gazetteers")
    if plan.gazetteers != names:
        raise ValueError(f"the feature plan needs the gazetteers {plan.gazetteers}, but the model file has {names}")
    gazetteers = Gazetteers(names, _unpack("gazetteers", arrays)) if names else None
    network = None
    if "network" in header:
        network = Network.of(header["network"], arrays, 0 if vectors is None else len(vectors.keys))
        network.compile(tags, names)  # raises for attributes that the model does not have
    return TaggerModel(
        weights=_weights(tags, arrays),
        plan=plan,
        lexicon=Lexicon(classes, gazetteers, vectors, topics),
        scheme=scheme,
        constrained=parse_bool(header["constrained"], "constrained"),
        tokenizer=TokenizerSettings.from_dict(header["tokenizer"]),
        card=dict(header["card"]),
        link_tables=link_tables_from(header.get("links", ()), arrays, len(tags)),
        calibration=Calibration.from_dict(header["calibration"]) if "calibration" in header else None,
        network=network,
    )


def parse_strings(value: object, name: str) -> tuple[str, ...]:
    """Convert a header value of a model file to a tuple of strings.

    Args:
        value: The value.
        name: Key of the value, for the error message.

    Returns:
        The strings.

    Raises:
        ValueError: The value is not a list of strings.
    """
    items = cast(list[object], value) if isinstance(value, list) else [None]
    if not all(isinstance(item, str) for item in items):
        raise ValueError(f"the value of {name} must be a list of strings, got {value!r:.80}")
    return tuple(map(str, items))


def parse_bool(value: object, name: str) -> bool:
    """Return a header value of a model file, after a check that it is a Boolean.

    Args:
        value: The value.
        name: Key of the value, for the error message.

    Raises:
        ValueError: The value is not true or false.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r:.80}")
    return value


def link_table_to_dict(each: LinkTable) -> dict[str, Any]:
    """Return the template of a link table as a dict of JSON values.

    The numbers of the table are stored separately as an array.

    Args:
        each: The link table.
    """
    return {"template": each.template.to_dict()}


def link_tables_from(
    headers: Sequence[Mapping[str, Any]], arrays: Mapping[str, NDArray[Any]], n_tags: int
) -> tuple[LinkTable, ...]:
    """Build the link tables of a model from the header and the arrays of a model file.

    Args:
        headers: JSON values of `link_table_to_dict`.
        arrays: Arrays of the file.
        n_tags: Number of tags, K.

    Returns:
        The link tables.

    Raises:
        ValueError: The header or the arrays are invalid.
    """
    if not headers:
        return ()
    if len(headers) > MOST_LINK_TABLES:  # before the templates are built
        raise ValueError(f"a model must have at most {MOST_LINK_TABLES} link tables, got {len(headers)}")
    tables = arrays["link_tables"]
    if tables.shape != (len(headers), n_tags, n_tags):
        raise ValueError(f"the link tables must have shape {(len(headers), n_tags, n_tags)}, got {tables.shape}")
    templates = [SkipChain.from_dict(header["template"]) for header in headers]
    check_link_costs(templates, n_tags)
    return tuple(LinkTable(template, table) for template, table in zip(templates, tables, strict=True))


def _weights(tags: tuple[str, ...], arrays: Mapping[str, NDArray[Any]]) -> ChainWeights:
    """Build the weights of a tagger model from arrays; check all indices, because compiled loops do not check them."""
    transition, entry_tags = arrays["transition"], arrays["feature_tags"]
    sizes = arrays["feature_sizes"].astype(np.int64)
    entry_weights = arrays["feature_weights"].astype(np.float64)
    keys = _cumulative_hashes(arrays["feature_keys"])
    starts = np.append(0, np.cumsum(sizes))
    if not 1 <= len(tags) <= MOST_TAGS or len(set(tags)) != len(tags):
        raise ValueError(
            f"a model must have 1 to {MOST_TAGS} distinct tags, got {len(tags)} tags, {len(set(tags))} of them distinct"
        )
    if transition.shape != (len(tags), len(tags)):
        raise ValueError(f"the transition table must have shape {(len(tags),) * 2}, got {transition.shape}")
    if len(keys) != len(sizes) or starts[-1] != len(entry_tags) or len(entry_tags) != len(entry_weights):
        raise ValueError(
            f"the lengths of the arrays of feature weights contradict each other: {len(keys)} keys, {len(sizes)} sizes,"
            f" {len(entry_tags)} tags and {len(entry_weights)} weights"
        )
    if sizes.max(initial=0) > len(tags):
        raise ValueError(f"a feature must have at most {len(tags)} weights, one for each tag, got {sizes.max()}")
    if len(entry_tags) and entry_tags.max() >= len(tags):
        raise ValueError(f"a feature weight refers to tag {entry_tags.max()}, but the tags are 0 to {len(tags) - 1}")
    return ChainWeights(tags, transition, keys, starts.astype(np.uint32), entry_tags, entry_weights)


def _unpack(name: str, arrays: Mapping[str, NDArray[Any]]) -> WordValues:
    keys, values = _cumulative_hashes(arrays[f"{name}_keys"]), arrays[f"{name}_values"]
    if keys.shape != values.shape:
        raise ValueError(f"the keys and values of {name} must have equal lengths, got {keys.shape} and {values.shape}")
    return WordValues(keys, values)


def _cumulative_hashes(differences: NDArray[Any]) -> NDArray[np.uint64]:
    """Compute ascending hashes from the differences between consecutive hashes.

    Raises:
        ValueError: The hashes do not ascend strictly, or were chosen so that look-ups would be slow.
    """
    keys = np.cumsum(differences, dtype=np.uint64)
    if len(keys) and (keys[0] == 0 or (keys[1:] <= keys[:-1]).any()):
        raise ValueError("the stored hashes must be strictly ascending")
    check_collisions(keys)
    return keys
