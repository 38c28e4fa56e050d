"""Measure predicted names against a gold standard, whoever predicted them: a report in Markdown, JSON or HTML.

    python scripts/evaluate_ner.py gold.conll:conll predicted.jsonl:jsonl
    python scripts/evaluate_ner.py gold.conll:conll --before chain.jsonl --after links.jsonl --output report.html
    python scripts/evaluate_ner.py gold.jsonl en_core_web_sm.spacy ours.spacy --name spaCy --name herdner \
        --map PERSON=PER --map GPE=LOC --gold-classes --format json

Files are FILE:FORMAT in any format that herdner reads (CoNLL columns, JSON lines, DocBin, ...); the extensions .conll,
.jsonl and .spacy tell theirs. The texts must be the same but for white space, the tokens need not be: predictions are
laid on the gold tokens. Documents are matched by their ids where these agree, else one after the other.

The report holds, for each prediction: strict scores by class, micro and macro (seqeval) with a bootstrap interval;
partial matches (nervaluate: pip install 'herdner[report]'); the confusion of classes and the kinds of errors; the most
frequent errors in their context; how consistently names that are repeated in a document are tagged, beside the gold
standard; calibration, where entities have confidences. Of several predictions each is compared with the first: the
difference in F1 with its interval and p-values, errors that are mended and new ones. HTML has figures too
(Matplotlib: 'herdner[plot]').

JSON: {"herdner": version, "gold": {"source", "n_documents", "n_sentences", "n_tokens", "n_entities", "consistency"},
"systems": [{"name", "source", "scores", "partial", "confusion", "errors", "consistency", "inconsistent_names",
"calibration"}], "changes": [{"before", "after", "comparison", "n_mended", "n_new", "mended", "new"}], "notes": [..]}.
Each part has the fields of its class: herdner.evaluation.scores.Scores, herdner.evaluation.partial.PartialScores,
herdner.evaluation.mistakes.Confusion and FrequentError, herdner.evaluation.repeats.Consistency (and its two shares),
herdner.evaluation.compare.Comparison, and those of evaluation_report.py. Null where something is unknown.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer
from evaluation_html import to_html
from evaluation_pages import to_markdown
from evaluation_report import Options, Prediction, Report, make_report

from herdner.cli.common import UsageError, check_encoding, check_writable, command, complain, destination
from herdner.corpora.registry import SourceFile, parse_source, read
from herdner.evaluation.align import align
from herdner.text.document import Document
from herdner.text.io import FORMATS, tokenized
from herdner.text.io.labels import Labels, renamed
from herdner.text.tokenize import Tokenizer

# What others call the classes; only to say which option might help.
SYNONYMS = {
    "PER": "PERSON PERS PEOPLE PS person per",
    "LOC": "LOCATION GPE FAC PLACE location loc",
    "ORG": "ORGANIZATION ORGANISATION NORP CORPORATION COMPANY organization org",
    "MISC": "MISCELLANEOUS OTHER misc",
}
FORMATS_OUT = {"md": to_markdown, "html": to_html, "json": lambda report: to_json(report)}


def to_json(report: Report) -> str:
    return json.dumps(report.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


@command
def main(
    files: Annotated[
        list[str], typer.Argument(metavar="GOLD:FORMAT [PREDICTED:FORMAT]...", help="As in gold.conll:conll.")
    ],
    before: Annotated[str | None, typer.Option(metavar="FILE:FORMAT", help="A prediction named before.")] = None,
    after: Annotated[str | None, typer.Option(metavar="FILE:FORMAT", help="A prediction named after.")] = None,
    name: Annotated[list[str] | None, typer.Option(help="What a prediction is called; one for each, in order.")] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OLD=NEW", help="Rename a class, everywhere; OLD= drops it. May be repeated."),
    ] = None,
    map_labels: Annotated[
        bool, typer.Option("--map-labels", help="Map the classes of known corpora to PER, LOC and ORG.")
    ] = False,
    gold_classes: Annotated[
        bool, typer.Option("--gold-classes", help="Leave out predicted classes that the gold standard does not have.")
    ] = False,
    format_: Annotated[
        str | None, typer.Option("--format", "-f", help="md, json or html [default: by --output, else md].")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write this file instead of stdout.")] = None,
    errors: Annotated[int, typer.Option(min=0, max=100_000, help="How many kinds of errors are listed.")] = 20,
    examples: Annotated[int, typer.Option(min=0, max=1000, help="Examples of each.")] = 3,
    resamples: Annotated[int, typer.Option(min=1, max=10_000_000, help="Bootstrap samples and swaps.")] = 10_000,
    unit: Annotated[str | None, typer.Option(help="Resample by document or sentence [default: document].")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 0,
    encoding: Annotated[str, typer.Option(help="Encoding of text files.")] = "utf-8",
) -> None:
    """Measure predicted names against a gold standard; predictions are compared with the first one."""
    writer = FORMATS_OUT[_format(format_, output)]
    check_writable(output)
    check_encoding(encoding)
    if unit not in (None, "document", "sentence"):
        raise UsageError(f"--unit {unit!r}: expected document or sentence")
    labels = parse_map(map_ or ())
    sources, names = _sources(files, before, after, name)
    gold = read_gold(sources[0], map_labels, encoding, labels)
    notes: list[str] = []
    predictions = []
    for source, called in zip(sources[1:], names, strict=True):
        found = list(read(source, map_labels=map_labels, **_encoding(source, encoding)))
        predictions.append(Prediction(called, source.path, laid(gold, found, source, labels, gold_classes, notes)))
    notes = list(dict.fromkeys(notes))
    for note in notes:
        complain(note)
    options = Options(seed, resamples, cast("Literal['document', 'sentence'] | None", unit), errors, examples)
    report = make_report(sources[0].path, gold, predictions, options, notes)
    for note in report.notes[len(notes) :]:
        complain(note)
    text = writer(report)
    with destination(output) as stream:
        stream.write(text)


def _format(format: str | None, output: str | None) -> str:
    if format is None:
        extension = Path(output or "").suffix.lower().lstrip(".")
        return {"markdown": "md", "htm": "html"}.get(extension, extension if extension in FORMATS_OUT else "md")
    if format not in FORMATS_OUT:
        raise UsageError(f"--format {format!r}: expected one of {', '.join(FORMATS_OUT)}")
    return format


def parse_map(pairs: Sequence[str]) -> Labels | None:
    """``OLD=NEW`` as the readers take it; wrong use where there is no such pair."""
    labels: dict[str, str | None] = {}
    for pair in pairs:
        old, equals, new = pair.partition("=")
        if not equals or not old or len(new.split()) > 1:
            raise UsageError(f"--map {pair!r}: expected OLD=NEW, as in PERSON=PER, or OLD= to drop a class")
        labels[old] = new.strip() or None
    return labels or None


def _sources(
    files: Sequence[str], before: str | None, after: str | None, names: Sequence[str] | None
) -> tuple[list[SourceFile], list[str]]:
    """Gold and predictions, and what the predictions are called."""
    if (before is None) != (after is None):
        raise UsageError("--before and --after go together")
    given = [] if before is None or after is None else [before, after]
    if len(files) > 1 and given:
        raise UsageError("give the predictions one after the other, or by --before and --after")
    try:
        sources = [parse_source(file) for file in (*files, *given)]
    except ValueError as error:
        raise UsageError(str(error)) from None
    if len(sources) < 2:
        raise UsageError("no prediction: expected GOLD:FORMAT PREDICTED:FORMAT...")
    paths = [source.path for source in sources[1:]]
    if names:
        if len(names) != len(paths):
            raise UsageError(f"--name: {len(names)} names for {len(paths)} predictions")
        if len(set(names)) < len(names):
            raise UsageError("--name: two predictions have the same name")
        return sources, list(names)
    short = ["before", "after"] if given else [Path(path).name for path in paths]
    unique = len(set(short)) == len(short)
    return sources, short if unique else [f"{part} ({i})" for i, part in enumerate(short, 1)]


def _encoding(source: SourceFile, encoding: str) -> dict[str, Any]:
    return {"encoding": encoding} if "encoding" in FORMATS[source.format].read_options else {}


def read_gold(source: SourceFile, map_labels: bool, encoding: str, labels: Labels | None) -> list[Document]:
    """The annotated documents with their tokens; ValueError where there are none."""
    found = tokenized(read(source, map_labels=map_labels, **_encoding(source, encoding)), Tokenizer())
    documents = [document for document in found if document.n_tokens]
    if not documents:
        raise ValueError(f"{source.path}: no document; the file is empty")
    for document in documents:
        if document.tags is None:
            raise ValueError(f"{source.path}: document {document.id!r} has no annotation; give an annotated file")
    return [replace(d, tags=None, entities=tuple(renamed(d.entities, labels))) for d in documents]


def laid(
    gold: Sequence[Document],
    found: Sequence[Document],
    source: SourceFile,
    labels: Labels | None,
    gold_classes: bool,
    notes: list[str],
) -> list[Document]:
    """The predictions on the gold tokens; what was mended or looks wrong goes into the notes."""
    if not found:
        raise ValueError(f"{source.path}: no document; the file is empty")
    aligned = align(gold, found, labels=labels, name=source.path)
    known = {entity.label for document in gold for entity in document.entities}
    documents = aligned.documents
    if gold_classes:
        documents = [replace(d, entities=tuple(e for e in d.entities if e.label in known)) for d in documents]
    seen = {entity.label for document in documents for entity in document.entities}
    if not known:
        notes.append("the gold standard holds no entity: there is nothing to find")
    elif seen - known:
        notes.append(f"{source.path}: {_unknown(seen, known)}")
    if not seen:
        notes.append(f"{source.path}: no entity is predicted")
    if aligned.n_retokenised:
        notes.append(f"{source.path}: {aligned.n_retokenised:,} documents have other tokens than the gold standard")
    if aligned.n_widened:
        notes.append(f"{source.path}: {aligned.n_widened:,} entities were widened to the borders of gold tokens")
    if aligned.n_dropped:
        notes.append(f"{source.path}: {aligned.n_dropped:,} entities without a gold token of their own were left out")
    return documents


def _unknown(seen: set[str], known: set[str]) -> str:
    """Which classes do not meet, and the options that would mend it."""
    new = sorted(seen - known)
    meant = {old: target for target, olds in SYNONYMS.items() if target in known for old in olds.split()}
    meant |= {target: old for target, olds in SYNONYMS.items() for old in olds.split() if old in known}
    hints = [f"--map {old}={meant[old]}" for old in new if old in meant]
    more = [*hints, "--gold-classes to leave such classes out"]
    return (
        f"the gold standard ({', '.join(sorted(known)[:8])}) has no {', '.join(new[:8])}; "
        f"try {' '.join(more[:-1])}{' or ' if hints else ''}{more[-1]}"
    )


def run(arguments: Sequence[str] | None = None) -> int:
    """One call; the exit code. Bad input is one line on stderr: 1, wrong use: 2, Ctrl-C: 130."""
    logging.basicConfig(format="herdner: %(message)s", level=logging.WARNING)
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(main)
    try:
        code = app(arguments, prog_name="evaluate_ner.py", standalone_mode=False)
        sys.stdout.flush()
    except UsageError as error:
        complain(f"{error.format_message()} (see evaluate_ner.py --help)")
        return 2
    except typer.Exit as exit:
        return exit.exit_code
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        return 130
    except BrokenPipeError:
        return 0
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that no temporary file is left behind
    sys.exit(run())
