"""Consistency of names within a document: repeated names, and short forms of longer names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from herdner.evaluation.scores import pair_documents
from herdner.evaluation.tabular import Tabular, percent
from herdner.text.document import Document
from herdner.text.tags import Span

_MOST_INCONSISTENT = 20  # inconsistent names that are listed


NameTokens = tuple[str, ...]
"""Tokens of a name. Names that differ only in letter case are different names."""

SHORT_FORM_WORD: Mapping[str, int] = {"ORG": 0, "PER": -1}
"""Index of the word that is the short form of a name, by label: the first of an organisation, the last of a person."""


class RepeatedName(NamedTuple):
    """Name that occurs at least twice in a document and is tagged at least once.

    Attributes:
        document: Index of the document.
        name: Tokens of the name.
        labels: Number of tagged mentions by label.
        n_untagged: Number of occurrences that touch no entity. An occurrence inside a longer name, such as "Clinton"
            in "Bill Clinton", is counted neither here nor in ``labels``.
    """

    document: int
    name: NameTokens
    labels: Mapping[str, int]
    n_untagged: int

    @property
    def n_mentions(self) -> int:
        """Number of tagged mentions of the name."""
        return sum(self.labels.values())

    @property
    def has_several_labels(self) -> bool:
        """True if the mentions of the name have different labels."""
        return len(self.labels) > 1


@dataclass(frozen=True, slots=True)
class RepeatedNameCounts:
    """Counts of names that are repeated in a document: with different labels, partly untagged, or all correct.

    A name is counted once for each document in which it is repeated.

    Attributes:
        n_repeated: Names with at least two tagged mentions in a document.
        n_differing: Repeated names whose mentions have different labels.
        n_occurring: Names that are tagged at least once and occur at least twice, tagged or not.
        n_partly_missed: Names that are tagged at one occurrence and untagged at another.
        n_unlike_reference: Names in ``n_differing`` that are also repeated in the reference, with a single label; None
            without reference.
        n_correct: Repeated names whose every mention is in the reference, with the same boundaries and label; None
            without reference.
    """

    n_repeated: int
    n_differing: int
    n_occurring: int
    n_partly_missed: int
    n_unlike_reference: int | None = None
    n_correct: int | None = None

    @property
    def share_differing(self) -> float:
        """Share of repeated names with several labels: ``n_differing / n_repeated``; 0 if no name is repeated."""
        return self.n_differing / max(1, self.n_repeated)

    @property
    def share_correct(self) -> float | None:
        """Share of repeated names whose mentions are all correct: ``n_correct / n_repeated``; 0 if none is repeated.

        None without reference.
        """
        return None if self.n_correct is None else self.n_correct / max(1, self.n_repeated)

    @property
    def share_partly_missed(self) -> float:
        """Share of names that are only partly tagged: ``n_partly_missed / n_occurring``; 0 if no name occurs twice."""
        return self.n_partly_missed / max(1, self.n_occurring)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and shares of repeated names as a dict."""
        shares = {name: getattr(self, name) for name in ("share_differing", "share_partly_missed", "share_correct")}
        return {**asdict(self), **shares}


def count_repeated_names(
    documents: Sequence[Document], reference: Sequence[Document] | None = None
) -> RepeatedNameCounts:
    """Count the names that are repeated in a document, and the inconsistently tagged names among them.

    Args:
        documents: Tagged documents.
        reference: Gold documents with the same tokens. They show which names correctly have several labels in a
            document, such as "Washington". None: the counts that need gold documents are None.

    Returns:
        The counts.
    """
    names = find_repeated_names(documents)
    repeated = [name for name in names if name.n_mentions > 1]
    differing = [name for name in repeated if name.has_several_labels]
    n_unlike_reference = n_correct = None
    if reference is not None:
        counts = _count_correct_mentions(documents, reference)
        n_correct = sum(counts[name.document, name.name] == name.n_mentions for name in repeated)
        gold_names = (name for name in find_repeated_names(reference) if name.n_mentions > 1)
        single_label = {(name.document, name.name) for name in gold_names if not name.has_several_labels}
        n_unlike_reference = sum((name.document, name.name) in single_label for name in differing)
    n_partly_missed = sum(name.n_untagged > 0 for name in names)
    return RepeatedNameCounts(len(repeated), len(differing), len(names), n_partly_missed, n_unlike_reference, n_correct)


