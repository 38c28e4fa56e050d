"""Training of the chain's weights by CRFsuite, from features that are 64-bit keys."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner.crf.crfsuite import CRFsuiteWeights, read_crfsuite

Keys = tuple[NDArray[np.int64], NDArray[np.uint64]]
"""The features of a document's tokens: token t has ``keys[starts[t]:starts[t + 1]]``."""

Progress = Callable[[int, dict[str, Any]], None]
"""Called after each L-BFGS iteration with its number and CRFsuite's report (loss, feature_norm, ...)."""


@dataclass(frozen=True)
class ChainWeights:
    """Weights of a linear-chain CRF (Lafferty, McCallum and Pereira 2001).

    labels: the K tags. transition: float64[K, K], from row to column. Features are rows: ``keys`` uint64[n]
    ascending, the entries of row r are ``starts[r]:starts[r + 1]`` of ``entry_labels`` uint8 and ``entry_weights``
    float64.
    """

    labels: tuple[str, ...]
    transition: NDArray[np.float64]
    keys: NDArray[np.uint64]
    starts: NDArray[np.uint32]
    entry_labels: NDArray[np.uint8]
    entry_weights: NDArray[np.float64]

    def pruned(self, smallest: float) -> ChainWeights:
        """Without the entries whose weight is below ``smallest`` in size, and without rows that are then empty."""
        rows = np.repeat(np.arange(len(self.keys)), np.diff(self.starts.astype(np.int64)))
        kept = np.abs(self.entry_weights) >= smallest
        return _grouped(
            self.labels, self.transition, self.keys[rows[kept]], self.entry_labels[kept], self.entry_weights[kept]
        )


def train_chain(
    features: Sequence[Keys],
    sentence_offsets: Sequence[NDArray[np.int64]],
    tags: Sequence[Sequence[str]],
    *,
    c1: float = 0.0,
    c2: float = 0.3,
    min_freq: int = 2,
    max_iterations: int = 80,
    progress: Progress | None = None,
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


def chain_weights(model: CRFsuiteWeights) -> ChainWeights:
    """A CRFsuite model whose attribute names are decimal keys, as weights by key."""
    if len(model.labels) > 256:
        raise ValueError(f"{len(model.labels)} tags are too many: at most 256")
    keys = np.array([int(name) for name in model.attribute_names], np.uint64)
    return _grouped(
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


def _estimator(path: Path, c1: float, c2: float, min_freq: int, max_iterations: int, progress: Progress | None) -> Any:
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


def _grouped(
    labels: tuple[str, ...],
    transition: NDArray[np.float64],
    keys: NDArray[np.uint64],
    entry_labels: NDArray[np.uint8],
    entry_weights: NDArray[np.float64],
) -> ChainWeights:
    """Entries gathered by key, keys ascending; the order of a key's entries is kept."""
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    return ChainWeights(
        labels,
        transition,
        distinct,
        np.append(first, len(keys)).astype(np.uint32),
        entry_labels[order],
        entry_weights[order],
    )
