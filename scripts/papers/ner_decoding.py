"""Documents scored by a tagger's model, decoded by any backend from any start: F1, seconds and what the search left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from herdner.base.seeds import child
from herdner.crf.model import Links, SkipChainModel
from herdner.evaluation.scores import DocumentSpans, count_entities, f1_from_counts
from herdner.graph import compile_tables
from herdner.inference import Backend, make_backend
from herdner.inference.gibbs.annealing import Annealing, as_annealing
from herdner.inference.registry import BACKENDS, describe_backend
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.tags import Span, spans_from_tags

Start = Literal["random", "viterbi"]
States = list[NDArray[np.int32]]


@dataclass(frozen=True)
class Scored:
    """Documents with their log-potentials and links: all that inference needs. ``apart``: each sentence is a graph of
    its own, which is the unit of HG16, and the best state is looked for in each.
    """

    crf: SkipChainModel
    labels: tuple[str, ...]
    documents: Sequence[Document]
    unaries: Sequence[NDArray[np.float64]]
    links: Sequence[Links]
    apart: bool = False

    @classmethod
    def of(cls, tagger: Tagger, documents: Sequence[Document]) -> Scored:
        """The features' work, and the look for links."""
        extractor, crf = tagger.model_.extractor(), tagger.model_.crf()
        documents = [document for document in documents if len(document.tokens)]
        unaries = [extractor.scores(d.tokens, d.sentence_offsets) for d in documents]
        links = [crf.links(d.tokens, d.sentence_offsets) for d in documents]
        return cls(crf, tagger.classes_, documents, unaries, links)

    def chain(self, apart: bool = False) -> Scored:
        """The same without the links."""
        return replace(self, crf=replace(self.crf, link_tables=()), links=[[] for _ in self.links], apart=apart)

    @property
    def n_links(self) -> int:
        return sum(len(ends) for links in self.links for ends in links)

    def pieces(self) -> Iterator[tuple[int, NDArray[np.float64], NDArray[np.int64], Links]]:
        """What is decoded at a time: the document's number, log-potentials, sentence borders and links."""
        for i, (document, unary, links) in enumerate(zip(self.documents, self.unaries, self.links, strict=True)):
            offsets = document.sentence_offsets
            if not self.apart:
                yield i, unary, offsets, links
                continue
            for begin, end in pairwise(offsets.tolist()):
                yield i, unary[begin:end], np.array([0, end - begin]), []

    def decode(self, backend: Backend, seed: int = 0, start: Start = "viterbi") -> States:
        """The tags of each document as numbers; the random numbers of a piece are those of a child of the seed.

        "viterbi": backends that take a start begin with the chain's best path, as in `Tagger`; "random": they choose
        their own, samplers a random state that nothing forbids.
        """
        starts = start == "viterbi" and backend.capabilities.start != "nothing"
        states: list[list[NDArray[np.int32]]] = [[] for _ in self.documents]
        for n, (i, unary, offsets, links) in enumerate(self.pieces()):
            graph = compile_tables(self.crf.unroll(unary, offsets, links))
            first = self.crf.best_chain(unary, offsets) if starts else None
            states[i].append(backend.infer(graph, child(seed, n), start=first).state)
        return [np.concatenate(parts) for parts in states]

    def spans(self, i: int, state: NDArray[np.int32]) -> list[Span]:
        """The names of document i; what is malformed without constraints is mended as conlleval does."""
        return spans_from_tags([self.labels[k] for k in state.tolist()], self.documents[i].sentence_offsets)

    def f1(self, states: States) -> float:
        """The micro F1 against the documents' own entities, in per cent."""
        pairs = [
            DocumentSpans(document.spans or [], self.spans(i, state), document.sentence_offsets)
            for i, (document, state) in enumerate(zip(self.documents, states, strict=True))
        ]
        return 100 * float(f1_from_counts(count_entities(pairs)[1].sum(axis=(0, 1))))

    def log_potential(self, states: States) -> float:
        """Of all documents together."""
        pieces = replace(self, apart=False).pieces()
        return float(sum(self.crf.unroll(u, at, links).log_potential(states[i]) for i, u, at, links in pieces))


