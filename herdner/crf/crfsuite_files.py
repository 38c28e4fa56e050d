"""Training by CRFsuite (Okazaki 2007), and a reader and a writer of its model files at full precision.

Model files contain weights as doubles. The dump of python-crfsuite prints only six decimals of them. The layout is
that of CRFsuite 0.12: ``lib/crf/src/crf1d_model.c`` (header, features, labels, attributes) and ``lib/cqdb`` (the string
tables).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner._ext.attributes import quark_hash
from herdner.base.arrays import Int64s
from herdner.base.extras import check_extra
from herdner.base.files import atomic_write
from herdner.crf.attribute_weights import AttributeWeights
from herdner.crf.trainer import TrainingProgress
from herdner.crf.weights import MOST_TAGS, ChainWeights, Keys

_HEADER = np.dtype(
    [
        ("magic", "S4"), ("size", "<u4"), ("type", "S4"), ("version", "<u4"),
        ("n_features", "<u4"), ("n_labels", "<u4"), ("n_attributes", "<u4"),
        ("features", "<u4"), ("labels", "<u4"), ("attributes", "<u4"), ("refs", "<u4", 2),
    ]
)  # fmt: skip
_FEATURE = np.dtype([("type", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
_STATE, _TRANSITION = 0, 1


_N_TABLES = 256  # hash tables of a string table
_BYTE_ORDER = 0x62445371


def read_crfsuite(path: str | Path) -> AttributeWeights:
    """Read the weights in a CRFsuite model file.

    Args:
        path: Path of the file.

    Returns:
        The names of labels and attributes, and their weights.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a linear-chain model of CRFsuite, or has more than 256 labels.
    """
    return parse_crfsuite(Path(path).read_bytes(), str(path))


def parse_crfsuite(data: bytes, name: str) -> AttributeWeights:
    """Read the weights in the content of a CRFsuite model file.

    Args:
        data: Content of the file.
        name: Name of the file for error messages.

    Returns:
        The names of labels and attributes, and their weights.

    Raises:
        ValueError: The content is not a linear-chain model of CRFsuite, or has more than 256 labels.
    """
    try:
        header = np.frombuffer(data, _HEADER, 1)[0]
        if header["magic"] != b"lCRF" or header["type"] != b"FOMC":
            raise ValueError("the file does not begin with lCRF, or its type is not FOMC")
        if header["n_labels"] > MOST_TAGS:
            raise ValueError(f"the file has {header['n_labels']} labels, expected at most {MOST_TAGS}")
        # The chunk of features begins with "FEAT", its size and the number of features. The header has another count.
        start = int(header["features"])
        features = np.frombuffer(data, _FEATURE, int.from_bytes(data[start + 8 : start + 12], "little"), start + 12)
        labels = _strings(data, int(header["labels"]), int(header["n_labels"]))
        attributes = _strings(data, int(header["attributes"]), int(header["n_attributes"]))
        state = features[features["type"] == _STATE]
        transitions = features[features["type"] == _TRANSITION]
        if (state["source"] >= len(attributes)).any() or (state["target"] >= len(labels)).any():
            raise ValueError("a weight refers to a missing attribute or label")
        if len(set(labels)) < len(labels) or len(set(attributes)) < len(attributes):
            raise ValueError("the file lists a label or an attribute twice; write the model with CRFsuite again")
        if not np.isfinite(features["weight"]).all():
            raise ValueError("a weight is not finite")
        transition = np.zeros((len(labels), len(labels)))
        transition[transitions["source"], transitions["target"]] = transitions["weight"]
    except (ValueError, IndexError, MemoryError) as error:
        raise ValueError(f"{name}: not a linear-chain model of CRFsuite ({error})") from None
    return AttributeWeights(
        labels, attributes, state["source"].copy(), state["target"].copy(), state["weight"].copy(), transition
    )


def _strings(data: bytes, start: int, count: int) -> list[str]:
    """Return the strings of a string table (CQDB database) in a CRFsuite model file, in the order of their indices."""
    _size, _flag, byte_order, n_links, links_at = np.frombuffer(data, "<u4", 5, start + 4).tolist()
    if data[start : start + 4] != b"CQDB" or byte_order != _BYTE_ORDER or n_links < count:
        raise ValueError("the string table (CQDB database) is damaged")
    names: list[str] = []
    n_bytes = 0
    for number, link in enumerate(np.frombuffer(data, "<u4", count, start + links_at).tolist()):
        begin = start + link + 8
        length = int.from_bytes(data[begin - 4 : begin], "little")
        n_bytes += length
        if n_bytes > len(data):  # many entries may share one long string
            raise ValueError("the strings overlap")
        if (
            int.from_bytes(data[begin - 8 : begin - 4], "little") != number
            or data[begin + length - 1 : begin + length] != b"\0"
        ):
            raise ValueError("the string table (CQDB database) is damaged")
        names.append(data[begin : begin + length - 1].decode())
    return names


def write_crfsuite(weights: AttributeWeights, path: str | Path) -> None:
    """Write weights as a CRFsuite model file.

    Args:
        weights: Weights of a linear chain.
        path: Path of the file, which is replaced.

    Raises:
        OSError: The file cannot be written.
        ValueError: A transition is forbidden, a name contains a NUL character, or the file would exceed 4 GB.
    """
    content = crfsuite_bytes(weights)
    with atomic_write(path) as stream:
        stream.write(content)


def crfsuite_bytes(weights: AttributeWeights) -> bytes:
    """Return the content of a CRFsuite model file.

    Args:
        weights: Weights of a linear chain.

    Raises:
        ValueError: A transition is forbidden, a name contains a NUL character, or the file would exceed 4 GB.
    """
    if not np.isfinite(weights.transition).all():
        raise ValueError("CRFsuite's files cannot forbid transitions; save the estimator with joblib or pickle")
    order = np.argsort(weights.attributes, kind="stable")
    sources, targets = np.nonzero(weights.transition)
    n_states, n_labels, n_attributes = len(order), len(weights.labels), len(weights.attribute_names)
    features = np.empty(n_states + len(sources), _FEATURE)
    features["type"] = np.repeat([_STATE, _TRANSITION], [n_states, len(sources)])
    features["source"] = np.concatenate([weights.attributes[order], sources])
    features["target"] = np.concatenate([weights.state_labels[order], targets])
    features["weight"] = np.concatenate([weights.state_weights[order], weights.transition[sources, targets]])
    parts = [_chunk(b"FEAT", len(features), features.tobytes()), _string_table(weights.labels)]
    parts.append(_string_table(weights.attribute_names))
    first = _HEADER.itemsize + sum(map(len, parts))
    parts[-1] += bytes(-first % 4)
    # CRFsuite writes references for two additional labels, which once stood for the ends of sequences.
    for magic, owners, begin in ((b"LFRF", sources, n_states), (b"AFRF", weights.attributes[order], 0)):
        n_owners, n_empty = (n_labels, 2) if magic == b"LFRF" else (n_attributes, 0)
        start = _HEADER.itemsize + sum(map(len, parts))
        parts.append(_references(magic, np.bincount(owners, minlength=n_owners), n_empty, begin, start))
    places = np.cumsum([_HEADER.itemsize, *map(len, parts)])
    if places[-1] >= 1 << 32:
        raise ValueError("the model is too large for a CRFsuite file (at most 4 GB); train with a larger `min_freq`")
    header = np.zeros(1, _HEADER)
    header[0] = (
        b"lCRF", places[-1], b"FOMC", 100, 0, n_labels, n_attributes, places[0], places[1], places[2], places[3:5],
    )  # fmt: skip
    return b"".join([header.tobytes(), *parts])


def _chunk(magic: bytes, count: int, content: bytes) -> bytes:
    """Return the bytes of a chunk of a model file: name, size, number of items, and content."""
    return magic + np.array([len(content) + 12, count], "<u4").tobytes() + content


def _references(magic: bytes, counts: Int64s, n_empty: int, first: int, start: int) -> bytes:
    """Return the bytes of a CRFsuite chunk that lists, for each attribute or label, the indices of its features.

    Indices are consecutive from ``first``.
    """
    ends = np.cumsum(counts)
    lists = np.insert(np.arange(first, first + int(counts.sum())), ends - counts, counts)
    offsets = start + 12 + 4 * (len(counts) + n_empty) + 4 * (ends - counts + np.arange(len(counts)))
    content = np.concatenate([offsets, np.zeros(n_empty, np.int64), lists]).astype("<u4").tobytes()
    return _chunk(magic, len(counts) + n_empty, content)


def _string_table(names: Sequence[str]) -> bytes:
    """Return a CQDB database that maps strings to their indices and back."""
    tables: list[list[tuple[int, int]]] = [[] for _ in range(_N_TABLES)]
    at, records, links = 24 + 8 * _N_TABLES, list[bytes](), list[int]()
    for number, name in enumerate(names):
        text = name.encode() + b"\0"
        if text.count(b"\0") > 1:
            raise ValueError(f"CRFsuite's files cannot have NUL characters in names, got {name!r}; change this name")
        value = quark_hash(text)
        tables[value % _N_TABLES].append((value, at))
        links.append(at)
        records.append(np.array([number, len(text)], "<u4").tobytes() + text)
        at += len(records[-1])
    references = np.zeros((_N_TABLES, 2), "<u4")
    buckets: list[NDArray[np.uint32]] = []
    for k, table in enumerate(tables):
        references[k] = (at if table else 0, 2 * len(table))
        buckets.append(_bucket(table))
        at += 16 * len(table)
    header = np.array([at + 4 * len(names), 0, _BYTE_ORDER, len(names), at], "<u4").tobytes()
    body = b"".join([*records, *(bucket.tobytes() for bucket in buckets), np.array(links, "<u4").tobytes()])
    return b"CQDB" + header + references.tobytes() + body


def _bucket(table: Sequence[tuple[int, int]]) -> NDArray[np.uint32]:
    """Return a hash table with open addressing for n entries: uint32[2 n, 2], one row (hash, offset) for each slot."""
    bucket = np.zeros((2 * len(table), 2), "<u4")
    for value, offset in table:
        place = (value >> 8) % len(bucket)
        while bucket[place, 1]:
            place = (place + 1) % len(bucket)
        bucket[place] = value, offset
    return bucket


def train_crfsuite(
    features: Sequence[Keys],
    sentence_offsets: Sequence[Int64s],
    tags: Sequence[Sequence[str]],
    *,
    c1: float = 0.0,
    c2: float = 0.3,
    min_freq: int = 2,
    max_iterations: int = 80,
    progress: TrainingProgress | None = None,
    model_path: str | Path | None = None,
) -> ChainWeights:
    """Train a linear chain with CRFsuite, by penalised maximum likelihood with L-BFGS.

    Args:
        features: Features of each document.
        sentence_offsets: int64[S + 1] for each document, first token of each sentence, and the number of tokens.
        tags: Gold tags of each document.
        c1: Weight of the L1 norm.
        c2: Weight of the squared L2 norm.
        min_freq: Number of times that a feature must occur with a tag to have a weight.
        max_iterations: Maximum number of iterations.
        progress: Function called after each iteration.
        model_path: Path of CRFsuite's model file, whose attribute names are decimal keys. None deletes the file at
            the end.

    Returns:
        The weights of the trained chain.

    Raises:
        MissingExtra: sklearn-crfsuite is not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(model_path or Path(folder) / "chain.crfsuite")
        estimator = _estimator(path, c1, c2, min_freq, max_iterations, progress)
        estimator.fit(crfsuite_sequences(features, sentence_offsets), _sentences(tags, sentence_offsets))
        return chain_weights(read_crfsuite(path))


