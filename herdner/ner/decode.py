"""Decoding for the tagger and the layer: from log-potentials and links to tags, spans and confidences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from herdner._ext.features import Extractor
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.crf.link_rules import HasTokens, find_links_of_all
from herdner.crf.model import Links, SkipChainModel
from herdner.inference import Backend, UnsupportedGraph, make_backend
from herdner.inference.linear_chain import score_linked_spans
from herdner.ner.calibration import Calibration, CalibrationInputs
from herdner.ner.inference import DEFAULT_BACKEND
from herdner.ner.known_names.evidence import Evidence, SpanEncoder
from herdner.ner.model import TaggerModel
from herdner.ner.recasing import reader
from herdner.text.document import Document
from herdner.text.tags import Chunks, Scheme, chunks_from_states


class DecodedTags(NamedTuple):
    """Tags that an inference backend computed for n tokens, and the marginals of the tags.

    Attributes:
        states: int32[n], indices of the tags.
        marginals: float64[n, K], probabilities of the tags, or None if the backend computes none.
    """

    states: Int32s
    marginals: Floats | None = None


def decode(
    crf: SkipChainModel,
    unary: Floats,
    sentence_offsets: Int64s,
    links: Links,
    backend: Backend | None,
    rng: np.random.Generator | None,
) -> DecodedTags:
    """Compute the tags and marginals of n tokens with an inference backend.

    Backends that start at a joint state, such as samplers, start at the most probable tags of the linear chain.

    Args:
        crf: Transition table and tables of links.
        unary: float64[n, K], log-potentials of the tags of each token.
        sentence_offsets: int64[S + 1], first token of each sentence, and n.
        links: For each link table int32[F, 2], the pairs of linked tokens.
        backend: Inference backend. None is Viterbi if no tokens are linked, else sum-product.
        rng: Source of random numbers, for samplers.

    Returns:
        int32[n], the index of the tag of each token; and float64[n, K], the marginals if the backend computes them.

    Raises:
        UnsupportedGraph: The backend does not support the graph of chains and links.
    """
    if backend is None and not any(map(len, links)):
        return DecodedTags(crf.best_chain(unary, sentence_offsets))
    backend = backend or _default()
    start = None if backend.capabilities.start == "nothing" else crf.best_chain(unary, sentence_offsets)
    result = backend.infer(crf.compile(unary, sentence_offsets, links), rng, start=start)
    return DecodedTags(result.state, result.marginals)


@cache
def _default() -> Backend:
    return make_backend(DEFAULT_BACKEND)


def calibration_inputs(
    crf: SkipChainModel,
    unary: Floats,
    sentence_offsets: Int64s,
    links: Links,
    decoded: DecodedTags,
    chunks: Chunks,
    starts: Sequence[int] | Int64s = (0,),
    overwrite_unary: bool = False,
) -> CalibrationInputs:
    """Return the inputs of `Calibration` for each predicted span, such as its probabilities with and without links.

    The probability is that exactly the span's tokens form an entity with the span's label. It is computed under the
    chain of the sentence. Each link adds to the log-potentials of a token the expectation of its table over the tags of
    the other token. The decoded marginals are the probabilities of these tags. If there are no marginals, the decoded
    tag of the other token has probability 1.

    Args:
        crf: Transition table and tables of links.
        unary: float64[n, K], log-potentials of the tags of each token.
        sentence_offsets: int64[S + 1], first token of each sentence, and n.
        links: For each link table int32[F, 2], the pairs of linked tokens.
        decoded: Decoded tags and marginals.
        chunks: Spans of the decoded tags.
        starts: int64[D + 1], first token of each document, and n; (0,) for a single document.
        overwrite_unary: Allow ``unary`` to be overwritten.
    """
    first, stops, labels = chunks
    has_links, beliefs = any(map(len, links)), unary  # without links, the beliefs are not read
    if has_links:
        beliefs = np.eye(unary.shape[1])[decoded.states] if decoded.marginals is None else decoded.marginals
        beliefs = np.ascontiguousarray(beliefs, np.float64)
    is_changed = has_links or crf.has_borders
    total = unary.copy() if is_changed and not overwrite_unary else unary
    linked, scores = score_linked_spans(
        crf.with_borders(unary, sentence_offsets), total, crf.transitions, sentence_offsets, decoded.states, first,
        stops, links, [each.table for each in crf.link_tables], beliefs,
        (crf.start, crf.end) if crf.has_borders else None,
    )  # fmt: skip
    with_links, without_links = np.exp(scores)
    document = np.asarray(starts).searchsorted(first, "right") - 1
    return CalibrationInputs(with_links, without_links, linked, labels, stops - first, document)


def concatenate(documents: Sequence[HasTokens]) -> tuple[list[str], list[int], Int64s]:
    """Concatenate the tokens and the sentences of documents.

    Args:
        documents: D documents with tokens.

    Returns:
        The tokens; D + 1 numbers, the first token of each document, and the number of tokens; and int64[S + 1], the
        first token of each sentence, and the number of tokens.
    """
    tokens: list[str] = []
    starts = [0]
    for document in documents:
        tokens += document.tokens
        starts.append(len(tokens))
    if len(documents) == 1:
        return tokens, starts, documents[0].sentence_offsets
    pairs = zip(documents, starts, strict=False)
    offsets = np.concatenate([np.zeros(1, np.int64), *(d.sentence_offsets[1:] + start for d, start in pairs)])
    return tokens, starts, offsets


@dataclass(frozen=True, eq=False)
class Decoder:
    """Compiled tagger model that tags tokenized documents. Threads may share it.

    Attributes:
        tags: Tags of the model, in the order of its tables.
        scheme: Scheme in which all decoded tag sequences are well formed. None if the model allows any sequence.
        extractor: Compiled features with their weights.
        crf: Transition table and tables of links.
        read: Function that prepares a document for features and link rules (`herdner.ner.recasing.reader`).
        encoder: Converter of spans to tags of the model.
        calibration: Calibration of confidences. None reports the probabilities of the CRF.
    """

    tags: tuple[str, ...]
    scheme: Scheme | None
    extractor: Extractor
    crf: SkipChainModel
    read: Callable[[Document], Document]
    encoder: SpanEncoder
    calibration: Calibration | None = None

    @classmethod
    def of(cls, model: TaggerModel) -> Decoder:
        """Build a decoder from the trained model of a tagger.

        Args:
            model: Trained model of a tagger.

        Returns:
            The decoder.
        """
        tags, scheme = model.weights.tags, model.scheme if model.constrained else None
        read, encoder = reader(model.plan, model.lexicon), SpanEncoder(tags, model.scheme)
        return cls(tags, scheme, model.extractor(), model.crf(), read, encoder, model.calibration)

    def without_links(self) -> Decoder:
        """Return a copy of the decoder that ignores links and uses only the linear chain of each sentence."""
        return replace(self, crf=replace(self.crf, link_tables=()))

    @cached_property
    def _borderless(self) -> SkipChainModel:
        return self.crf.without_borders()

    def marginals(self, document: Document) -> Floats:
        """Return the marginals of the tags, float64[tokens, tags]; use belief propagation if the document has links.

        Args:
            document: Document with tokens.
        """
        document = self.read(document)
        unary = self.extractor.scores(document.tokens, document.sentence_offsets)
        links = self.crf.links(document.tokens, document.sentence_offsets)
        decoded = decode(self.crf, unary.copy(), document.sentence_offsets, links, None, None)
        if decoded.marginals is None:
            return self.crf.chain_marginals(unary, document.sentence_offsets)
        return decoded.marginals

    def links(self, document: Document) -> dict[str, Int32s]:
        """Return the linked tokens of a document, as a dict from the name of a link rule to an array of token pairs.

        Args:
            document: Document with tokens.

        Returns:
            int32[F, 2] for the name of each rule, the earlier token of each link first.
        """
        document, links = self.read(document), dict[str, Int32s]()
        for each in self.crf.link_tables:
            edges, name = each.template.links(document.tokens, document.sentence_offsets), each.template.name
            links[name] = np.concatenate([links[name], edges]) if name in links else edges
        return links

    def tag(
        self,
        documents: Sequence[Document],
        backend: Backend | None,
        rng: np.random.Generator | None,
        evidence: Sequence[Evidence] = (),
        name_bias: float = 0.0,
    ) -> list[Document]:
        """Tag tokenized documents.

        All documents are decoded as one graph, in which no link joins two documents. If ``backend`` is None, the result
        for a document does not depend on the other documents, to the last bit.

        Args:
            documents: Documents with tokens.
            backend: Inference backend, or None for the default.
            rng: Source of random numbers, for samplers.
            evidence: Evidence of known names for each document; empty if there are no known names.
            name_bias: Number that is subtracted from the log-potential of the tag O of each token.

        Returns:
            The documents with tags, entities and confidences, in their order.

        Raises:
            UnsupportedGraph: The backend does not support linked chains.
        """
        prepared = list(map(self.read, documents))
        tokens, starts, offsets = concatenate(prepared)
        if not tokens:
            return [document.with_decoded([]) for document in documents]
        words, borders = self.extractor.words(tokens), np.array(starts)
        unary = self.extractor.scores(words, offsets, borders)
        links = find_links_of_all(self.crf.rules, prepared, tokens, words.spellings(), borders, offsets)
        for each, start, end in zip(evidence, starts, starts[1:], strict=False):
            each.add_to(unary[start:end])
        if name_bias:
            unary[:, self.tags.index("O")] -= name_bias
        # Log-potentials of sentence borders are added once and in place; otherwise each function that needs
        # them would copy ``unary``.
        unary, crf = self.crf.with_borders(unary, offsets, overwrite_unary=True), self._borderless
        try:
            decoded = decode(crf, unary, offsets, links, backend, rng)
        except UnsupportedGraph as error:
            raise UnsupportedGraph(f"{error}; or tag without links (links=False; --set links=false)") from None
        chunks = chunks_from_states(decoded.states, self.tags, offsets)
        inputs = calibration_inputs(crf, unary, offsets, links, decoded, chunks, borders, overwrite_unary=True)
        confidences = inputs.confidence if self.calibration is None else self.calibration(inputs)
        ends = [0, len(confidences)] if len(documents) == 1 else np.searchsorted(chunks.starts, borders).tolist()
        tagged: list[Document] = []
        for d, (document, start) in enumerate(zip(documents, starts, strict=False)):
            own = slice(ends[d], ends[d + 1])
            spans = chunks.spans(own, start)
            tags: list[str] | None = None
            if self.scheme is None:  # the sequence may be malformed: keep it as it was decoded
                tags = [self.tags[state] for state in decoded.states[start : starts[d + 1]].tolist()]
            tagged.append(document.with_decoded(spans, self.scheme or "iob2", confidences[own], tags))
        return tagged
