"""Contents of a report as values: results of each prediction, and comparisons with the first prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from herdner.evaluation.calibration import MEASURES, entity_confidences, reliability_curve
from herdner.evaluation.compare import Comparison, ResamplingUnit, compare
from herdner.evaluation.consistency import (
    InconsistentName,
    RepeatedNameCounts,
    ShortFormCounts,
    count_repeated_names,
    count_short_forms,
    find_inconsistent_names,
)
from herdner.evaluation.errors import (
    Confusion,
    DocumentMatch,
    FrequentError,
    count_confusion,
    find_fixed_errors,
    find_frequent_errors,
    match_documents,
)
from herdner.evaluation.partial import PartialScores, partial_scores
from herdner.evaluation.scores import Scores, evaluate
from herdner.text.document import Document


@dataclass(frozen=True)
class ReportSettings:
    """Settings of an evaluation report.

    Attributes:
        seed: Seed of the bootstrap and of the random swaps.
        n_resamples: Number of bootstrap samples, and of random swaps.
        unit: Unit to resample; None chooses "document" if there are two documents or more, else "sentence".
        n_errors: Largest number of frequent errors to list.
        n_examples: Largest number of examples for each error.
    """

    seed: int = 0
    n_resamples: int = 10_000
    unit: ResamplingUnit | None = None
    n_errors: int = 20
    n_examples: int = 3

    def rng(self) -> np.random.Generator:
        """Return a new random number generator with the seed of the report.

        Every measurement uses a new generator.
        """
        return np.random.default_rng(self.seed)

    def frequent_errors(self, matches: Sequence[DocumentMatch], gold: Sequence[Document]) -> list[FrequentError]:
        """Return the most frequent errors among the matches of a prediction.

        Args:
            matches: Matches of one prediction.
            gold: Gold documents.

        Returns:
            Errors by decreasing count.
        """
        return find_frequent_errors(matches, gold, n=self.n_errors, n_examples=self.n_examples)


@dataclass(frozen=True)
class Prediction:
    """Predicted documents of one tagger, with the name and file of the prediction.

    Attributes:
        name: Name of the prediction.
        source: File of the prediction.
        documents: Predicted documents with the gold tokens (see `herdner.evaluation.align.align_documents`).
    """

    name: str
    source: str
    documents: Sequence[Document]


@dataclass(frozen=True)
class CalibrationResult:
    """Calibration measures of one prediction, and the points of its reliability diagram.

    Attributes:
        n_entities: Number of predicted entities.
        measures: Calibration measures by name.
        confidence: Mean confidence of each bin of equal mass.
        precision: Precision of each bin.
        size: Number of entities in each bin.
    """

    n_entities: int
    measures: dict[str, float]
    confidence: list[float]
    precision: list[float]
    size: list[int]


@dataclass(frozen=True)
class SystemResult:
    """Evaluation of one prediction: scores, confusion, errors, consistency and calibration.

    Attributes:
        name: Name of the prediction.
        source: File of the prediction.
        scores: Scores of `evaluate`, which count exact matches only.
        partial: Scores of partial matches; None if nervaluate is not installed.
        confusion: Confusion matrix of labels.
        errors: Most frequent errors.
        consistency: Counts of repeated names.
        inconsistent_names: Names with several labels in one document.
        short_forms: Counts of short forms by label.
        calibration: Calibration; None if some entity has no confidence.
    """

    name: str
    source: str
    scores: Scores
    partial: PartialScores | None
    confusion: Confusion
    errors: list[FrequentError]
    consistency: RepeatedNameCounts
    inconsistent_names: list[InconsistentName]
    short_forms: dict[str, ShortFormCounts]
    calibration: CalibrationResult | None

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation of the prediction as a dict of plain Python values."""
        return {
            **asdict(self), "confusion": self.confusion.to_dict(), "consistency": self.consistency.to_dict(),
            "short_forms": {label: counts.to_dict() for label, counts in self.short_forms.items()},
        }  # fmt: skip


@dataclass(frozen=True)
class SystemChange:
    """Comparison of two predictions: a significance test, fixed errors and new errors.

    Attributes:
        before: Name of the first prediction.
        after: Name of the second prediction.
        comparison: Significance test; None if there are fewer than two documents or sentences.
        n_fixed: Number of errors that only the first prediction makes.
        n_new: Number of errors that only the second prediction makes.
        fixed: Most frequent errors that only the first prediction makes.
        new: Most frequent errors that only the second prediction makes.
    """

    before: str
    after: str
    comparison: Comparison | None
    n_fixed: int
    n_new: int
    fixed: list[FrequentError]
    new: list[FrequentError]


