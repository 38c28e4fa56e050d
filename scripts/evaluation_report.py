"""What an evaluation of predictions says, as values: one part for each prediction, one for each comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

import herdner
from herdner.evaluation.calibration import MEASURES, claims, reliability
from herdner.evaluation.compare import Comparison, Unit, compare
from herdner.evaluation.mistakes import (
    Confusion,
    Found,
    FrequentError,
    confusion,
    frequent_errors,
    match_documents,
    mended,
)
from herdner.evaluation.partial import PartialScores, partial_matches
from herdner.evaluation.repeats import Consistency, Repeated, consistency, repeated_names
from herdner.evaluation.scores import Scores, evaluate
from herdner.text.document import Document


@dataclass(frozen=True)
class Options:
    """How much is counted and shown."""

    seed: int = 0
    n_resamples: int = 10_000
    unit: Unit | None = None
    n_errors: int = 20
    n_examples: int = 3

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class InconsistentName:
    """A name with several labels in one document: how often it has which, in the prediction and in the gold.

    "-" counts its places that no entity touches.
    """

    document: str | None
    name: str
    labels: dict[str, int]
    gold_labels: dict[str, int]


@dataclass(frozen=True)
class Calibration:
    """``measures`` by name; ``confidence``, ``precision`` and ``size`` of the bins of equal mass."""

    n_entities: int
    measures: dict[str, float]
    confidence: list[float]
    precision: list[float]
    size: list[int]


@dataclass(frozen=True)
class System:
    """One prediction against the gold standard."""

    name: str
    source: str
    scores: Scores
    partial: PartialScores | None
    confusion: Confusion
    errors: list[FrequentError]
    consistency: Consistency
    inconsistent: list[InconsistentName]
    calibration: Calibration | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "source": self.source,
            "scores": self.scores.to_dict(),
            "partial": None if self.partial is None else self.partial.to_dict(),
            "confusion": self.confusion.to_dict(),
            "errors": [asdict(error) for error in self.errors],
            "consistency": self.consistency.to_dict(),
            "inconsistent_names": [asdict(name) for name in self.inconsistent],
            "calibration": None if self.calibration is None else asdict(self.calibration),
        }


@dataclass(frozen=True)
class Change:
    """What the second of two predictions does otherwise: errors that it mends, errors that it makes."""

    before: str
    after: str
    comparison: Comparison | None  # None where there are not two units to draw
    n_mended: int
    n_new: int
    mended: list[FrequentError]
    new: list[FrequentError]

    def to_dict(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "n_mended": self.n_mended,
            "n_new": self.n_new,
            "mended": [asdict(error) for error in self.mended],
            "new": [asdict(error) for error in self.new],
        }


@dataclass(frozen=True)
class Report:
    """All of it; ``notes`` say what is missing or was mended on the way."""

    gold: str
    n_documents: int
    n_sentences: int
    n_tokens: int
    n_entities: int
    gold_consistency: Consistency
    systems: list[System]
    changes: list[Change]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {
            "herdner": herdner.__version__,
            "gold": {
                "source": self.gold,
                "n_documents": self.n_documents,
                "n_sentences": self.n_sentences,
                "n_tokens": self.n_tokens,
                "n_entities": self.n_entities,
                "consistency": self.gold_consistency.to_dict(),
            },
            "systems": [system.to_dict() for system in self.systems],
            "changes": [change.to_dict() for change in self.changes],
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Prediction:
    """The documents of one prediction, on the gold tokens."""

    name: str
    source: str
    documents: Sequence[Document]


def make_report(
    gold_source: str,
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    options: Options,
    notes: Sequence[str] = (),
) -> Report:
    """Measures each prediction, and compares each with the first."""
    said = list(notes)
    found = [match_documents(gold, prediction.documents) for prediction in predictions]
    systems = [_system(p, gold, f, options, said) for p, f in zip(predictions, found, strict=True)]
    changes = [
        _change(gold, predictions[0], later, found[0], its, options, said)
        for later, its in zip(predictions[1:], found[1:], strict=True)
    ]
    return Report(
        gold_source,
        len(gold),
        sum(document.n_sentences for document in gold),
        sum(document.n_tokens for document in gold),
        sum(row.support for row in (systems[0].scores.micro,)),
        consistency(gold),
        systems,
        changes,
        list(dict.fromkeys(said)),
    )


def _system(
    prediction: Prediction, gold: Sequence[Document], found: Sequence[Found], options: Options, notes: list[str]
) -> System:
    documents = prediction.documents
    partial = None
    try:
        partial = partial_matches(gold, documents)
    except ImportError as error:
        notes.append(str(error))
    return System(
        prediction.name,
        prediction.source,
        evaluate(gold, documents, rng=options.rng(), n_resamples=options.n_resamples),
        partial,
        confusion(found),
        frequent_errors(found, gold, n=options.n_errors, n_examples=options.n_examples),
        consistency(documents, gold),
        _inconsistent(gold, documents, options.n_errors),
        _calibration(prediction, gold, notes),
    )


def _inconsistent(gold: Sequence[Document], predicted: Sequence[Document], n: int) -> list[InconsistentName]:
    """The names with the most mentions that the prediction labels in several ways."""
    true = {(name.document, name.name): name for name in repeated_names(gold)}
    names = [name for name in repeated_names(predicted) if name.differs]
    largest = sorted(names, key=lambda name: -name.n_mentions)[:n]
    return [
        InconsistentName(
            gold[name.document].id,
            " ".join(name.name),
            _labels(name),
            _labels(true.get((name.document, name.name))),
        )
        for name in largest
    ]


def _labels(name: Repeated | None) -> dict[str, int]:
    if name is None:
        return {}
    counts = dict(sorted(name.labels.items(), key=lambda item: (-item[1], item[0])))
    return {**counts, "-": name.n_bare} if name.n_bare else counts


def _calibration(prediction: Prediction, gold: Sequence[Document], notes: list[str]) -> Calibration | None:
    known = [entity.confidence is not None for document in prediction.documents for entity in document.entities]
    if not all(known):
        if any(known):
            notes.append(f"{prediction.name}: {known.count(False):,} entities have no confidence; no calibration")
        return None
    if not known:
        return None
    try:
        found = claims(gold, prediction.documents)
    except ValueError as error:
        raise ValueError(f"{prediction.source}: {error}") from None
    confidence, precision, size = (values.tolist() for values in reliability(found, "mass"))
    measures = {name: measure(found) for name, measure in MEASURES.items()}
    return Calibration(len(known), measures, confidence, precision, cast("list[int]", size))


def _change(
    gold: Sequence[Document],
    a: Prediction,
    b: Prediction,
    found_a: Sequence[Found],
    found_b: Sequence[Found],
    options: Options,
    notes: list[str],
) -> Change:
    comparison = None
    try:
        comparison = compare(
            gold, a.documents, b.documents, rng=options.rng(), n_resamples=options.n_resamples, unit=options.unit,
            names=(a.name, b.name),
        )  # fmt: skip
    except ValueError as error:  # the texts are aligned: only too few units are left to complain of
        notes.append(f"{a.name}, {b.name}: {error}")
    gone, new = mended(found_a, found_b), mended(found_b, found_a)
    shown = (frequent_errors(part, gold, n=options.n_errors, n_examples=options.n_examples) for part in (gone, new))
    return Change(a.name, b.name, comparison, len(gone), len(new), *shown)
