"""Training by CRFsuite (Okazaki 2007), and a reader of its model files at full precision.

Model files contain doubles, of which the dump of python-crfsuite prints six decimals only. The layout is that of
CRFsuite 0.12:
``lib/crf/src/crf1d_model.c`` (header, features, labels, attributes) and ``lib/cqdb`` (the string tables).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.extras import check_extra
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


@dataclass(frozen=True)
class CRFsuiteWeights:
    """Weights of a CRFsuite model file, with the names of its attributes and tags.

    Attributes:
        labels: Names of the K labels, in the order of their indices.
        attribute_names: Names of the attributes, in the order of their indices.
        attributes: uint32[m], attribute of each state weight.
        state_labels: uint32[m], label of each state weight.
        state_weights: float64[m], state weights.
        transition: float64[K, K], transition weights.
    """

    labels: list[str]
    attribute_names: list[str]
    attributes: NDArray[np.uint32]
    state_labels: NDArray[np.uint32]
    state_weights: NDArray[np.float64]
    transition: NDArray[np.float64]


def read_crfsuite(path: str | Path) -> CRFsuiteWeights:
    """Read the weights in a CRFsuite model file.

    Args:
        path: Path of the file.

    Raises:
        ValueError: The file is not a linear-chain model of CRFsuite.
    """
    data = Path(path).read_bytes()
    try:
        header = np.frombuffer(data, _HEADER, 1)[0]
        if header["magic"] != b"lCRF" or header["type"] != b"FOMC":
            raise ValueError("wrong magic number")
        # The chunk of features begins with "FEAT", its size and the number of features; the header has another number.
        start = int(header["features"])
        features = np.frombuffer(data, _FEATURE, int.from_bytes(data[start + 8 : start + 12], "little"), start + 12)
        labels = _strings(data, int(header["labels"]), int(header["n_labels"]))
        if len(labels) > MOST_TAGS:
            raise ValueError(f"there are {len(labels)} labels, expected at most {MOST_TAGS}; merge some labels")
        attributes = _strings(data, int(header["attributes"]), int(header["n_attributes"]))
        state = features[features["type"] == _STATE]
        transitions = features[features["type"] == _TRANSITION]
        if (state["source"] >= len(attributes)).any() or (state["target"] >= len(labels)).any():
            raise ValueError("a weight refers to a missing attribute or label")
        transition = np.zeros((len(labels), len(labels)))
        transition[transitions["source"], transitions["target"]] = transitions["weight"]
    except (ValueError, IndexError, MemoryError) as error:
        raise ValueError(f"{path}: not a linear-chain model of CRFsuite ({error})") from None
    return CRFsuiteWeights(
        labels, attributes, state["source"].copy(), state["target"].copy(), state["weight"].copy(), transition
    )


def _strings(data: bytes, start: int, count: int) -> list[str]:
    """Return the strings of a string table (CQDB database) in a CRFsuite model file, in the order of their indices."""
    _size, _flag, byte_order, n_links, links_at = np.frombuffer(data, "<u4", 5, start + 4).tolist()
    if data[start : start + 4] != b"CQDB" or byte_order != 0x62445371 or n_links < count:
        raise ValueError("the table of strings is damaged")
    names: list[str] = []
    n_bytes = 0
    for link in np.frombuffer(data, "<u4", count, start + links_at).tolist():
        length = int.from_bytes(data[start + link + 4 : start + link + 8], "little")
        n_bytes += length
        if n_bytes > len(data):  # many entries may share one long string
            raise ValueError("the strings overlap")
        names.append(data[start + link + 8 : start + link + 7 + length].decode())
    return names


def train_crfsuite(
    features: Sequence[Keys],
    sentence_offsets: Sequence[NDArray[np.int64]],
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
        model_path: Path of CRFsuite's model file, whose attribute names are decimal keys. None deletes the file.

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
    check_extra("sklearn_crfsuite", "CRFsuite and L1 regularisation need sklearn-crfsuite")


def chain_weights(model: CRFsuiteWeights) -> ChainWeights:
    """Convert the weights of a CRFsuite model to weights of a linear chain.

    The attribute names of the model must be feature keys, written as decimal numbers.

    Args:
        model: Weights of the model file.

    Raises:
        ValueError: The name of an attribute is not a feature key.
    """
    try:
        keys = np.array([int(name) for name in model.attribute_names], np.uint64)
    except OverflowError:
        raise ValueError("the names of attributes must be feature keys, integers below 2 ** 64") from None
    return ChainWeights.grouped(
        tuple(model.labels),
        model.transition,
        keys[model.attributes],
        model.state_labels.astype(np.uint8),
        model.state_weights,
    )


def crfsuite_sequences(
    features: Sequence[Keys], sentence_offsets: Sequence[NDArray[np.int64]]
) -> Iterator[list[list[str]]]:
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
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            yield [row[ends[t] : ends[t + 1]] for t in range(begin, end)]


def _sentences(tags: Sequence[Sequence[str]], sentence_offsets: Sequence[NDArray[np.int64]]) -> Iterator[Sequence[str]]:
    for document, offsets in zip(tags, sentence_offsets, strict=True):
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            yield document[begin:end]


def _estimator(
    path: Path, c1: float, c2: float, min_freq: int, max_iterations: int, progress: TrainingProgress | None
) -> Any:
    check_crfsuite()
    import pycrfsuite  # pyright: ignore[reportMissingTypeStubs]
    import sklearn_crfsuite  # pyright: ignore[reportMissingTypeStubs]

    class Reporting(pycrfsuite.Trainer):  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUntypedBaseClass]
        logparser: Any

        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            if progress is not None:
                progress(info["num"], info)

        def message(self, message: str) -> None:  # the base class prints here
            if self.logparser.feed(message) == "iteration":
                self.on_iteration(self.logparser.last_log, self.logparser.last_iteration)

    return sklearn_crfsuite.CRF(
        algorithm="lbfgs", c1=c1, c2=c2, min_freq=min_freq, max_iterations=max_iterations,
        all_possible_transitions=False, model_filename=str(path), keep_tempfiles=True, trainer_cls=Reporting,
    )  # fmt: skip
