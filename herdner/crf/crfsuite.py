"""The weights inside a CRFsuite model file, at full precision.

python-crfsuite's own dump prints six decimals; the file holds doubles. Layout: CRFsuite 0.12,
``lib/crf/src/crf1d_model.c`` (header, features, labels, attributes) and ``lib/cqdb`` (the string tables).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
    """Read a model that CRFsuite wrote; ValueError where the file is not one."""
    data = Path(path).read_bytes()
    try:
        header = np.frombuffer(data, _HEADER, 1)[0]
        if header["magic"] != b"lCRF" or header["type"] != b"FOMC":
            raise ValueError("wrong magic number")
        start = int(header["features"])  # a chunk: "FEAT", its size, the number of features (the header's is not kept)
        features = np.frombuffer(data, _FEATURE, int.from_bytes(data[start + 8 : start + 12], "little"), start + 12)
        labels = _strings(data, int(header["labels"]), int(header["n_labels"]))
        attributes = _strings(data, int(header["attributes"]), int(header["n_attributes"]))
    except (ValueError, IndexError) as error:
        raise ValueError(f"{path}: not a linear-chain model of CRFsuite ({error})") from None
    state = features[features["type"] == _STATE]
    transitions = features[features["type"] == _TRANSITION]
    transition = np.zeros((len(labels), len(labels)))
    transition[transitions["source"], transitions["target"]] = transitions["weight"]
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
