"""Training by CRFsuite (Okazaki 2007), and the weights inside its model files, at full precision.

python-crfsuite's own dump prints six decimals; the file holds doubles. Layout: CRFsuite 0.12,
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
    """State weights as triples (attribute, label, weight) and transition weights float64[K, K]; names by number."""

    labels: list[str]
    attribute_names: list[str]
    attributes: NDArray[np.uint32]
    state_labels: NDArray[np.uint32]
    state_weights: NDArray[np.float64]
    transition: NDArray[np.float64]


def read_crfsuite(path: str | Path) -> CRFsuiteWeights:
    """Read a model that CRFsuite wrote.

    Raises:
        ValueError: The file is none of CRFsuite's.
    """
    data = Path(path).read_bytes()
    try:
        header = np.frombuffer(data, _HEADER, 1)[0]
        if header["magic"] != b"lCRF" or header["type"] != b"FOMC":
            raise ValueError("wrong magic number")
        start = int(header["features"])  # a chunk: "FEAT", its size, the number of features (the header's is not kept)
        features = np.frombuffer(data, _FEATURE, int.from_bytes(data[start + 8 : start + 12], "little"), start + 12)
        labels = _strings(data, int(header["labels"]), int(header["n_labels"]))
        attributes = _strings(data, int(header["attributes"]), int(header["n_attributes"]))
        state = features[features["type"] == _STATE]
        transitions = features[features["type"] == _TRANSITION]
        if (state["source"] >= len(attributes)).any() or (state["target"] >= len(labels)).any():
            raise ValueError("a weight of an attribute or a label that is not there")
        transition = np.zeros((len(labels), len(labels)))
        transition[transitions["source"], transitions["target"]] = transitions["weight"]
    except (ValueError, IndexError, MemoryError) as error:
        raise ValueError(f"{path}: not a linear-chain model of CRFsuite ({error})") from None
    return CRFsuiteWeights(
        labels, attributes, state["source"].copy(), state["target"].copy(), state["weight"].copy(), transition
    )


def _strings(data: bytes, start: int, count: int) -> list[str]:
    """The strings of a constant database in the order of their numbers, by its table of backward links."""
    _size, _flag, byte_order, n_links, links_at = np.frombuffer(data, "<u4", 5, start + 4).tolist()
    if data[start : start + 4] != b"CQDB" or byte_order != 0x62445371 or n_links < count:
        raise ValueError("damaged table of strings")
    names: list[str] = []
    for link in np.frombuffer(data, "<u4", count, start + links_at).tolist():
        length = int.from_bytes(data[start + link + 4 : start + link + 8], "little")
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
    """Maximise the penalised likelihood of the tags of documents by CRFsuite's L-BFGS.

    ``c1`` and ``c2`` weigh the L1 and the squared L2 norm; attributes met fewer than ``min_freq`` times with a tag
    are left out. ``model_path`` keeps CRFsuite's own model file, whose attribute names are the decimal keys.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(model_path or Path(folder) / "chain.crfsuite")
        estimator = _estimator(path, c1, c2, min_freq, max_iterations, progress)
        estimator.fit(crfsuite_sequences(features, sentence_offsets), _sentences(tags, sentence_offsets))
        return chain_weights(read_crfsuite(path))


def check_crfsuite() -> None:
    """MissingExtra where sklearn-crfsuite is not installed; for what takes long before it comes to its training."""
    check_extra("sklearn_crfsuite", "CRFsuite and L1 regularisation need sklearn-crfsuite")


def chain_weights(model: CRFsuiteWeights) -> ChainWeights:
    """A CRFsuite model whose attribute names are decimal keys, as weights by key."""
    if len(model.labels) > MOST_TAGS:
        raise ValueError(f"{len(model.labels)} tags are too many: at most {MOST_TAGS}")
    keys = np.array([int(name) for name in model.attribute_names], np.uint64)
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
    """Sentence by sentence, the lists of attribute names that CRFsuite takes. Equal keys share one string."""
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

        def message(self, message: str) -> None:  # the base class prints here; reports go to `progress` alone
            if self.logparser.feed(message) == "iteration":
                self.on_iteration(self.logparser.last_log, self.logparser.last_iteration)

    return sklearn_crfsuite.CRF(
        algorithm="lbfgs", c1=c1, c2=c2, min_freq=min_freq, max_iterations=max_iterations,
        all_possible_transitions=False, model_filename=str(path), keep_tempfiles=True, trainer_cls=Reporting,
    )  # fmt: skip
