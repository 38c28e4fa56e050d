"""How sure a tagger is of each entity: under its tables, or under particles of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from herdner.crf.model import CRF, Links
from herdner.inference import Backend, UnsupportedGraph, linear_chain
from herdner.ner.linking import decode
from herdner.text.tags import Span

Floats = NDArray[np.float64]
States = NDArray[np.int32]


def inferred(
    crf: CRF,
    unary: Floats,
    sentence_offsets: NDArray[np.int64],
    links: Sequence[Links],
    backend: Backend,
    rng: np.random.Generator,
) -> tuple[States, Floats]:
    """The states [n] of a document by a backend, and its beliefs [n, K]: one state for certain where it has no
    marginals.
    """
    try:
        result = decode(crf, unary, links, sentence_offsets, backend, rng)
    except UnsupportedGraph as error:
        raise UnsupportedGraph(f"{error}; or leave the links out (links=False; --set links=false)") from None
    if result.marginals is not None:
        return result.state, result.marginals
    certain = np.zeros(unary.shape)
    certain[np.arange(len(unary)), result.state] = 1
    return result.state, certain


def span_confidences(
    crf: CRF,
    unary: Floats,
    sentence_offsets: NDArray[np.int64],
    links: Sequence[Links],
    beliefs: Floats | None,
    states: States,
    spans: Sequence[Span],
) -> Floats:
    """[M]: the probability that exactly these tokens carry the label, under the chain of the span's sentence and what
    ``beliefs`` of linked tokens add to it. Without links they may be None.
    """
    if beliefs is not None and spans and any(len(found.ends) for found in links):
        unary = crf.given(unary, links, beliefs)
    starts, ends = [span.start for span in spans], [span.end for span in spans]
    unary = crf.with_borders(unary, sentence_offsets)
    return np.exp(linear_chain.span_log_probability(unary, crf.transition, sentence_offsets, states, starts, ends))


def mean_confidences(
    particles: Iterable[tuple[float, CRF]],
    unary: Floats,
    sentence_offsets: NDArray[np.int64],
    links: Sequence[Links],
    backend: Backend | None,
    rng: np.random.Generator,
    states: States,
    spans: Sequence[Span],
) -> Floats:
    """[M]: the weighted mean of what each particle's CRF says of the same spans, after inference of its own.

    The model average of Bayesian prediction (MacKay 2003, ch. 41). Where nothing is linked, ``backend`` is not asked.
    """
    linked = any(len(found.ends) for found in links)
    mean = np.zeros(len(spans))
    for weight, crf in particles:
        own, beliefs = crf.scaled([found.ends for found in links], unary, sentence_offsets), None
        if linked and backend is not None:
            beliefs = inferred(crf, unary, sentence_offsets, own, backend, rng)[1]
        mean += weight * span_confidences(crf, unary, sentence_offsets, own, beliefs, states, spans)
    return mean
