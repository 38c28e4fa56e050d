"""Decoding of documents by any backend from any start, with a tagger's model: F1, seconds, and log-potentials."""

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
    """Documents with log-potentials and links; with ``apart``, each sentence is a graph of its own, as in HG16."""

    crf: SkipChainModel
    labels: tuple[str, ...]
    documents: Sequence[Document]
    unaries: Sequence[NDArray[np.float64]]
    links: Sequence[Links]
    apart: bool = False

    @classmethod
    def of(cls, tagger: Tagger, documents: Sequence[Document]) -> Scored:
        """Compute the log-potentials and links of documents by a tagger."""
        extractor, crf = tagger.model_.extractor(), tagger.model_.crf()
        documents = [document for document in documents if len(document.tokens)]
        unaries = [extractor.scores(d.tokens, d.sentence_offsets) for d in documents]
        links = [crf.links(d.tokens, d.sentence_offsets) for d in documents]
        return cls(crf, tagger.classes_, documents, unaries, links)

    def chain(self, apart: bool = False) -> Scored:
        """Return the same documents without links; if ``apart``, each sentence is a graph of its own."""
        return replace(self, crf=replace(self.crf, link_tables=()), links=[[] for _ in self.links], apart=apart)

    @property
    def n_links(self) -> int:
        return sum(len(ends) for links in self.links for ends in links)

    def pieces(self) -> Iterator[tuple[int, NDArray[np.float64], NDArray[np.int64], Links]]:
        """Yield the graphs to decode: document index, log-potentials, sentence offsets and links of each graph."""
        for i, (document, unary, links) in enumerate(zip(self.documents, self.unaries, self.links, strict=True)):
            offsets = document.sentence_offsets
            if not self.apart:
                yield i, unary, offsets, links
                continue
            for begin, end in pairwise(offsets.tolist()):
                yield i, unary[begin:end], np.array([0, end - begin]), []

    def decode(self, backend: Backend, seed: int = 0, start: Start = "viterbi") -> States:
        """Return the tag indices of each document; each decoded graph uses its own child of the seed.

        If ``start`` is "viterbi", backends that accept an initial state start at the best path of the chain, as in
        `Tagger`. If ``start`` is "random", backends choose their initial state; samplers choose a random allowed state.
        """
        starts = start == "viterbi" and backend.capabilities.start != "nothing"
        states: list[list[NDArray[np.int32]]] = [[] for _ in self.documents]
        for n, (i, unary, offsets, links) in enumerate(self.pieces()):
            graph = compile_tables(self.crf.unroll(unary, offsets, links))
            first = self.crf.best_chain(unary, offsets) if starts else None
            states[i].append(backend.infer(graph, child(seed, n), start=first).state)
        return [np.concatenate(parts) for parts in states]

    def spans(self, i: int, state: NDArray[np.int32]) -> list[Span]:
        """Return the names of document ``i``; malformed tag sequences are repaired as in conlleval."""
        return spans_from_tags([self.labels[k] for k in state.tolist()], self.documents[i].sentence_offsets)

    def f1(self, states: States) -> float:
        """Return the micro F1 of decoded tags against the gold entities of the documents, in per cent."""
        pairs = [
            DocumentSpans(list(document.spans or ()), self.spans(i, state), document.sentence_offsets)
            for i, (document, state) in enumerate(zip(self.documents, states, strict=True))
        ]
        return 100 * float(f1_from_counts(count_entities(pairs)[1].sum(axis=(0, 1))))

    def log_potential(self, states: States) -> float:
        """Return the sum of the log-potentials of all documents."""
        pieces = replace(self, apart=False).pieces()
        return float(sum(self.crf.unroll(u, at, links).log_potential(states[i]) for i, u, at, links in pieces))


@dataclass(frozen=True)
class Method:
    """Backend with its options and its name in tables; ``sweeps`` is None for backends without sweeps."""

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
    """Row of a table: F1 in per cent and total log-potential for each seed, and the shortest time."""

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
        """Return the sample standard deviation of F1, or 0 for a single run."""
        return float(np.std(self.f1, ddof=1)) if len(self.f1) > 1 else 0.0


def is_sampler(backend: str) -> bool:
    """Return True if the results of a backend depend on the seed, and its time on the number of sweeps."""
    return not options_of(backend).isdisjoint({"n_chains", "n_particles"})


def options_of(backend: str) -> set[str]:
    return {option.name for option in describe_backend(backend).options}


def measure(scored: Scored, method: Method, start: Start, seeds: Sequence[int], repeats: int) -> Row:
    """Return the row of a method, decoded once for each seed, or ``repeats`` times if the method is not random."""
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
    """Return a schedule whose temperature decreases in ``n_sweeps`` equal steps from 1 to 1 / ``n_sweeps``.

    This is the linear schedule of the Stanford NER package (`CoolingSchedule.getLinearSchedule`), which HG16, Sec. 4.4
    used, without its last sweep at temperature 0.
    """
    return as_annealing(1 / np.linspace(1, 1 / n_sweeps, n_sweeps))


def sampling(name: str, backend: str, n_sweeps: int, **options: Any) -> Method:
    """Return the method of a sampler that records only its best state."""
    return Method(name, backend, n_sweeps, {"n_sweeps": n_sweeps, "record": "best", **options})


def of_the_paper(sweeps: Sequence[int]) -> list[Method]:
    """Return the methods of HG16: Viterbi and samplers, and also annealed Gibbs with herdner's own schedule."""
    rows = [sampling("annealed Gibbs", "annealed-gibbs", n, annealing=falling_temperature(n)) for n in sweeps]
    rows += [sampling("annealed Gibbs, default schedule", "annealed-gibbs", n) for n in sweeps]
    rows += [sampling("herded Gibbs", "herded-gibbs", n) for n in sweeps]
    return [*rows, Method("Viterbi", "viterbi")]


def of_the_registry(n_sweeps: int) -> list[Method]:
    """Return a method for each backend; samplers make ``n_sweeps`` sweeps with one update for each token.

    Blocked samplers at several temperatures make ``n_sweeps`` rounds on spanning forests: larger blocks of variables
    with many tags take minutes for each document.
    """
    blocked = {"n_rounds": n_sweeps, "width": 1}
    rounds = {
        "annealed-importance": {**blocked, "n_temperatures": max(2, n_sweeps), "n_particles": 2, "spacing": 1},
        "tempered": {**blocked, "burn_in": n_sweeps // 4},
    }
    methods = []
    for name in sorted(BACKENDS):
        if name in rounds:
            methods.append(Method(name, name, n_sweeps, rounds[name]))
            continue
        more = {"steps_per_target": 1} if "steps_per_target" in options_of(name) else {}
        methods.append(sampling(name, name, n_sweeps, **more) if is_sampler(name) else Method(name, name))
        if name == "blocked-gibbs":
            methods.append(sampling("blocked-gibbs, annealed", name, n_sweeps, annealing="linear(0.1, 4.0)"))
    return methods
