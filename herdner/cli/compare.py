"""``herdner evaluate --compare A B``: two taggers, backends or files of predictions on the same documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from herdner.cli.common import complain, inference
from herdner.cli.gold import Gold, read_gold, timed
from herdner.cli.usage import UsageError

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.corpora.reading import SourceFile
    from herdner.evaluation.compare import Comparison, ResamplingUnit
    from herdner.ner.inference import Inference
    from herdner.text.document import Document
    from herdner.text.tokenize import Tokenizer

FORMS = "MODEL, MODEL@BACKEND, MODEL@BACKEND:KEY=VALUE:... or FILE:FORMAT"
# The last @ before what can be a backend's name; the folders and the extension of a path are none.
_WITH_BACKEND = re.compile(r"(?P<model>.*)@(?P<backend>[^@:/\\.]*)(?::(?P<options>.*))?", re.DOTALL)


@dataclass(frozen=True)
class Side:
    """What is compared: a model, perhaps with a backend and its options, or a file of predictions."""

    name: str
    model: str = ""
    backend: str | None = None
    options: Sequence[str] = ()  # KEY=VALUE
    predictions: SourceFile | None = None


def parse_side(text: str) -> Side:
    """A or B of ``--compare``; wrong use where it has none of the forms.

    A path may hold colons and @: a shipped model or a file that exists under the whole name is taken as it is; what
    `parse_source` takes is a file of predictions; then what follows the last @ is a backend, and its options are parted
    by colons, as their values hold commas.
    """
    from herdner.corpora.reading import parse_source
    from herdner.ner.model_file import shipped_models

    if not text:
        raise UsageError(f"--compare '': expected {FORMS}")
    if text in shipped_models():
        return Side(text, text)
    try:
        return Side(text, predictions=parse_source(text))
    except ValueError:
        pass  # then a model
    parts = None if Path(text).exists() else _WITH_BACKEND.fullmatch(text)
    if parts is None:
        return Side(text, text)
    if not (parts["model"] and parts["backend"]):
        raise UsageError(f"--compare {text!r}: expected {FORMS}")
    options = parts["options"]
    return Side(text, parts["model"], parts["backend"], () if options is None else tuple(options.split(":")))


def compared(
    source: Gold, names: tuple[str, str], seed: int, resamples: int, unit: ResamplingUnit | None
) -> Comparison:
    """Reads the gold documents once, tags them by both sides or reads their predictions, and compares."""
    import numpy as np

    from herdner.evaluation.compare import compare
    from herdner.text.tags import labels_of

    if not resamples:
        raise UsageError("--resamples 0: a comparison is made of resamples; give 1 or more")
    sides = [parse_side(name) for name in names]
    if source.case is not None and (file := next((side for side in sides if side.predictions), None)):
        raise UsageError(f"--case: {file.name} is a file of predictions, not a model that could tag the text anew")
    taggers = load_taggers(sides)
    options = [
        None if s.predictions else inference(s.backend, s.options, taggers[s.model], f"--compare {s.name}:")
        for s in sides
    ]
    tokenizer = shared_tokenizer(sides, taggers)
    # What is predicted is read before the tagging, which may take long.
    mapped, labels = source.map_labels is True, source.labels
    read = [
        read_gold([s.predictions], tokenizer, mapped, labels=labels, strict=source.strict) if s.predictions else None
        for s in sides
    ]
    known = [tag for tagger in taggers.values() for tag in tagger.classes_]
    known += [tag for documents in read for document in documents or () for tag in document.tags or ()]
    gold = source.read(tokenizer, labels_of(known), " or ".join(dict.fromkeys(names)))
    results = [
        (documents, None) if documents is not None else tagged(letter, side, taggers[side.model], gold, given, seed)
        for letter, side, documents, given in zip("AB", sides, read, options, strict=True)
    ]
    (a, speed_a), (b, speed_b) = results
    return compare(
        gold, a, b, rng=np.random.default_rng(seed), n_resamples=resamples, unit=unit, names=names,
        tokens_per_second=(speed_a, speed_b),
    )  # fmt: skip


def load_taggers(sides: list[Side]) -> dict[str, Tagger]:
    """The taggers of the sides by their models, each loaded once."""
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


def shared_tokenizer(sides: list[Side], taggers: dict[str, Tagger]) -> Tokenizer:
    """What splits running text for both: the tokenizer of the first model, or the default."""
    from herdner.text.tokenize import Tokenizer, TokenizerSettings

    settings = [tagger.model_.tokenizer for tagger in taggers.values()] or [TokenizerSettings()]
    if any(other != settings[0] for other in settings):
        complain(f"the models split text differently; running text is split as {sides[0].model} does")
    return Tokenizer(settings[0])


def tagged(
    letter: str, side: Side, tagger: Tagger, gold: list[Document], options: Inference | None, seed: int
) -> tuple[list[Document], float]:
    """What a side's tagger makes of the documents, and its tokens per second; errors name the side."""
    try:
        return timed(tagger, gold, options, seed, f"tagging {letter}")
    except ValueError as error:
        raise ValueError(f"{side.name}: {error}") from None
