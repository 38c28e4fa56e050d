"""Command ``herdner report``: evaluation of a tagger's predicted entities against gold documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import open_output, print_note, show_activity
from herdner.cli.gold import GoldFiles, parse_renames, parse_sources
from herdner.cli.groups import TableOptions
from herdner.cli.usage import UsageError, check_encoding, check_output, usage_errors

if TYPE_CHECKING:
    from herdner.corpora.reading import FileAndFormat
    from herdner.evaluation.report import Prediction
    from herdner.text.document import Document

FORMATS = {"md": "md", "markdown": "md", "json": "json", "html": "html", "htm": "html", "": "md"}  # by file extension


@command
def report(
    files: Annotated[list[str], typer.Argument(
        metavar="FILE:FORMAT", help="File of gold documents, as in dev.conll:conll.")],
    tables: TableOptions,
    input_: opt.InputOption = None,
    predictions: Annotated[list[str] | None, typer.Option(
        "--predictions", metavar="FILE:FORMAT", help="File of predictions; may be repeated.")] = None,
    before: Annotated[str | None, typer.Option(
        "--before", metavar="FILE:FORMAT", help="File of predictions with the name 'before' in the report.")] = None,
    after: Annotated[str | None, typer.Option(
        "--after", metavar="FILE:FORMAT", help="File of predictions with the name 'after' in the report.")] = None,
    name: Annotated[list[str] | None, typer.Option(
        "--name", help="Name of a file of predictions in the report; one for each file, in order.")] = None,
    rename: opt.RenameOption = None,
    rename_labels: opt.RenameLabelsOption = False,
    gold_labels: Annotated[bool, typer.Option(
        "--gold-labels", help="Leave out predicted entities whose label no gold entity has.")] = False,
    format_: Annotated[Literal["md", "html", "json"] | None, typer.Option(
        "--format", "-f", help="Format of the report [default: by the extension of --output, else md].")] = None,
    output: Annotated[str | None, typer.Option(
        "--output", "-o", help="Write this file (.md, .html, .json) instead of standard output.")] = None,
    max_errors: Annotated[int, typer.Option(
        "--max-errors", min=0, max=100_000, help="Number of frequent errors to list.")] = 20,
    examples: Annotated[int, typer.Option(
        "--examples", min=0, max=1000, help="Number of examples for each error.")] = 3,
    resamples: Annotated[int, typer.Option(
        "--resamples", min=1, max=opt.MAX_RESAMPLES, help="Number of bootstrap samples, and of random swaps for the "
        "p-values.")] = 10_000,
    unit: opt.UnitOption = None,
    seed: opt.SeedOption = 0,
    encoding: opt.EncodingOption = "utf-8",
    strict: opt.StrictOption = False,
) -> None:  # fmt: skip
    """Evaluate a tagger's predicted entities against gold documents; write a report in Markdown, JSON or HTML.

    For example: herdner report gold.conll:conll --before chain.jsonl --after links.jsonl --output report.html

    The tagger may be any program. Files are FILE:FORMAT in any format that herdner reads. FORMAT may be left out if the
    file extension determines it. The texts must be equal except for white space; tokens may differ, because predictions
    are aligned with the gold tokens. Documents are matched by id if the ids are unique and every gold document has a
    prediction, else by their order; predictions for other documents are left out.

    For each file of predictions, the report has strict scores by label with a bootstrap interval, partial matches, the
    confusion of labels, the most frequent errors in context and the consistency of repeated names. If entities have
    confidences, it also has their calibration. Each further file of predictions is compared with the first: difference
    in F1 with interval and p-values, fixed errors and new errors. HTML reports also have figures.

    Partial matches, HTML and figures need the extra "evaluate"; without the extra, a message states how to install it.
    """
    report_format = _report_format(format_, output)
    check_encoding(encoding)
    renames = parse_renames(rename)
    sources, names = _parse_files(files, input_, predictions or [], before, after, name)
    check_output(output, [source.path for source in sources])

    from herdner.evaluation.report import WRITERS, ReportSettings, make_report

    warnings: list[str] = []
    if report_format == "html":
        from herdner.evaluation.report.html import missing_packages

        with usage_errors(kind=ImportError):
            warnings = missing_packages()
    options = {"encoding": encoding, **tables.read_options()}
    gold_files = GoldFiles(sources[:1], rename_labels, renames, None, strict, options)
    gold, systems = _read_and_align(gold_files, zip(names, sources[1:], strict=True), warnings, gold_labels)
    settings = ReportSettings(seed, resamples, unit, max_errors, examples)
    with show_activity("evaluating"):
        result = make_report(sources[0].path, gold, systems, settings, warnings)
    for line in result.warnings:
        print_note(line)
    text = WRITERS[report_format](result)
    with open_output(output) as stream:
        stream.write(text)


def _read_and_align(
    gold_files: GoldFiles, sources: Iterable[tuple[str, FileAndFormat]], warnings: list[str], gold_labels_only: bool
) -> tuple[list[Document], list[Prediction]]:
    """Return the gold documents, and the predictions aligned with the gold tokens; add warnings to ``warnings``."""
    from herdner.evaluation.align import align_predictions
    from herdner.evaluation.report import Prediction
    from herdner.text.tokenize import Tokenizer

    gold = gold_files.read(Tokenizer())
    predictions: list[Prediction] = []
    for name, source in sources:
        aligned, lines = align_predictions(
            gold, gold_files.read_unchecked(source), source.path, labels=gold_files.renames,
            gold_labels_only=gold_labels_only,
        )  # fmt: skip
        predictions.append(Prediction(name, source.path, aligned))
        warnings += lines
    return gold, predictions


def _report_format(format: str | None, output: str | None) -> str:
    """Return ``format`` if it is set, and otherwise the report format of the file extension of ``output``."""
    if format is not None:
        return format
    extension = Path(output or "").suffix.lower().lstrip(".")
    if extension not in FORMATS:
        raise UsageError(f"--output {output}: expected the file extension .md, .html or .json; or add --format")
    return FORMATS[extension]


def _parse_files(
    files: Sequence[str], format: str | None, predictions: Sequence[str], before: str | None, after: str | None,
    names: Sequence[str] | None,
) -> tuple[list[FileAndFormat], list[str]]:  # fmt: skip
    """Return the list of all files (gold file first, then predictions), and a name for each file of predictions."""
    if (before is None) != (after is None):
        raise UsageError("only one of --before and --after is given; give both, or neither")
    pair = [] if before is None or after is None else [before, after]
    if len(files) > 1:
        raise UsageError(
            f"expected one file of gold documents, got {len(files)}; put --predictions before each file of"
            f" predictions, as in --predictions {files[1]}"
        )
    if predictions and pair:
        raise UsageError("--predictions cannot be combined with --before and --after; leave out one of them")
    sources = parse_sources([*files, *predictions, *pair], format)
    if len(sources) < 2:
        raise UsageError("the file of predictions is missing; add --predictions FILE:FORMAT")
    if names:
        if len(names) != len(sources) - 1:
            raise UsageError(
                f"--name: expected one name for each file of predictions ({len(sources) - 1}), got {len(names)}"
            )
        if len(set(names)) < len(names):
            raise UsageError(f"--name: each file of predictions must have a different name, got {', '.join(names)}")
        return sources, list(names)
    short = ["before", "after"] if pair else [Path(source.path).name for source in sources[1:]]
    is_unique = len(set(short)) == len(short)
    return sources, short if is_unique else [f"{part} ({i})" for i, part in enumerate(short, 1)]