@dataclass(frozen=True)
class Method:
    """A backend with its options, under the name that tables show; ``sweeps`` is None where it has none to count."""

    name: str
    backend: str
    sweeps: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Backend:
        return make_backend(self.backend, **self.options)

    @property
    def random(self) -> bool:
        return is_sampler(self.backend)


@dataclass(frozen=True)
class Row:
    """One line of a table: F1 in per cent and log-potentials of all documents, one for each seed; the shortest time."""

    method: str
    start: str
    sweeps: int | None
    f1: tuple[float, ...]
    log_potential: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        return float(np.mean(self.f1))

    @property
    def sd(self) -> float:
        """Of a sample; 0 of a single run."""
        return float(np.std(self.f1, ddof=1)) if len(self.f1) > 1 else 0.0


def is_sampler(backend: str) -> bool:
    """Whether its results depend on the seed, and its time on the number of sweeps."""
    return "n_chains" in options_of(backend)


def options_of(backend: str) -> set[str]:
    return {option.name for option in describe_backend(backend).options}


def measure(scored: Scored, method: Method, start: Start, seeds: Sequence[int], repeats: int) -> Row:
    """Decodes once for each seed; where nothing is random ``repeats`` times, for the time alone."""
    backend = method.make()
    runs, times = [], []
    for seed in seeds if method.random else [seeds[0]] * repeats:
        began = perf_counter()
        runs.append(scored.decode(backend, seed, start))
        times.append(perf_counter() - began)
    kept = runs if method.random else runs[:1]
    shown = "-" if backend.capabilities.start == "nothing" else start
    f1 = tuple(scored.f1(states) for states in kept)
    whole = tuple(scored.log_potential(states) for states in kept)
    return Row(method.name, shown, method.sweeps, f1, whole, min(times))


def falling_temperature(n_sweeps: int) -> Annealing:
    """Inverse temperatures of a temperature that falls in equal steps from 1 to 1 / n: the linear schedule of the
    Stanford NER package (`CoolingSchedule.getLinearSchedule`), which HG16 Sec. 4.4 used, but for its last sweep at 0.
    """
    return as_annealing(1 / np.linspace(1, 1 / n_sweeps, n_sweeps))


def sampling(name: str, backend: str, n_sweeps: int, **options: Any) -> Method:
    """A sampler that keeps its best state alone."""
    return Method(name, backend, n_sweeps, {"n_sweeps": n_sweeps, "record": "best", **options})


def of_the_paper(sweeps: Sequence[int]) -> list[Method]:
    """HG16's samplers and Viterbi; annealed Gibbs also with the schedule that is herdner's own."""
    rows = [sampling("annealed Gibbs", "annealed-gibbs", n, annealing=falling_temperature(n)) for n in sweeps]
    rows += [sampling("annealed Gibbs, default schedule", "annealed-gibbs", n) for n in sweeps]
    rows += [sampling("herded Gibbs", "herded-gibbs", n) for n in sweeps]
    return [*rows, Method("Viterbi", "viterbi")]


def of_the_registry(n_sweeps: int) -> list[Method]:
    """Every backend; samplers make ``n_sweeps`` sweeps of as many updates as there are tokens."""
    methods = []
    for name in sorted(BACKENDS):
        more = {"steps_per_target": 1} if "steps_per_target" in options_of(name) else {}
        methods.append(sampling(name, name, n_sweeps, **more) if is_sampler(name) else Method(name, name))
        if name == "blocked-gibbs":
            methods.append(sampling("blocked-gibbs, annealed", name, n_sweeps, annealing="linear(0.1, 4.0)"))
    return methods
