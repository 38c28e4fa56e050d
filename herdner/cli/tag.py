"""``herdner tag``: names of files, folders or standard input, streaming."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from herdner.cli.common import command, destination, inference, progress
from herdner.cli.inputs import (
    ColumnOption,
    ErrorsOption,
    FilesArgument,
    Input,
    InputOption,
    PatternOption,
    Report,
    expand,
    read,
)
from herdner.cli.names import FoldCaseOption, HardOption, NamesOption, StrengthOption, known_names
from herdner.cli.options import BackendOption, EncodingOption, ModelOption, SeedOption, SetOption, StrictOption
from herdner.cli.usage import UsageError, check_encoding, check_not_input, check_writable

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.ner.inference import Inference
    from herdner.text.document import Document, Failure

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="text, jsonl, csv, html, conll, spacy, label-studio, ... [default: by the ending of --output, else text]; "
        "with --cluster jsonl or parquet [default: jsonl].",
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Write this file, when all is done, instead of standard output; it is compressed if its name ends in .gz, "
        ".bz2, .xz or .zst. Documents that fail are left out.",
    ),
]
ConfidenceOption = Annotated[
    float | None,
    typer.Option("--min-confidence", min=0, max=1, help="Leave out names with less confidence than this."),
]


JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Processes that tag at the same time [default: 1; a cluster's: all]."),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ADDRESS", help="Tag on Dask: local, or a scheduler such as tcp://10.0.0.1:8786."
    ),
]


class Output(NamedTuple):
    """Where names go, as what, and which: ``headed`` puts the id of each document above its text."""

    path: str | None
    format: str
    column: str = "text"
    headed: bool = False


@command
def tag(
    files: FilesArgument = None,
    model: ModelOption = "en",
    backend: BackendOption = None,
    set_: SetOption = None,
    input_: InputOption = None,
    pattern: PatternOption = None,
    column: ColumnOption = "text",
    errors: ErrorsOption = None,
    format_: FormatOption = None,
    output: OutputOption = None,
    min_confidence: ConfidenceOption = None,
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    part_size: Annotated[int, typer.Option(min=1, help="Megabytes of input for a part, with --cluster.")] = 8,
    names: NamesOption = None,
    names_strength: StrengthOption = None,
    names_hard: HardOption = False,
    names_fold_case: FoldCaseOption = False,
    seed: SeedOption = 0,
    encoding: EncodingOption = "utf-8",
    strict: StrictOption = False,
) -> None:
    """Find the names in texts.

    A text file longer than a million characters is tagged in pieces cut at blank lines; each piece is a document (its
    id ends in #1, #2, ...). With --cluster, files may be addresses (s3://..., gs://...) and Parquet, and --output is
    a folder of parts with a manifest, whose text is that of --format jsonl; the same command goes on after a stop.
    """
    check_encoding(encoding)
    report = Report()
    inputs: list[Input] = []
    if cluster is None:
        inputs = expand(files or [], input_, pattern, errors)
        format_ = output_format(format_, output)
        check_not_input(output, [each.path for each in inputs])
    else:
        check_for_cluster(pattern, errors, min_confidence, strict)
    import herdner

    known = known_names(names, names_strength, names_hard, names_fold_case)
    tagger = herdner.load(model)
    options = inference(backend, set_, tagger, names=known, min_confidence=min_confidence)
    if cluster is not None:
        from herdner.cli.cluster import tag_on_cluster

        tag_on_cluster(
            files or [], cluster, jobs=jobs, output=output, format=format_ or "jsonl", input_format=input_, model=model,
            inference=options, seed=seed, encoding=encoding, column=column, part_bytes=part_size << 20,
            fail=report.fail,
        )  # fmt: skip
    else:
        headed = len(inputs) > 1 or inputs[0].format != "text"
        target = Output(output, format_ or "text", column, headed)
        documents = partial(read, inputs, encoding, column=column, strict=strict)
        stream_tags(tagger, inputs, documents, options, report, model, target, jobs or 1, seed, errors)
    report.close()


def check_for_cluster(
    pattern: list[str] | None, errors: str | None, min_confidence: float | None, strict: bool
) -> None:
    """Raise UsageError for what tagging on a cluster, whose parts are read apart, does not know."""
    given = {"--pattern": pattern, "--errors": errors, "--min-confidence": min_confidence, "--strict": strict or None}
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{name} does not go with --cluster")


def stream_tags(
    tagger: Tagger,
    inputs: list[Input],
    documents: Callable[[Callable[[], object]], Iterable[Document | Failure]],
    options: Inference,
    report: Report,
    model: str,
    output: Output,
    jobs: int,
    seed: int,
    errors: str | None,
) -> None:
    """Tag the documents of the inputs in the order given, to one stream or file; those are called with what is to be
    called after each input.
    """
    from herdner.corpora.formats import FORMATS, write_documents
    from herdner.text.document import Failure

    on_terminal = output.path in (None, "-") and sys.stdout.isatty()
    with progress("{task.fields[words]:,} tokens", shown=not on_terminal) as display:
        task = display.add_task("tagging", total=len(inputs), words=0)

        def counted(results: Iterable[Document | Failure]) -> Iterator[Document]:
            for result in results:
                if isinstance(result, Failure):
                    if errors == "fail":
                        raise ValueError(result.message)
                    report.broken |= result.is_truncated and errors is None and output.path not in (None, "-")
                    report.fail(result.message + ("; nothing is written (see --errors)" if report.broken else ""))
                    continue
                report.documents += 1
                report.tokens += len(result.tokens)
                display.update(task, words=report.tokens)
                yield result

        sources = documents(lambda: display.advance(task))
        if jobs == 1:
            results = tagger.outcomes(sources, options, seed=seed)
        else:
            from herdner.cli.processes import in_processes

            results = in_processes(sources, jobs, model, options, seed)
        with destination(output.path) as stream:
            own = FORMATS[output.format].write_options
            headed = {"headed": output.headed} if "headed" in own else {}
            column = {"column": output.column} if "column" in own else {}
            write_documents(counted(results), stream, output.format, **headed, **column)
            if report.broken or (report.failures and not report.documents):
                report.close()  # nothing to show, or not all of it: an older output file stays


def output_format(format: str | None, output: str | None, default: str = "text") -> str:
    """The format that is named, or that of the output's ending. Wrong use before any work is done: a format that
    cannot be written, an ending that says that it is none, bytes on a terminal, a place that cannot be written to.
    """
    from herdner.corpora.formats import FORMATS, WRITABLE, format_of

    if format is None and output is not None:
        format = format_of(output, write=True)
        if format is None and format_of(output) is not None:
            raise UsageError(f"--output {output}: {format_of(output)} is only read; choose another ending, or --format")
    format = default if format is None else format
    if format not in WRITABLE:
        raise UsageError(f"--format {format!r}: expected one of {', '.join(WRITABLE)}")
    if FORMATS[format].is_binary and output in (None, "-") and sys.stdout.isatty():
        raise UsageError(f"--format {format} is binary: add --output FILE")
    check_writable(output)
    return format