@dataclass(frozen=True)
class Report:
    """Evaluation report of one or more predictions on the same gold documents.

    Attributes:
        gold: File of the gold documents.
        n_documents: Number of documents.
        n_sentences: Number of sentences.
        n_tokens: Number of tokens.
        n_entities: Number of gold entities.
        gold_consistency: Counts of repeated names in the gold documents.
        systems: Evaluation of each prediction.
        changes: Comparison of each further prediction with the first.
        warnings: Lines about dubious input and missing packages.
    """

    gold: str
    n_documents: int
    n_sentences: int
    n_tokens: int
    n_entities: int
    gold_consistency: RepeatedNameCounts
    systems: list[SystemResult]
    changes: list[SystemChange]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict of plain Python values.

        Returns:
            The version of herdner, a mapping "gold" of the source, sizes and consistency of the gold documents, and the
            lists "systems" of `SystemResult`, "changes" of `SystemChange` and "warnings" of lines.
        """
        sizes = {key: getattr(self, key) for key in ("n_documents", "n_sentences", "n_tokens", "n_entities")}
        return {
            "herdner": version("herdner"),
            "gold": {"source": self.gold, **sizes, "consistency": self.gold_consistency.to_dict()},
            "systems": [system.to_dict() for system in self.systems],
            "changes": [asdict(change) for change in self.changes],
            "warnings": self.warnings,
        }


def make_report(
    gold_source: str, gold: Sequence[Document], predictions: Sequence[Prediction], settings: ReportSettings,
    warnings: Sequence[str] = (),
) -> Report:  # fmt: skip
    """Score the documents of each tagger, and compare each tagger after the first with the first.

    Args:
        gold_source: File of the gold documents.
        gold: Gold documents.
        predictions: One prediction or more.
        settings: Settings of the report.
        warnings: Lines that the report should contain.

    Returns:
        The report.

    Raises:
        ValueError: There is no prediction, the documents do not match, or a confidence is not in [0, 1].
    """
    if not predictions:
        raise ValueError("`predictions` is empty; a report needs the predictions of at least one tagger")
    lines = list(warnings)
    matched = [(prediction, match_documents(gold, prediction.documents)) for prediction in predictions]
    systems = [_system(prediction, gold, matches, settings, lines) for prediction, matches in matched]
    changes = [_change(gold, matched[0], later, settings, lines) for later in matched[1:]]
    scores = systems[0].scores
    return Report(
        gold_source, scores.n_documents, scores.n_sentences, scores.n_tokens, scores.micro.support,
        count_repeated_names(gold), systems, changes, list(dict.fromkeys(lines)),
    )  # fmt: skip


def _system(
    prediction: Prediction, gold: Sequence[Document], matches: Sequence[DocumentMatch], settings: ReportSettings,
    warnings: list[str],
) -> SystemResult:  # fmt: skip
    documents = prediction.documents
    partial = None
    try:
        partial = partial_scores(gold, documents)
    except ImportError as error:
        warnings.append(str(error))
    return SystemResult(
        prediction.name,
        prediction.source,
        evaluate(gold, documents, rng=settings.rng(), n_resamples=settings.n_resamples),
        partial,
        count_confusion(matches),
        settings.frequent_errors(matches, gold),
        count_repeated_names(documents, gold),
        find_inconsistent_names(gold, documents, settings.n_errors),
        count_short_forms(gold, documents),
        _calibration(prediction, gold, warnings),
    )


def _calibration(prediction: Prediction, gold: Sequence[Document], warnings: list[str]) -> CalibrationResult | None:
    confidences = [entity.confidence for document in prediction.documents for entity in document.entities]
    n_missing = confidences.count(None)
    if 0 < n_missing < len(confidences):
        warnings.append(f"{prediction.name}: {n_missing:,} entities have no confidence, so there is no calibration")
    if n_missing or not confidences:
        return None
    try:
        sample = entity_confidences(gold, prediction.documents)
    except ValueError as error:
        raise ValueError(f"{prediction.source}: {error}") from None
    confidence, precision, size = reliability_curve(sample, "mass")
    measures = {name: measure(sample) for name, measure in MEASURES.items()}
    return CalibrationResult(len(confidences), measures, confidence.tolist(), precision.tolist(), size.tolist())


def _change(
    gold: Sequence[Document], before: tuple[Prediction, Sequence[DocumentMatch]],
    after: tuple[Prediction, Sequence[DocumentMatch]], settings: ReportSettings, warnings: list[str],
) -> SystemChange:  # fmt: skip
    (a, matches_a), (b, matches_b) = before, after
    comparison = None
    try:
        comparison = compare(
            gold, a.documents, b.documents, rng=settings.rng(), n_resamples=settings.n_resamples, unit=settings.unit,
            names=(a.name, b.name),
        )  # fmt: skip
    except ValueError as error:  # the documents are aligned, so there are too few units
        warnings.append(f"{a.name}, {b.name}: {error}")
    fixed, new = find_fixed_errors(matches_a, matches_b), find_fixed_errors(matches_b, matches_a)
    frequent = (settings.frequent_errors(matches, gold) for matches in (fixed, new))
    return SystemChange(a.name, b.name, comparison, len(fixed), len(new), *frequent)
