"""``herdner report``: predicted names, whoever predicted them, against a gold standard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from herdner.cli.common import command, complain, destination, working
from herdner.cli.gold import encoding_of, parse_map, parse_sources, read_gold
from herdner.cli.options import (
    MAX_RESAMPLES,
    EncodingOption,
    MapLabelsOption,
    MapOption,
    SeedOption,
    StrictOption,
    UnitOption,
)
from herdner.cli.usage import UsageError, check_encoding, check_not_input, check_writable

if TYPE_CHECKING:
    from herdner.corpora.reading import SourceFile
    from herdner.evaluation.report import Prediction
    from herdner.text.document import Document
    from herdner.text.labels import LabelNames

ENDINGS = {"md": "md", "markdown": "md", "json": "json", "html": "html", "htm": "html", "": "md"}


FilesArgument = Annotated[
    list[str],
    typer.Argument(metavar="GOLD:FORMAT [PREDICTED:FORMAT]...", help="The gold standard, then predictions."),
]
BeforeOption = Annotated[
    str | None, typer.Option("--before", metavar="FILE:FORMAT", help="A prediction, called before.")
]
AfterOption = Annotated[str | None, typer.Option("--after", metavar="FILE:FORMAT", help="A prediction, called after.")]
NameOption = Annotated[
    list[str] | None, typer.Option("--name", help="What a prediction is called; one for each, in order.")
]
GoldLabelsOption = Annotated[
    bool, typer.Option("--gold-labels", help="Leave out predicted classes that the gold standard does not have.")
]
FormatOption = Annotated[
    Literal["md", "html", "json"] | None,
    typer.Option("--format", "-f", help="md, html or json [default: by --output, else md]."),
]
OutputOption = Annotated[
    str | None, typer.Option("--output", "-o", help="Write this file (.md, .html, .json) instead of standard output.")
]
MistakesOption = Annotated[
    int, typer.Option("--mistakes", min=0, max=100_000, help="How many kinds of errors to list.")
]
ExamplesOption = Annotated[int, typer.Option("--examples", min=0, max=1000, help="Examples of each kind of errors.")]
ResamplesOption = Annotated[
    int, typer.Option("--resamples", min=1, max=MAX_RESAMPLES, help="Bootstrap samples, and as many random swaps.")
]


@command
def report(
    files: FilesArgument,
    before: BeforeOption = None,
    after: AfterOption = None,
    name: NameOption = None,
    map_: MapOption = None,
    map_labels: MapLabelsOption = False,
    gold_labels: GoldLabelsOption = False,
    format_: FormatOption = None,
    output: OutputOption = None,
    mistakes: MistakesOption = 20,
    examples: ExamplesOption = 3,
    resamples: ResamplesOption = 10_000,
    unit: UnitOption = None,
    seed: SeedOption = 0,
    encoding: EncodingOption = "utf-8",
    strict: StrictOption = False,
) -> None:
    """Measure predicted names against a gold standard, whoever predicted them: a report in Markdown, JSON or HTML.

    For example: herdner report gold.conll:conll --before chain.jsonl --after links.jsonl --output report.html

    Files are FILE:FORMAT in any format that herdner reads (CoNLL columns, JSON lines, DocBin, ...); the extensions
    .conll, .jsonl and .spacy tell theirs. The texts must be the same but for white space, the tokens need not be:
    predictions are laid on the gold tokens. Documents are matched by their ids where these agree, else in order.

    The report holds, for each prediction: strict scores by class with a bootstrap interval, partial matches, the
    confusion of classes, the most frequent errors in their context, how consistently repeated names are tagged, and
    calibration where entities have confidences. Each further prediction is compared with the first one: the
    difference in F1 with its interval and p-values, errors that are mended and new ones. HTML has figures too.

    Partial matches, HTML and figures need: pip install 'herdner[evaluate]'
    """
    form = _format(format_, output)
    check_writable(output)
    check_encoding(encoding)
    labels = parse_map(map_ or ())
    sources, names = _sources(files, before, after, name)
    check_not_input(output, [source.path for source in sources])

    from herdner.evaluation.report import WRITERS, ReportSettings, make_report

    notes = _missing() if form == "html" else []
    gold, predictions = laid(
        sources, names, notes, map_labels=map_labels, encoding=encoding, labels=labels, gold_labels=gold_labels,
        strict=strict,
    )  # fmt: skip
    settings = ReportSettings(seed, resamples, unit, mistakes, examples)
    with working("measuring"):
        made = make_report(sources[0].path, gold, predictions, settings, notes)
    for note in made.warnings:
        complain(note)
    text = WRITERS[form](made)
    with destination(output) as stream:
        stream.write(text)


def laid(
    sources: Sequence[SourceFile],
    names: Sequence[str],
    notes: list[str],
    *,
    map_labels: bool,
    encoding: str,
    labels: LabelNames | None,
    gold_labels: bool,
    strict: bool,
) -> tuple[list[Document], list[Prediction]]:
    """The gold documents, and the predictions on their tokens; what is to be said of these goes to the notes."""
    from herdner.corpora.reading import read
    from herdner.evaluation.align import align_predictions
    from herdner.evaluation.report import Prediction
    from herdner.text.labels import rename_labels
    from herdner.text.tokenize import Tokenizer

    gold = [
        rename_labels(document, labels)
        for document in read_gold(sources[:1], Tokenizer(), map_labels, encoding, strict=strict)
    ]
    predictions: list[Prediction] = []
    for source, name in zip(sources[1:], names, strict=True):
        found = read(source, map_labels=map_labels, strict=strict, **encoding_of(source, encoding))
        documents, said = align_predictions(gold, found, source.path, labels=labels, gold_labels_only=gold_labels)
        predictions.append(Prediction(name, source.path, documents))
        notes += said
    return gold, predictions


def _missing() -> list[str]:
    """What a page will lack, for want of a package; wrong use where there can be no page."""
    from herdner.evaluation.report.html import missing_packages

    try:
        return missing_packages()
    except ImportError as error:
        raise UsageError(str(error)) from None


def _format(format: str | None, output: str | None) -> str:
    """The one that is named, or that of the file's ending."""
    if format is not None:
        return format
    ending = Path(output or "").suffix.lower().lstrip(".")
    if ending not in ENDINGS:
        raise UsageError(f"--output {output}: expected an ending .md, .html or .json; or add --format")
    return ENDINGS[ending]


def _sources(
    files: Sequence[str], before: str | None, after: str | None, names: Sequence[str] | None
) -> tuple[list[SourceFile], list[str]]:
    """Gold and predictions, and what the predictions are called."""
    if (before is None) != (after is None):
        raise UsageError("--before and --after go together")
    given = [] if before is None or after is None else [before, after]
    if len(files) > 1 and given:
        raise UsageError("give the predictions one after the other, or by --before and --after")
    sources = parse_sources([*files, *given])
    if len(sources) < 2:
        raise UsageError("no prediction: expected GOLD:FORMAT PREDICTED:FORMAT...")
    if names:
        if len(names) != len(sources) - 1:
            raise UsageError(f"--name: {len(names)} names for {len(sources) - 1} predictions")
        if len(set(names)) < len(names):
            raise UsageError("--name: two predictions have the same name")
        return sources, list(names)
    short = ["before", "after"] if given else [Path(source.path).name for source in sources[1:]]
    unique = len(set(short)) == len(short)
    return sources, short if unique else [f"{part} ({i})" for i, part in enumerate(short, 1)]
