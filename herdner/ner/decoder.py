"""A trained model, compiled: from documents with tokens to documents with tags and entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from herdner._ext.features import Extractor
from herdner.crf.model import CRF, Links
from herdner.inference import Backend, make_backend
from herdner.ner.confidence import inferred, mean_confidences, span_confidences
from herdner.ner.linking import DEFAULT_BACKEND
from herdner.ner.model import Model
from herdner.text.document import Document
from herdner.text.tags import Span, spans_from_states


@dataclass(frozen=True, eq=False)
class Decoder:
    """What tagging reads. Threads may share it.

    particles: CRFs of the posterior, each with its share of the confidence, where the model has them.
    """

    labels: tuple[str, ...]
    extractor: Extractor
    crf: CRF
    particles: tuple[tuple[float, CRF], ...] = ()

    @classmethod
    def of(cls, model: Model) -> Decoder:
        """The model, ready to tag."""
        crf, particles = model.crf(), ()
        if model.particles is not None:
            shares = (model.particles.weights / model.particles.weights.sum()).tolist()
            particles = tuple(zip(shares, model.particles.crfs(crf), strict=True))
        return cls(model.weights.labels, model.extractor(), crf, particles)

    def without_links(self) -> Decoder:
        """The chain alone."""
        particles = tuple((share, replace(crf, link_tables=())) for share, crf in self.particles)
        return replace(self, crf=replace(self.crf, link_tables=()), particles=particles)

    def chain_marginals(self, document: Document) -> NDArray[np.float64]:
        """float64[tokens, tags]: the marginals of the chain alone."""
        unary = self.extractor.scores(document.tokens, document.sentence_offsets)
        return self.crf.chain_marginals(unary, document.sentence_offsets)

    def tagged(
        self, documents: Sequence[Document], backend: Backend | None, rng: np.random.Generator, uncertainty: bool
    ) -> list[Document]:
        """Documents with tokens, decoded as one graph, of which each is a part that no link leaves.

        Where ``backend`` is None this is Viterbi, or sum-product if anything is linked; each document then gets, bit
        for bit, what it would get alone, in less time.
        """
        if not any(len(document.tokens) for document in documents):
            return [replace(document, tags=[], entities=()) for document in documents]
        piece = _Piece.of(documents, self)
        crf, unary, offsets, links = self.crf, piece.unary, piece.sentence_offsets, piece.links
        if backend is None and not any(len(found.ends) for found in links):
            states, beliefs = crf.best_chain(unary, offsets), None
        else:
            backend = backend or make_backend(DEFAULT_BACKEND)
            states, beliefs = inferred(crf, unary, offsets, links, backend, rng)
        tags = [self.labels[state] for state in states.tolist()]
        spans = spans_from_states(states, self.labels, offsets)
        if uncertainty and spans:
            confidences = mean_confidences(self.particles, unary, offsets, links, backend, rng, states, spans)
        else:
            confidences = span_confidences(crf, unary, offsets, links, beliefs, states, spans)
        return piece.parts(tags, spans, confidences)


@dataclass(frozen=True, eq=False)
class _Piece:
    """Documents laid one behind the other; document d holds the tokens ``starts[d]:starts[d + 1]`` of them all."""

    documents: Sequence[Document]
    starts: list[int]
    unary: NDArray[np.float64]
    sentence_offsets: NDArray[np.int64]
    links: list[Links]

    @classmethod
    def of(cls, documents: Sequence[Document], decoder: Decoder) -> _Piece:
        starts = [0, *accumulate(len(document.tokens) for document in documents)]
        placed = list(zip(documents, starts, strict=False))
        tokens = [token for document in documents for token in document.tokens]
        offsets = np.concatenate([np.zeros(1, np.int64), *(d.sentence_offsets[1:] + start for d, start in placed)])
        ends = [
            np.concatenate([each.template.links(d.tokens, d.sentence_offsets) + np.int32(start) for d, start in placed])
            for each in decoder.crf.link_tables
        ]
        unary = decoder.extractor.scores(tokens, offsets, np.array(starts))
        return cls(documents, starts, unary, offsets, decoder.crf.scaled(ends, unary, offsets))

    def parts(self, tags: Sequence[str], spans: Sequence[Span], confidences: NDArray[np.float64]) -> list[Document]:
        """The documents with what was found in each."""
        cuts = np.searchsorted([span.start for span in spans], self.starts).tolist()
        found = []
        for d, document in enumerate(self.documents):
            start, own = self.starts[d], slice(cuts[d], cuts[d + 1])
            moved = [Span(span.start - start, span.end - start, span.label) for span in spans[own]]
            entities = document.entities_from_spans(moved, confidences[own])
            found.append(replace(document, tags=list(tags[start : self.starts[d + 1]]), entities=entities))
        return found