@dataclass(frozen=True, slots=True)
class InconsistentName:
    """Name whose predicted mentions have different labels within one document.

    Attributes:
        document: Id of the document.
        name: Text of the name.
        labels: Number of predicted mentions by label; "-" counts occurrences that touch no entity.
        gold_labels: Number of gold mentions by label; "-" as in ``labels``.
        n_correct: Number of predicted mentions that are gold entities.
    """

    document: str | None
    name: str
    labels: dict[str, int]
    gold_labels: dict[str, int]
    n_correct: int

    @property
    def n_mentions(self) -> int:
        """Number of predicted mentions of the name."""
        return sum(n for label, n in self.labels.items() if label != "-")


def find_inconsistent_names(gold: Sequence[Document], predicted: Sequence[Document], n: int) -> list[InconsistentName]:
    """Find the most frequent names whose predicted mentions have different labels within one document.

    Args:
        gold: Gold documents.
        predicted: Predicted documents with the same tokens, in the same order.
        n: Largest number of names to return.

    Returns:
        The names, those with the most mentions first.
    """
    gold_names = {(name.document, name.name): name for name in find_repeated_names(gold)}
    n_correct = _count_correct_mentions(predicted, gold)
    names = [name for name in find_repeated_names(predicted) if name.has_several_labels]
    return [
        InconsistentName(
            gold[name.document].id, " ".join(name.name), _sorted_labels(name),
            _sorted_labels(gold_names.get((name.document, name.name))), n_correct[name.document, name.name],
        )
        for name in sorted(names, key=lambda name: -name.n_mentions)[:n]
    ]  # fmt: skip


def _sorted_labels(name: RepeatedName | None) -> dict[str, int]:
    if name is None:
        return {}
    counts = dict(sorted(name.labels.items(), key=lambda item: (-item[1], item[0])))
    return {**counts, "-": name.n_untagged} if name.n_untagged else counts


def _count_correct_mentions(
    documents: Sequence[Document], reference: Sequence[Document]
) -> Counter[tuple[int, NameTokens]]:
    """Count, for each document and name, the mentions that are also entities of the reference."""
    counts: Counter[tuple[int, NameTokens]] = Counter()
    for i, (document, gold) in enumerate(zip(documents, reference, strict=True)):
        for start, end, _ in set(document.spans or ()) & set(gold.spans or ()):
            counts[i, tuple(document.tokens[start:end])] += 1
    return counts


def find_repeated_names(documents: Sequence[Document]) -> list[RepeatedName]:
    """Find the names that occur at least twice in a document and are tagged at least once.

    Occurrences are equal if their tokens are equal. An untagged occurrence must lie within one sentence.

    Args:
        documents: Tagged documents.

    Returns:
        The names in the order of the text.
    """
    names: list[RepeatedName] = []
    for i, document in enumerate(documents):
        labels: dict[NameTokens, Counter[str]] = defaultdict(Counter)
        spans = document.spans or []
        tokens = list(document.tokens)
        for start, end, label in spans:
            labels[tuple(tokens[start:end])][label] += 1
        untagged = Counter(_untagged_occurrences(document, labels, [(start, end) for start, end, _ in spans]))
        candidates = (RepeatedName(i, name, dict(counts), untagged[name]) for name, counts in labels.items())
        names += [name for name in candidates if name.n_mentions + name.n_untagged > 1]
    return names


