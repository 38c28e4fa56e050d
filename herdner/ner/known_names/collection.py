"""Names of a collection: in how many documents a name occurs and has each label, as evidence for all documents.

A first pass over the documents adds their tagged names to `CollectionNames`. A second pass tags each document with the
evidence of all other documents. All counts are integers, so the results do not depend on the order of the documents or
on the number of threads and machines.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner._ext.hashing import hash_phrase, hash_strings
from herdner.base.arrays import Int64s
from herdner.base.checks import check_integer
from herdner.ner.known_names.evidence import SpanEvidence
from herdner.ner.known_names.finder import disjoint_spans
from herdner.text.document import Document
from herdner.text.tags import Span


class PooledEvidence(NamedTuple):
    """Settings that control how names in one document of a collection count as evidence in the other documents.

    Attributes:
        strength: Factor by which the log-odds of the labels are multiplied.
        prior_of_no_name: Prior probability of the outcome "not an entity" for the text of a name; the labels share the
            rest equally. The prior has the weight of one document.
        repetition: The evidence of a name that occurs n times in a document is divided by n to the power of this
            number, because each of the n occurrences gets the evidence.
    """

    strength: float = 0.5
    prior_of_no_name: float = 0.7
    repetition: float = 0.5

    def log_odds(self, n_documents: float, n_labels: Sequence[float]) -> list[float]:
        """Return the log-odds of each label of a name against "not an entity", multiplied by ``strength``.

        They are the evidence for a name that occurs once in a document. The labels have a Dirichlet prior, so that few
        documents give little evidence. The log-odds of the prior are subtracted, so a name that occurs in no document
        gets 0.

        Args:
            n_documents: Number of documents with the name.
            n_labels: Expected number of documents in which the name has each label.
        """
        no_name, prior = self.prior_of_no_name, (1 - self.prior_of_no_name) / len(n_labels)
        odds = [(n + prior) / (max(n_documents - sum(n_labels), 0.0) + no_name) for n in n_labels]
        return [self.strength * math.log(each * no_name / prior) for each in odds]


LEARNED = PooledEvidence()
"""``scripts/models/learn_collection.py`` selected these values on openly licensed documents that the model had not
seen."""
MAX_NAMES = 1_000_000
LONGEST_NAME = 8  # tokens; longer names are not counted
_SCALE = 1 << 16  # a probability of 1 as an integer
_SKETCH_ROWS, _SKETCH_WIDTH = 3, 1 << 20
_N_FIRST = 1 << 20


class CollectionNames:
    """Counts of the documents that contain each name of a collection, in total and per label of the name.

    A document adds 1 to the first count of each of its names, and at most 1 to the counts of the labels: the sum of the
    confidences of the mentions with a label, divided by the number of all mentions that have the spelling of the name.

    Up to ``max_names`` names are counted exactly, under 64-bit hashes. If there are more, all counts move to a count
    sketch of constant size (count-mean-min, Deng and Rafiei 2007), which adds noise to the counts of rare names.

    Args:
        labels: Labels of the model.
        max_names: Largest number of names that are counted exactly.
        evidence: Parameters of the evidence.

    Raises:
        ValueError: ``max_names`` is negative.
    """

    def __init__(self, labels: Iterable[str], max_names: int = MAX_NAMES, evidence: PooledEvidence = LEARNED) -> None:
        """Create a collection without names."""
        self.labels = tuple(sorted(set(labels)))
        self.max_names = check_integer(max_names, "max_names", 0)
        self.evidence = evidence
        self.n_documents = 0
        self._row_of: dict[int, int] = {}
        self._counts = np.zeros((64, 1 + len(self.labels)), np.int64)
        self._sketch: Int64s | None = None  # [rows, width, 1 + labels]
        self._total = np.zeros(1 + len(self.labels), np.int64)  # sum of all counts in a row of the sketch
        self._first = np.zeros(_N_FIRST, np.uint8)  # longest name that begins with a token, by the hash of the token

    @property
    def is_exact(self) -> bool:
        """True while each name has exact counts; False once there are more than ``max_names`` names."""
        return self._sketch is None

    def __len__(self) -> int:
        """Return the number of names if it is at most ``max_names``, else 0."""
        return len(self._row_of)

    def add(self, document: Document) -> None:
        """Count the names of one more tagged document.

        Args:
            document: Document with entities that have confidences.
        """
        self.n_documents += 1
        spans = [span for span in document.spans or () if span.end - span.start <= LONGEST_NAME]
        if not spans:
            return
        firsts = hash_strings([document.tokens[span.start] for span in spans]) % _N_FIRST
        lengths = np.array([span.end - span.start for span in spans], np.uint8)
        np.maximum.at(self._first, firsts.astype(np.int64), lengths)
        shares = self._shares(document)
        self._add(np.array(list(shares), np.uint64), np.array(list(shares.values())))

    def update(self, other: CollectionNames) -> None:
        """Add the counts of another collection, such as a collection of other files.

        Args:
            other: Counts of documents that have not been added to this collection.

        Raises:
            ValueError: The labels or the sizes of the collections differ.
        """
        if (self.labels, self.max_names) != (other.labels, other.max_names):
            raise ValueError(
                "collections can be added up only if their labels and their `max_names` are equal, got"
                f" {self.labels!r:.80} and {self.max_names}, {other.labels!r:.80} and {other.max_names}"
            )
        self.n_documents += other.n_documents
        np.maximum(self._first, other._first, out=self._first)
        if other._sketch is not None:
            self._to_sketch()[...] += other._sketch
            self._total += other._total
        elif other._row_of:
            self._add(np.array(list(other._row_of), np.uint64), other._counts[: len(other._row_of)])

    def _shares(self, document: Document) -> dict[int, list[int]]:
        """Return a dict from the hash of each name of a document to the document's contribution to the name's counts.

        The contribution is a list: 1 for the document, then the document's share of each label, in units of 1 / 65,536.
        """
        sums: dict[int, list[float]] = {}
        mentions: dict[int, int] = {}
        index = {label: i for i, label in enumerate(self.labels)}
        for (start, end, label), entity in zip(document.spans or (), document.entities, strict=True):
            if end - start > LONGEST_NAME:
                continue
            key = hash_phrase(document.tokens[start:end])
            own = sums.setdefault(key, [0.0] * len(self.labels))
            own[index[label]] += entity.confidence or 0.0
            mentions[key] = mentions.get(key, 0) + 1
        return {key: [_SCALE, *(round(_SCALE * share / mentions[key]) for share in own)] for key, own in sums.items()}

    def _add(self, keys: NDArray[np.uint64], counts: Int64s) -> None:
        if self._sketch is None:
            row_of = self._row_of
            rows = [row_of.setdefault(key, len(row_of)) for key in keys.tolist()]
            while len(row_of) > len(self._counts):
                self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            np.add.at(self._counts, rows, counts)
            if len(row_of) > self.max_names:
                self._to_sketch()
            return
        self._total += counts.sum(axis=0)
        for row, columns in enumerate(_columns(keys)):
            np.add.at(self._sketch[row], columns, counts)

    def _to_sketch(self) -> Int64s:
        """Move all counts to the count sketch, and return the sketch."""
        if self._sketch is None:
            keys, counts = np.array(list(self._row_of), np.uint64), self._counts[: len(self._row_of)]
            self._row_of, self._counts = {}, self._counts[:0]
            self._sketch = np.zeros((_SKETCH_ROWS, _SKETCH_WIDTH, counts.shape[1]), np.int64)
            self._add(keys, counts)
        return self._sketch

    def counts(self, tokens: Sequence[str]) -> list[float]:
        """Return the number of documents that contain a name, and the expected number in which the name has each label.

        Args:
            tokens: Tokens of the name.
        """
        counts = self._counts_of(hash_phrase(tokens)) or [0] * (1 + len(self.labels))
        return [count / _SCALE for count in counts]

    def _counts_of(self, key: int) -> list[int] | None:
        if self._sketch is None:
            row = self._row_of.get(key)
            return None if row is None else self._counts[row].tolist()
        columns = _columns(np.array([key], np.uint64))
        cells = [self._sketch[row, column[0]] for row, column in enumerate(columns)]
        row = min(range(_SKETCH_ROWS), key=lambda row: cells[row][0])
        noise = (self._total - cells[row]) // (_SKETCH_WIDTH - 1)  # the mean of the other cells
        return np.maximum(cells[row] - noise, 0).tolist()

    def span_evidence(self, document: Document, excluded_tokens: Iterable[int] = ()) -> Iterator[SpanEvidence]:
        """Yield evidence for the names in one document of a collection, computed from all other documents.

        Names inside a longer name of the document get no evidence: "Ontario" in "United Farmers of Ontario". If other
        names overlap, only the longest name gets evidence, and among equally long names the first. The counts of the
        document itself are subtracted.

        Args:
            document: Tagged document, the same as in the call of `add`.
            excluded_tokens: Tokens that get no evidence.
        """
        own, covered = self._shares(document), set(excluded_tokens)
        key_of: dict[tuple[int, int], int] = {}
        evidence_of: dict[int, list[float]] = {}
        for start, end in self._candidates(document, covered):
            key = hash_phrase(document.tokens[start:end])
            counts = self._counts_of(key)
            if counts is None:
                continue
            n, *shares = (max(a - b, 0) for a, b in zip(counts, own.get(key) or [0] * len(counts), strict=True))
            if n:
                key_of[start, end] = key
                evidence_of[key] = self.evidence.log_odds(n / _SCALE, [share / _SCALE for share in shares])
        spans = sorted(disjoint_spans(key_of))
        n_occurrences = Counter(key_of[span] for span in spans)
        for start, end in spans:
            key = key_of[start, end]
            divisor = n_occurrences[key] ** self.evidence.repetition
            for label, strength in zip(self.labels, evidence_of[key], strict=True):
                yield SpanEvidence(Span(start, end, label), strength / divisor)

    def _candidates(self, document: Document, excluded_tokens: set[int]) -> Iterator[tuple[int, int]]:
        """Yield (start, end) for each phrase within a sentence that may be a name of the collection.

        Both are token indices; ``end`` is exclusive. Phrases inside a longer name of the document are left out.
        """
        if not document.n_tokens:
            return
        longest = self._first[(hash_strings(list(document.tokens)) % _N_FIRST).astype(np.int64)]
        starts = np.flatnonzero(longest)
        ends = document.sentence_offsets[np.searchsorted(document.sentence_offsets, starts, side="right")]
        names = {token: (start, end) for start, end, _ in document.spans or () for token in range(start, end)}
        for start, length, sentence_end in zip(starts.tolist(), longest[starts].tolist(), ends.tolist(), strict=True):
            first, last = names.get(start, (start, start))
            for end in range(start + 1, min(start + length, sentence_end) + 1):
                if end - 1 in excluded_tokens:
                    break
                if end > last or (start, end) == (first, last):
                    yield start, end

    def checksum(self) -> str:
        """Return the SHA-256 checksum of the labels, the parameters and all counts."""
        digest = hashlib.sha256(f"{self.labels} {self.max_names} {self.evidence} {self.n_documents}\n".encode())
        digest.update(self._first.tobytes())
        if self._sketch is not None:
            digest.update(self._sketch.tobytes())
        else:
            keys = np.array(list(self._row_of), np.uint64)
            order = np.argsort(keys)
            digest.update(keys[order].tobytes())
            digest.update(self._counts[: len(keys)][order].tobytes())
        return digest.hexdigest()


def _columns(keys: NDArray[np.uint64]) -> list[Int64s]:
    """Return the column of each key in each row of the count sketch. Each row uses different bits of the key."""
    bits = _SKETCH_WIDTH.bit_length() - 1
    return [
        ((keys >> np.uint64(bits * row)) % np.uint64(_SKETCH_WIDTH)).astype(np.int64) for row in range(_SKETCH_ROWS)
    ]
