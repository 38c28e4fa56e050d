"""Comparison of two taggers, backends or files of predictions: ``herdner evaluate --compare A B``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import is_zipfile

from herdner.cli.common import parse_inference, print_note, show_activity
from herdner.cli.gold import GoldFiles, tag_timed
from herdner.cli.usage import UsageError

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.corpora.reading import FileAndFormat
    from herdner.evaluation.compare import Comparison, ResamplingUnit
    from herdner.ner.inference import Inference
    from herdner.text.document import Document
    from herdner.text.tokenize import Tokenizer

FORMS = "MODEL, MODEL@BACKEND, MODEL@BACKEND:KEY=VALUE:... or FILE:FORMAT"
# The last @ before the name of a backend, which contains neither separators of paths nor a dot.
_MODEL_AND_BACKEND = re.compile(r"(?P<model>.*)@(?P<backend>[^@:/\\.]*)(?::(?P<options>.*))?", re.DOTALL)


@dataclass(frozen=True)
class ComparisonSide:
    """One side of a comparison: a model or a file of predictions.

    Attributes:
        name: Text of the argument.
        model: Name or path of the model; empty for predictions.
        backend: Name of the backend; None: the default of the model.
        options: KEY=VALUE options of the backend.
        predictions: File of predictions; None for a model.
    """

    name: str
    model: str = ""
    backend: str | None = None
    options: Sequence[str] = ()
    predictions: FileAndFormat | None = None


def parse_side(text: str, format: str | None = None) -> ComparisonSide:
    """Parse one argument of ``--compare`` into a model or a file of predictions.

    A path may contain ":" and "@". Therefore the argument is interpreted as the first of these that fits: the name of a
    shipped model, FILE:FORMAT, the path of an existing file, a model and a backend, a model. ":" separates the options
    of a backend, because their values may contain commas.

    Args:
        text: The argument.
        format: Value of ``--input``, the format of a file of predictions without format.

    Returns:
        The model or file.

    Raises:
        UsageError: The model or the backend is empty.
    """
    from herdner.corpora.reading import parse_source
    from herdner.ner.model_file import shipped_models

    if not text:
        raise UsageError(f"--compare '': expected {FORMS}")
    if text in shipped_models():
        return ComparisonSide(text, text)
    is_other_file = format is not None and Path(text).exists() and not is_zipfile(text)  # models are zip files
    try:
        return ComparisonSide(text, predictions=parse_source(text, format if is_other_file else None))
    except ValueError:
        pass  # the argument is not a file of predictions
    parts = None if Path(text).exists() else _MODEL_AND_BACKEND.fullmatch(text)
    if parts is None:
        return ComparisonSide(text, text)
    if not (parts["model"] and parts["backend"]):
        raise UsageError(f"--compare {text!r}: expected {FORMS}")
    options = parts["options"]
    return ComparisonSide(text, parts["model"], parts["backend"], () if options is None else tuple(options.split(":")))


def compare_sides(
    files: GoldFiles, names: tuple[str, str], format: str | None, seed: int, resamples: int, unit: ResamplingUnit | None
) -> Comparison:
    """Compare two sides, each a model or a file of predictions, on the same gold documents.

    Args:
        files: Annotated files.
        names: Arguments of ``--compare``.
        format: Value of ``--input``.
        seed: Random seed.
        resamples: Number of bootstrap samples.
        unit: Unit to resample; None chooses it by the number of documents.

    Returns:
        The comparison.

    Raises:
        UsageError: An option is not valid.
        ValueError: A file or model is not valid.
    """
    import numpy as np

    from herdner.evaluation.compare import compare

    if not resamples:
        raise UsageError("--resamples 0: a comparison needs at least 1 bootstrap sample")
    sides = [parse_side(name, format) for name in names]
    if files.case is not None and (side := next((side for side in sides if side.predictions), None)):
        raise UsageError(
            f"--case changes the letter case of the text before a model tags it, but {side.name} is a file of"
            " predictions; compare models only"
        )
    taggers = _load_taggers(sides)
    inferences = [
        None if s.predictions else parse_inference(s.backend, s.options, taggers[s.model], f"--compare {s.name}:")
        for s in sides
    ]
    tokenizer = _shared_tokenizer(sides, taggers)
    # Predictions are read before tagging, so that errors in them are reported before the slow part.
    predictions = [files.read(tokenizer, [s.predictions]) if s.predictions else None for s in sides]
    known_labels = {label for tagger in taggers.values() for label in tagger.labels}
    known_labels |= {entity.label for documents in predictions for d in documents or () for entity in d.entities}
    gold = files.read_known(tokenizer, known_labels, " or ".join(dict.fromkeys(names)))
    (a, speed_a), (b, speed_b) = [
        (documents, None)
        if documents is not None
        else _tag_side(letter, side, taggers[side.model], gold, inference, seed)
        for letter, side, documents, inference in zip("AB", sides, predictions, inferences, strict=True)
    ]
    with show_activity("comparing"):
        return compare(
            gold, a, b, rng=np.random.default_rng(seed), n_resamples=resamples, unit=unit, names=names,
            tokens_per_second=(speed_a, speed_b),
        )  # fmt: skip


def _load_taggers(sides: list[ComparisonSide]) -> dict[str, Tagger]:
    """Load the model of each side of a comparison; a model that occurs twice is loaded once."""
    import herdner
    from herdner.ner.model_file import ModelError

    taggers: dict[str, Tagger] = {}
    for side in sides:
        if side.predictions is None and side.model not in taggers:
            try:
                taggers[side.model] = herdner.load(side.model)
            except ModelError as error:
                if Path(side.model).exists():
                    raise
                raise ModelError(f"--compare: {error}; expected {FORMS}") from None
    return taggers


def _shared_tokenizer(sides: list[ComparisonSide], taggers: dict[str, Tagger]) -> Tokenizer:
    """Return the tokenizer of the first model; return the default tokenizer if no side of the comparison is a model."""
    from herdner.text.tokenize import Tokenizer, TokenizerSettings

    settings = [tagger.model_.tokenizer for tagger in taggers.values()] or [TokenizerSettings()]
    if any(other != settings[0] for other in settings):
        print_note(f"the models have different tokenizers; running text is split by the tokenizer of {sides[0].model}")
    return Tokenizer(settings[0])


def _tag_side(
    letter: str, side: ComparisonSide, tagger: Tagger, gold: list[Document], inference: Inference | None, seed: int,
) -> tuple[list[Document], float | None]:  # fmt: skip
    """Tag the gold documents with the model of one side.

    Error messages begin with the name of the side.
    """
    try:
        return tag_timed(tagger, gold, inference, seed, f"tagging {letter}")
    except ValueError as error:
        raise ValueError(f"{side.name}: {error}") from None
