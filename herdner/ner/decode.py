"""Decoding, for tagger and layer: from log-potentials and links to tags, spans, and how sure of them one may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner._ext.features import Extractor
from herdner._ext.spellings import Spelled, spelled
from herdner.base.arrays import Floats, Int64s
from herdner.crf.link_rules import Tokenized
from herdner.crf.model import Links, SkipChainModel
from herdner.inference import Backend, UnsupportedGraph, linear_chain, make_backend
from herdner.ner.calibration import Beliefs, Calibration
from herdner.ner.known_names.evidence import Evidence
from herdner.ner.model import TaggerModel
from herdner.ner.recasing import reader
from herdner.text.document import Document
from herdner.text.tags import Chunks, Scheme, chunks_from_states

States = NDArray[np.int32]

DEFAULT_BACKEND = "sum-product"  # with links; without them Viterbi is exact and faster


def backend_of(backend: object, options: dict[str, Any]) -> Backend:
    """A backend by its name and options, or one that is ready; ValueError says what is wrong."""
    if isinstance(backend, str):
        return make_backend(backend, **options)
    if isinstance(backend, type) or not isinstance(backend, Backend):
        raise ValueError(f"backend must be a name, as `herdner backends` lists, or such as Gibbs(), not {backend!r}")
    if options:
        raise ValueError(f"options {', '.join(options)} belong to a backend given by name; {backend!r} has its own")
    return backend


class Decoded(NamedTuple):
    """The states [n] that a backend chose, and its marginals [n, K], where it gives them."""

    states: States
    marginals: Floats | None = None


def decode(
    crf: SkipChainModel,
    unary: Floats,
    sentence_offsets: NDArray[np.int64],
    links: Sequence[Links],
    backend: Backend | None,
    rng: np.random.Generator,
) -> Decoded:
    """The tags of tokens by a backend; samplers begin with the best state of the chain. ``unary`` float64[n, K].

    None is Viterbi where nothing is linked, else `DEFAULT_BACKEND`. UnsupportedGraph where the backend does not fit.
    """
    if backend is None and not any(len(found.ends) for found in links):
        return Decoded(crf.best_chain(unary, sentence_offsets))
    backend = backend or _default()
    start = None if backend.capabilities.start == "nothing" else crf.best_chain(unary, sentence_offsets)
    result = backend.infer(crf.compiled(unary, sentence_offsets, links), rng, start=start)
    return Decoded(result.state, result.marginals)


@cache
def _default() -> Backend:
    return make_backend(DEFAULT_BACKEND)


def span_confidences(
    crf: SkipChainModel,
    unary: Floats,
    sentence_offsets: NDArray[np.int64],
    links: Sequence[Links],
    found: Decoded,
    states: States,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    spare: bool = False,
) -> Floats:
    """[M]: the probability that exactly the tokens ``starts[m]:ends[m]`` carry the label that ``states`` give them,
    under the chain of their sentence and what is believed of linked tokens adds to it: the marginals that were
    ``found``, or else the states for certain. ``spare``: ``unary`` is not needed any more.
    """
    if not len(starts):
        return np.empty(0)
    if any(len(each.ends) for each in links):
        beliefs = np.eye(unary.shape[1])[found.states] if found.marginals is None else found.marginals
        unary = crf.add_borders(crf.given(unary, links, beliefs, spare), sentence_offsets)
    else:
        unary = crf.with_borders(unary, sentence_offsets)
    return np.exp(linear_chain.span_log_probability(unary, crf.transition, sentence_offsets, states, starts, ends))


def span_beliefs(
    crf: SkipChainModel,
    unary: Floats,
    sentence_offsets: NDArray[np.int64],
    links: Sequence[Links],
    found: Decoded,
    chunks: Chunks,
    starts: Sequence[int] | Int64s = (0,),
    spare: bool = False,
) -> Beliefs:
    """What `span_confidences` says of the spans of ``found``, with links and without, and where links end; ``starts``
    are the first tokens of the documents that they are of.
    """
    first, stops, labels = chunks
    given = crf, unary, sentence_offsets
    is_linked = np.zeros(len(unary) + 1, np.int64)
    for each in links:
        is_linked[each.ends.ravel() + 1] = 1
    before = np.cumsum(is_linked)  # how many tokens before this one are linked
    linked = before[stops] > before[first]
    unlinked = span_confidences(*given, (), found, found.states, first[linked], stops[linked])
    sure = span_confidences(*given, links, found, found.states, first, stops, spare)
    alone = sure.copy()
    alone[linked] = unlinked
    document = np.searchsorted(np.array(starts), first, "right") - 1
    return Beliefs(sure, alone, linked, labels, stops - first, document)


class Joined(NamedTuple):
    """Documents laid one behind the other: d holds the tokens ``starts[d]:starts[d + 1]`` of them all. ``ends`` are the
    links that each link table finds, int32[F, 2].
    """

    starts: NDArray[np.int64]
    sentence_offsets: NDArray[np.int64]
    ends: list[NDArray[np.int32]]


def joined(crf: SkipChainModel, documents: Sequence[Tokenized], said: Spelled | None = None) -> Joined:
    """The sentences and links of documents in one piece; ``said`` is what rules read of all tokens, if it is known."""
    starts = [0, *accumulate(len(document.tokens) for document in documents)]
    placed = zip(documents, starts, strict=False)
    offsets = np.concatenate([np.zeros(1, np.int64), *(d.sentence_offsets[1:] + start for d, start in placed)])
    said, at = said or spelled([token for document in documents for token in document.tokens]), np.array(starts)
    return Joined(at, offsets, [each.template.links_of_all(documents, said, at, offsets) for each in crf.link_tables])


@dataclass(frozen=True, eq=False)
class Decoder:
    """A trained model, compiled: from documents with tokens to documents with tags and entities. Threads may share it.

    Attributes:
        scheme: In which every sequence of tags is well formed; None where the model forbids nothing.
        read: What features and links see of a document.
        calibration: What becomes of confidences; None: they stay what the CRF says.
    """

    labels: tuple[str, ...]
    scheme: Scheme | None
    extractor: Extractor
    crf: SkipChainModel
    read: Callable[[Document], Document]
    calibration: Calibration | None = None

    @classmethod
    def of(cls, model: TaggerModel) -> Decoder:
        """The model, ready to tag."""
        scheme = model.scheme if model.constrained else None
        read = reader(model.plan, model.lexicon)
        return cls(model.weights.labels, scheme, model.extractor(), model.crf(), read, model.calibration)

    def without_links(self) -> Decoder:
        """The chain alone."""
        return replace(self, crf=replace(self.crf, link_tables=()))

    def chain_marginals(self, document: Document) -> Floats:
        """float64[tokens, tags]: the marginals of the chain alone."""
        unary = self.extractor.scores(self.read(document).tokens, document.sentence_offsets)
        return self.crf.chain_marginals(unary, document.sentence_offsets)

    def links(self, document: Document) -> dict[str, NDArray[np.int32]]:
        """Which tokens are linked: int32[F, 2], the earlier first, by the name of the rule."""
        document, found = self.read(document), dict[str, NDArray[np.int32]]()
        for each in self.crf.link_tables:
            edges, name = each.template.links(document.tokens, document.sentence_offsets), each.template.name
            found[name] = np.concatenate([found[name], edges]) if name in found else edges
        return found

    def tagged(
        self,
        documents: Sequence[Document],
        backend: Backend | None,
        rng: np.random.Generator,
        known: Sequence[Evidence] = (),
    ) -> list[Document]:
        """Documents with tokens, decoded as one graph, of which each is a part that no link leaves; ``known`` is what
        names that the user knows say of each.

        Where ``backend`` is None each document gets, bit for bit, what it would get alone, in less time.
        """
        seen = list(map(self.read, documents))
        tokens: list[str] = []
        for document in seen:
            tokens += document.tokens
        if not tokens:
            return [document.with_decoded([]) for document in documents]
        words = self.extractor.words(tokens)
        starts, offsets, ends = joined(self.crf, seen, words.spelled())
        unary = self.extractor.scores(words, offsets, starts)
        for evidence, start, end in zip(known, starts.tolist(), starts[1:].tolist(), strict=False):
            evidence.add_to(unary[start:end])
        # Once and in place: what else needs the borders would copy all log-potentials for them.
        unary, chain = self.crf.add_borders(unary, offsets), replace(self, crf=self.crf.without_borders())
        links = chain.crf.scaled(ends, unary, offsets)
        try:
            found = decode(chain.crf, unary, offsets, links, backend, rng)
        except UnsupportedGraph as error:
            raise UnsupportedGraph(f"{error}; or leave the links out (links=False; --set links=false)") from None
        chunks = chunks_from_states(found.states, self.labels, offsets)
        sure = chain.confidences(unary, offsets, links, found, chunks, starts)
        return self._parts(documents, starts.tolist(), found.states, chunks, sure)

    def confidences(
        self,
        unary: Floats,
        sentence_offsets: NDArray[np.int64],
        links: Sequence[Links],
        found: Decoded,
        chunks: Chunks,
        starts: Sequence[int] | Int64s = (0,),
    ) -> Floats:
        """[M]: of the spans of ``found``, all that the documents which begin at ``starts`` have; calibrated where the
        model is. Nobody may need ``unary`` any more.
        """
        if self.calibration is None:
            names = found.states, chunks.starts, chunks.ends
            return span_confidences(self.crf, unary, sentence_offsets, links, found, *names, spare=True)
        said = span_beliefs(self.crf, unary, sentence_offsets, links, found, chunks, starts, spare=True)
        return self.calibration(said)

    def _parts(
        self, documents: Sequence[Document], starts: list[int], states: States, chunks: Chunks, sure: Floats
    ) -> list[Document]:
        """The documents with what was found in each."""
        cuts = np.searchsorted(chunks.starts, starts).tolist()
        found: list[Document] = []
        for d, document in enumerate(documents):
            start, own = starts[d], slice(cuts[d], cuts[d + 1])
            spans = chunks.spans(own, start)
            tags = None
            if self.scheme is None:  # any sequence may come out: it stays as it is
                tags = [self.labels[state] for state in states[start : starts[d + 1]].tolist()]
            found.append(document.with_decoded(spans, self.scheme or "iob2", sure[own], tags))
        return found
