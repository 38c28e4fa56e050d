"""What a report says, as values: one part for each prediction, one for each comparison with the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from herdner.evaluation.calibration import MEASURES, claims, reliability
from herdner.evaluation.compare import Comparison, Unit, compare
from herdner.evaluation.mistakes import (
    Confusion,
    Found,
    FrequentMistake,
    confusion,
    frequent_mistakes,
    match_documents,
    mended,
)
from herdner.evaluation.partial import PartialScores, partial_matches
from herdner.evaluation.repeats import InconsistentName, Repeats, count_repeats, inconsistent_names
from herdner.evaluation.scores import Scores, evaluate
from herdner.evaluation.short_forms import ShortForms, count_short_forms
from herdner.text.document import Document


@dataclass(frozen=True)
class Options:
    """How much is counted and shown: bootstrap samples, kinds of errors, and examples of each."""

    seed: int = 0
    n_resamples: int = 10_000
    unit: Unit | None = None
    n_errors: int = 20
    n_examples: int = 3

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def frequent(self, found: Sequence[Found], gold: Sequence[Document]) -> list[FrequentMistake]:
        return frequent_mistakes(found, gold, n=self.n_errors, n_examples=self.n_examples)


@dataclass(frozen=True)
class Prediction:
    """Predicted documents with the tokens of the gold ones (`herdner.evaluation.align.align`), their name and the file
    that they are from.
    """

    name: str
    source: str
    documents: Sequence[Document]


@dataclass(frozen=True)
class Reliability:
    """``measures`` by name; ``confidence``, ``precision`` and ``size`` of the bins of equal mass."""

    n_entities: int
    measures: dict[str, float]
    confidence: list[float]
    precision: list[float]
    size: list[int]


@dataclass(frozen=True)
class System:
    """One prediction against the gold standard; None where something is unknown."""

    name: str
    source: str
    scores: Scores
    partial: PartialScores | None
    confusion: Confusion
    errors: list[FrequentMistake]
    consistency: Repeats
    inconsistent_names: list[InconsistentName]
    short_forms: dict[str, ShortForms]
    calibration: Reliability | None

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(self), "confusion": self.confusion.to_dict(), "consistency": self.consistency.to_dict(),
            "short_forms": {label: found.to_dict() for label, found in self.short_forms.items()},
        }  # fmt: skip


@dataclass(frozen=True)
class Change:
    """What the second of two predictions does otherwise: errors that it mends, errors that it makes."""

    before: str
    after: str
    comparison: Comparison | None  # None where there are not two units to draw
    n_mended: int
    n_new: int
    mended: list[FrequentMistake]
    new: list[FrequentMistake]


@dataclass(frozen=True)
class Report:
    """All of it. ``gold`` is the file of the gold standard; ``notes`` say what is missing or was mended on the way."""

    gold: str
    n_documents: int
    n_sentences: int
    n_tokens: int
    n_entities: int
    gold_consistency: Repeats
    systems: list[System]
    changes: list[Change]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; each part has the fields of its class.

        {"herdner": version, "gold": {"source", "n_documents", "n_sentences", "n_tokens", "n_entities", "consistency"},
        "systems": [`System`], "changes": [`Change`], "notes": [text]}
        """
        sizes = {key: getattr(self, key) for key in ("n_documents", "n_sentences", "n_tokens", "n_entities")}
        return {
            "herdner": version("herdner"),
            "gold": {"source": self.gold, **sizes, "consistency": self.gold_consistency.to_dict()},
            "systems": [system.to_dict() for system in self.systems],
            "changes": [asdict(change) for change in self.changes],
            "notes": self.notes,
        }


def make_report(
    gold_source: str,
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    options: Options,
    notes: Sequence[str] = (),
) -> Report:
    """Measures each prediction, and compares each with the first.

    Raises:
        ValueError: There is no prediction, documents do not match, or confidences are none.
    """
    if not predictions:
        raise ValueError("a report needs a prediction or more")
    said = list(notes)
    found = [match_documents(gold, prediction.documents) for prediction in predictions]
    systems = [_system(p, gold, f, options, said) for p, f in zip(predictions, found, strict=True)]
    changes = [
        _change(gold, (predictions[0], found[0]), later, options, said)
        for later in zip(predictions[1:], found[1:], strict=True)
    ]
    scores = systems[0].scores
    return Report(
        gold_source, scores.n_documents, scores.n_sentences, scores.n_tokens, scores.micro.support,
        count_repeats(gold), systems, changes, list(dict.fromkeys(said)),
    )  # fmt: skip


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
        options.frequent(found, gold),
        count_repeats(documents, gold),
        inconsistent_names(gold, documents, options.n_errors),
        count_short_forms(gold, documents),
        _calibration(prediction, gold, notes),
    )


def _calibration(prediction: Prediction, gold: Sequence[Document], notes: list[str]) -> Reliability | None:
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
    confidence, precision, size = reliability(found, "mass")
    measures = {name: measure(found) for name, measure in MEASURES.items()}
    return Reliability(len(known), measures, confidence.tolist(), precision.tolist(), size.tolist())


def _change(
    gold: Sequence[Document],
    before: tuple[Prediction, Sequence[Found]],
    after: tuple[Prediction, Sequence[Found]],
    options: Options,
    notes: list[str],
) -> Change:
    (a, found_a), (b, found_b) = before, after
    comparison = None
    try:
        comparison = compare(
            gold, a.documents, b.documents, rng=options.rng(), n_resamples=options.n_resamples, unit=options.unit,
            names=(a.name, b.name),
        )  # fmt: skip
    except ValueError as error:  # the texts are aligned: only too few units are left to complain of
        notes.append(f"{a.name}, {b.name}: {error}")
    gone, new = mended(found_a, found_b), mended(found_b, found_a)
    shown = (options.frequent(part, gold) for part in (gone, new))
    return Change(a.name, b.name, comparison, len(gone), len(new), *shown)