def _untagged_occurrences(
    document: Document, names: Mapping[NameTokens, object], spans: Sequence[tuple[int, int]]
) -> Iterator[NameTokens]:
    """Find the occurrences of ``names`` outside all spans, and yield the name of each occurrence.

    An occurrence that overlaps an earlier occurrence of the same name is left out.
    """
    lengths: dict[str, set[int]] = defaultdict(set)  # lengths of the names that begin with a token
    for name in names:
        lengths[name[0]].add(len(name))
    untagged_ends = _untagged_ends(document, spans)
    tokens = list(document.tokens)
    last_end: dict[NameTokens, int] = {}
    for start, token in enumerate(tokens):
        for length in lengths.get(token, ()):
            name = tuple(tokens[start : start + length])
            if start + length <= untagged_ends[start] and name in names and last_end.get(name, 0) <= start:
                last_end[name] = start + length
                yield name


def _untagged_ends(document: Document, spans: Sequence[tuple[int, int]]) -> list[int]:
    """Return, for each token, the exclusive end of the run of untagged tokens that begins at the token.

    A run ends at the next span or at the end of the sentence. For a tagged token, return the index of the token.
    """
    boundaries = np.unique([*document.sentence_offsets.tolist(), *(start for start, _ in spans)])
    tokens = np.arange(document.n_tokens)
    ends: list[int] = boundaries[np.searchsorted(boundaries, tokens, side="right")].tolist()
    for start, end in spans:
        ends[start:end] = range(start, end)
    return ends


@dataclass(frozen=True, slots=True)
class ShortFormCounts:
    """Counts of all and of correct short forms of names with one label, such as "Winam" for "Winam Ferries".

    Attributes:
        label: Entity label.
        n: Number of short forms in the gold documents.
        n_correct: Number of short forms that were predicted with the same boundaries and label.
    """

    label: str
    n: int
    n_correct: int

    @property
    def share_correct(self) -> float:
        """Share of short forms that are correct: ``n_correct / n``; 0 if there is no short form."""
        return self.n_correct / max(1, self.n)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the share of correct short forms as a dict."""
        return {**asdict(self), "share_correct": self.share_correct}


def count_short_forms(
    gold: Sequence[Document], predicted: Sequence[Document], words: Mapping[str, int] = SHORT_FORM_WORD
) -> dict[str, ShortFormCounts]:
    """Count the short forms of names in gold documents, and the short forms that are predicted correctly.

    Args:
        gold: Gold documents.
        predicted: Predicted documents with the same tokens and order. Their tags are read as `evaluate` reads them.
        words: Index of the word that is the short form of a name, by label.

    Returns:
        The counts by label.
    """
    n, n_correct = dict.fromkeys(words, 0), dict.fromkeys(words, 0)
    for document, pair in zip(gold, pair_documents(gold, predicted), strict=True):
        predicted_spans = set(pair.predicted)
        for span in find_short_forms(document, words):
            n[span.label] += 1
            n_correct[span.label] += span in predicted_spans
    return {label: ShortFormCounts(label, n[label], n_correct[label]) for label in words}


def find_short_forms(document: Document, words: Mapping[str, int] = SHORT_FORM_WORD) -> Iterator[Span]:
    """Yield the one-word mentions of a document that are short forms of longer names mentioned earlier.

    An example is "Winam" after "Winam Ferries".

    Words are separated by white space, so that "Coca-Cola" is one word. Comparison is case-sensitive.

    Args:
        document: Gold document.
        words: Index of the word that is the short form of a name, by label.

    Yields:
        Spans of the short forms, in token indices.
    """
    short_forms: set[tuple[str, str]] = set()
    for span in document.spans or []:
        if span.label not in words:
            continue
        name = document.text[document.token_starts[span.start] : document.token_ends[span.end - 1]].split()
        if len(name) > 1:
            short_forms.add((span.label, name[words[span.label]]))
        elif (span.label, name[0]) in short_forms:
            yield span


@dataclass(frozen=True, slots=True)
class InconsistentNames(Tabular):
    """Table of names whose mentions a tagger has labelled differently within one document.

    Attributes:
        prediction: Name of the tagger's output.
        names: The names, those with the most mentions first.
    """

    header: ClassVar[tuple[str, ...]] = ("name", "document", "labels", "gold", "correct")

    prediction: str
    names: tuple[InconsistentName, ...]

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the table of inconsistent names, one for each name."""
        return [
            (name.name, name.document or "", _label_counts(name.labels), _label_counts(name.gold_labels),
             f"{name.n_correct} of {name.n_mentions}")
            for name in self.names
        ]  # fmt: skip

    def summary(self) -> str:
        """Return the line of text below the table of inconsistent names, which explains the columns of the table."""
        title = "Names with several labels" if self.names else "No name has several labels"
        return (
            f"{title}, {self.prediction}; '-' counts occurrences that touch no entity, 'correct' counts mentions that"
            " are gold entities"
        )


