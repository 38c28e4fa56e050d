"""Names that a CRF finds in documents it has not seen, held against the truth; confidences are calibrated by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.seeds import child
from herdner.crf.model import SkipChainModel
from herdner.ner.calibration import Calibration, CalibrationInputs
from herdner.ner.decode import decode, span_beliefs
from herdner.ner.training.supervision import Supervision
from herdner.text.document import Document
from herdner.text.tags import chunks_from_states, spans_from_tags


class Judged(NamedTuple):
    """What a CRF says of the M names that it finds; which are ``right``, bool[M], and of which that is ``known``,
    bool[M]: an annotation in part need not tell.
    """

    said: CalibrationInputs
    right: NDArray[np.bool_]
    known: NDArray[np.bool_]


def judged(
    crf: SkipChainModel,
    labels: tuple[str, ...],
    documents: Sequence[Document],
    unaries: Sequence[NDArray[np.float64]],
    taught: Supervision,
) -> Judged:
    """The names that a CRF over these tags finds in documents with these log-potentials."""
    said: list[CalibrationInputs] = []
    right, known = [np.empty(0, np.bool_)], [np.empty(0, np.bool_)]
    for i, (document, unary) in enumerate(zip(documents, unaries, strict=True)):
        offsets = document.sentence_offsets
        links = crf.links(document.tokens, offsets)
        found = decode(crf, unary, offsets, links, None, child(0, i))
        gold, chunks = set(spans_from_tags(taught.gold[i], offsets)), chunks_from_states(found.states, labels, offsets)
        own, spans = span_beliefs(crf, unary, offsets, links, found, chunks), chunks.spans()
        said.append(own._replace(document=np.full(len(spans), i)))
        right.append(np.array([span in gold for span in spans], np.bool_))
        known.append(np.ones(len(spans), np.bool_))
        if document.partial is not None:  # then the labels are those of the annotation
            may = taught.allowed[i][np.arange(len(unary)), found.states] != 0
            known[-1] = right[-1] | ~np.array([may[span.start : span.end].all() for span in spans], np.bool_)
    return Judged(CalibrationInputs.concatenate(said), np.concatenate(right), np.concatenate(known))


def calibration(found: Judged, sources: Sequence[int] | None, origin: Calibration | None) -> Calibration:
    """Fitted to names that were held against the truth; each of the ``sources`` of the documents counts the same."""
    counts = found.known.astype(np.float64)
    if sources is not None:
        of_name = np.array(sources, np.int64)[found.said.document]
        sizes = np.bincount(of_name, counts)
        counts *= (counts.sum() / np.count_nonzero(sizes) / np.maximum(sizes, 1))[of_name]
    return Calibration.fit(found.said, found.right, counts, origin)