def check_crfsuite() -> None:
    """Raise `MissingExtra` unless sklearn-crfsuite is installed."""
    check_extra("sklearn_crfsuite", "CRFsuite needs sklearn-crfsuite")


def chain_weights(model: AttributeWeights) -> ChainWeights:
    """Convert the weights of a CRFsuite model to weights of a linear chain.

    The attribute names of the model must be feature keys, written as decimal numbers.

    Args:
        model: Weights of the model file.

    Returns:
        The same weights by feature key.

    Raises:
        ValueError: The name of an attribute is not a feature key.
    """
    try:
        keys = np.array([int(name) for name in model.attribute_names], np.uint64)
    except OverflowError:
        raise ValueError("all attribute names must be feature keys: integers from 0 to 2 ** 64 - 1") from None
    return model.with_keys(keys)


def crfsuite_sequences(features: Sequence[Keys], sentence_offsets: Sequence[Int64s]) -> Iterator[list[list[str]]]:
    """Yield, for each sentence, the attribute names of each token, as CRFsuite reads them.

    Equal keys share one string.

    Args:
        features: Features of each document.
        sentence_offsets: int64[S + 1] for each document, first token of each sentence, and the number of tokens.
    """
    names: dict[int, str] = {}
    for (starts, keys), offsets in zip(features, sentence_offsets, strict=True):
        row = [names.get(key) or names.setdefault(key, str(key)) for key in keys.tolist()]
        ends = starts.tolist()
        for begin, end in pairwise(offsets.tolist()):
            yield [row[ends[t] : ends[t + 1]] for t in range(begin, end)]


def _sentences(tags: Sequence[Sequence[str]], sentence_offsets: Sequence[Int64s]) -> Iterator[Sequence[str]]:
    for document, offsets in zip(tags, sentence_offsets, strict=True):
        for begin, end in pairwise(offsets.tolist()):
            yield document[begin:end]


def _estimator(
    path: Path, c1: float, c2: float, min_freq: int, max_iterations: int, progress: TrainingProgress | None
) -> Any:
    check_crfsuite()
    import pycrfsuite  # pyright: ignore[reportMissingTypeStubs]
    import sklearn_crfsuite  # pyright: ignore[reportMissingTypeStubs]

    class ReportingTrainer(pycrfsuite.Trainer):  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUntypedBaseClass]
        logparser: Any

        def message(self, message: str) -> None:  # the base class prints here
            if self.logparser.feed(message) == "iteration" and progress is not None:
                progress(self.logparser.last_iteration["num"], self.logparser.last_iteration)

    return sklearn_crfsuite.CRF(
        algorithm="lbfgs", c1=c1, c2=c2, min_freq=min_freq, max_iterations=max_iterations,
        all_possible_transitions=False, model_filename=str(path), keep_tempfiles=True, trainer_cls=ReportingTrainer,
    )  # fmt: skip