def _label_counts(labels: Mapping[str, int]) -> str:
    return ", ".join(f"{label}\N{NO-BREAK SPACE}{n}" for label, n in labels.items())


@dataclass(frozen=True, slots=True)
class Consistency(Tabular):
    """Result of `measure_consistency`: how consistently and correctly predictions tag repeated names and short forms.

    Attributes:
        repeated_names: Counts of repeated names, of the gold documents ("gold") and of each prediction.
        short_forms: Counts of short forms by prediction and label.
        inconsistent_names: Names whose mentions have different labels in a document, in the first prediction.
    """

    header: ClassVar[tuple[str, ...]] = (
        "", "repeated names", "several labels", "all correct", "%", "partly missed",
        *(cell for label in SHORT_FORM_WORD for cell in (f"short forms, {label}", "correct", "%")),
    )  # fmt: skip

    repeated_names: Mapping[str, RepeatedNameCounts]
    short_forms: Mapping[str, Mapping[str, ShortFormCounts]]
    inconsistent_names: InconsistentNames

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the consistency table: one for the gold documents, and one for each prediction."""
        rows: list[tuple[str, ...]] = []
        for name, names in self.repeated_names.items():
            cells = [name, f"{names.n_repeated:,}", f"{names.n_differing:,}"]
            share = names.share_correct
            cells += ["", ""] if share is None else [f"{names.n_correct:,}", percent(share)]
            cells.append(f"{names.n_partly_missed:,}")
            for label in SHORT_FORM_WORD:
                short = self.short_forms.get(name, {}).get(label)
                counts = (f"{short.n:,}", f"{short.n_correct:,}", percent(short.share_correct)) if short else ("",) * 3
                cells += counts
            rows.append(tuple(cells))
        return rows

    def summary(self) -> str:
        """Return the lines of text below the consistency table, which explain the columns of the table."""
        return (
            "Repeated names have at least two mentions in a document; all correct: every mention has the gold"
            " boundaries and label; partly missed: tagged at one occurrence and untagged at another. A short form is a"
            " mention of one word of an earlier, longer name: the first word of an organisation, the last of a person"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all counts of repeated names and short forms as a dict."""
        return {
            "repeated_names": {name: counts.to_dict() for name, counts in self.repeated_names.items()},
            "short_forms": {
                name: {label: counts.to_dict() for label, counts in by_label.items()}
                for name, by_label in self.short_forms.items()
            },
            "inconsistent_names": [asdict(name) for name in self.inconsistent_names.names],
        }


def measure_consistency(gold: Sequence[Document], predicted: Mapping[str, Sequence[Document]]) -> Consistency:
    """Measure how consistently and correctly predictions tag repeated names and short forms.

    Args:
        gold: Gold documents.
        predicted: Predicted documents by the name of the prediction, with the gold tokens and in the same order.

    Returns:
        Counts and inconsistent names.
    """
    counts = {"gold": count_repeated_names(gold)}
    counts |= {name: count_repeated_names(documents, gold) for name, documents in predicted.items()}
    first = next(iter(predicted))
    names = InconsistentNames(first, tuple(find_inconsistent_names(gold, predicted[first], _MOST_INCONSISTENT)))
    short_forms = {name: count_short_forms(gold, documents) for name, documents in predicted.items()}
    return Consistency(counts, short_forms, names)
