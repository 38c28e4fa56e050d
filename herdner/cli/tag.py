"""Command ``herdner tag``: names in files, folders or standard input, in a stream or on a Dask cluster."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from herdner.base.extras import check_extra
from herdner.base.messages import format_count
from herdner.base.progress import show_progress
from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.common import open_output, print_message, print_note, show_files
from herdner.cli.groups import TaggingOptions, TextOptions
from herdner.cli.inputs import CommandInput, LanguageMessages, RunStatus, have_headings
from herdner.cli.usage import UsageError, check_encoding, check_extension, check_format, check_output

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.ner.inference import Inference
    from herdner.ner.known_names import CollectionNames
    from herdner.text.document import Document, Failure
    from herdner.text.tokenize import TokenizerSettings

logger = logging.getLogger(__name__)

# fmt: off
OutputOption = Annotated[str | None, typer.Option(
    "--output", "-o", help="Write this file instead of standard output. It appears when it is complete. The extensions "
    ".gz, .bz2, .xz and .zst compress it. Documents that fail are left out.")]
_MinConfidenceOption = Annotated[float | None, typer.Option(
    "--min-confidence", min=0, max=1, help="Leave out names with a lower confidence, with all their "
    "mentions.")]
# fmt: on


@command
def tag(
    texts: TextOptions,
    tagging: TaggingOptions,
    format_: Annotated[str | None, typer.Option(
        "--format", "-f", metavar="FORMAT", help="text, jsonl, csv, html, conll, spacy, label-studio, ... [default: by "
        "the extension of --output, else text]; with --cluster jsonl or parquet [default: jsonl].")] = None,
    output: OutputOption = None,
    min_confidence: _MinConfidenceOption = None,
    min_confidence_of: Annotated[Literal["name", "mention"], typer.Option(
        "--min-confidence-of", help="Compare --min-confidence with the mean confidence of all mentions of a name, or "
        "with each mention.")] = "name",
    jobs: Annotated[int | None, typer.Option(
        "--jobs", "-j", min=1, help="Number of threads; with --cluster, of processes [default: 1; with --cluster: "
        "all].")] = None,
    resume: Annotated[bool, typer.Option(
        "--resume", help="Keep the names of finished documents in OUTPUT.unfinished until the output is complete. If "
        "the run is interrupted, the same command continues it. Requires --output.")] = False,
    collection: Annotated[bool, typer.Option(
        "--collection", help="Tag all input files as one collection, in two passes: the labels of a name in some "
        "documents are evidence for its label in the other documents.")] = False,
    cluster: Annotated[str | None, typer.Option(
        "--cluster", metavar="ADDRESS", help="Tag on Dask: local, or a scheduler such as tcp://10.0.0.1:8786.")] = None,
    part_size: Annotated[int, typer.Option(min=1, help="Megabytes of input in each part, with --cluster.")] = 8,
    strict: opt.StrictOption = False,
) -> None:  # fmt: skip
    """Find names in texts.

    A text file of more than a million characters is split at blank lines. Each piece is a document, whose id ends in
    #1, #2, ...

    With --cluster, FILE may be an address (s3://..., gs://...) or a Parquet file, and --output is a folder of parts
    with a manifest. JSON lines in the parts are those of the same command without --cluster. The same command continues
    an interrupted run.
    """
    if cluster is not None:
        format_ = format_ or "jsonl"
        files, input_format = _cluster_files(texts, cluster, jobs, output, format_)
        excluded = {
            "--resume": resume or None, "--errors": texts.errors, "--min-confidence": min_confidence,
            "--strict": strict or None, "--pattern": texts.pattern, "--id-column": texts.id_column,
            "--delimiter": texts.delimiter,
        }  # fmt: skip
        for option, value in excluded.items():
            if value is not None:
                raise UsageError(f"{option}: cannot be combined with --cluster; leave out one of them")
        tagger, inference = tagging.load(min_confidence_of=min_confidence_of)
        # `RunStatus` limits the number of printed messages; the manifest determines the exit code.
        _tag_on_cluster(
            files, output or "", LanguageMessages(tagger), client=cluster, jobs=jobs, format=format_,
            input_format=input_format, model=tagging.model, encoding=texts.encoding, column=texts.column,
            part_bytes=part_size << 20, fail=RunStatus().fail, inference=inference, seed=tagging.seed,
            collection=collection,
        )  # fmt: skip
        return
    inputs = texts.expand()
    output_format = choose_format(format_, output)
    check_output(output, [*(each.path for each in inputs), *tagging.files()])
    _check_resume(resume, output)
    for option in ["--resume"] * resume + ["--collection"] * collection:
        _check_read_twice(option, inputs)
    tagger, inference = tagging.load(min_confidence=min_confidence, min_confidence_of=min_confidence_of)
    status = RunStatus(texts.errors, output)
    documents = partial(texts.read, inputs, strict=strict)
    if collection:
        names = _gather(documents, len(inputs), tagger, inference, tagging.seed, jobs or 1)
        inference = replace(inference, collection=names)
    outcomes = partial(tagger.outcomes, inference=inference, seed=tagging.seed, n_jobs=jobs or 1)
    writer_options = {"has_headings": have_headings(inputs), "column": texts.column}
    run = TagRun(documents, len(inputs), outcomes, LanguageMessages(tagger), status, output_format, writer_options)
    if resume:
        settings = _run_settings(texts, tagging, inference, inputs, strict)
        _tag_resumably(run, _journal_path(output or ""), settings, tagger.model_.tokenizer)
    else:
        is_terminal = output in (None, "-") and sys.stdout.isatty()
        with run.results(visible=not is_terminal) as results:
            run.write(status.successes(results))
    logger.info("documents: %d, tokens: %d, failures: %d", status.documents, status.tokens, status.failures)
    status.exit_on_failure()


def choose_format(format: str | None, output: str | None, default: str = "text") -> str:
    """Return ``format`` if it is set, and otherwise the output format for the file extension of ``output``.

    Args:
        format: Value of ``--format``.
        output: Value of ``--output``.
        default: Format if neither the option nor the file extension determines one.

    Returns:
        Name of the format.

    Raises:
        UsageError: The format cannot be written, or not to a terminal.
    """
    from herdner.corpora.formats import FORMATS, WRITABLE, format_of

    if format is None and output is not None:
        format = format_of(output, write=True)
        if format is None and format_of(output) is not None:
            raise UsageError(
                f"--output {output}: the format {format_of(output)} cannot be written; use another file"
                " extension or add --format"
            )
        check_extension(output, {each for name in WRITABLE for each in FORMATS[name].extensions})
    format = default if format is None else format
    check_format(format, "--format", is_output=True)
    if FORMATS[format].is_binary and output in (None, "-") and sys.stdout.isatty():
        raise UsageError(f"--format {format} is binary and cannot be printed on a terminal; add --output FILE")
    return format


class TagRun(NamedTuple):
    """Functions that read and tag the documents of a run, its counts, and its output.

    Attributes:
        read: Function that reads documents and failures.
        n_inputs: Number of input files.
        tag: Function that tags the documents.
        languages: Messages about texts in other languages.
        status: Counts of the run, and the path of the output.
        format: Name of the output format.
        writer_options: Options of writers; each format gets those it has.
    """

    read: Callable[..., Iterator[Document | Failure]]
    n_inputs: int
    tag: Callable[..., Iterator[Document | Failure]]
    languages: LanguageMessages
    status: RunStatus
    format: str
    writer_options: Mapping[str, object]

    @contextmanager
    def results(self, visible: bool = True, first: int = 0) -> Generator[Iterator[Document | Failure]]:
        """Yield an iterator over the results of tagging, and show a progress bar with the number of files and tokens.

        Args:
            visible: False hides the progress bar.
            first: Index of the first document or failure to process; earlier documents are not tagged.
        """
        with show_progress("{task.fields[tokens]:,} tokens", visible=visible) as display:
            task = display.add_task("tagging", total=self.n_inputs, tokens=0)
            documents = self.read(
                on_file_end=lambda: display.advance(task), on_document=self.languages.add_file, skip=first
            )

            def update_then_tag() -> Iterator[Document | Failure]:
                for result in self.languages.check(self.tag(documents, first=first)):
                    yield result
                    display.update(task, tokens=self.status.tokens)

            yield update_then_tag()

    def write(self, documents: Iterable[Document]) -> None:
        """Write documents to the output, unless the status then says that the command must not write it.

        Args:
            documents: Tagged documents.
        """
        from herdner.corpora.formats import FORMATS, file_options, write_documents

        supported, output = FORMATS[self.format].write_options, self.status.output
        options = {key: value for key, value in self.writer_options.items() if key in supported}
        options |= file_options(self.format, output or "-")
        with open_output(output) as stream:
            write_documents(documents, stream, self.format, **options)
            self.status.exit_without_output()  # before the output replaces an older file


# --- collections


def _check_read_twice(option: str, inputs: Sequence[CommandInput]) -> None:
    """Raise a usage error for ``option`` if an input can be read only once, such as standard input."""
    for each in inputs:
        if each.path == "-":
            raise UsageError(f"{option} reads the input twice and cannot read standard input; name files")
        if (path := Path(each.path)).exists() and not path.is_file() and not path.is_dir():
            raise UsageError(f"{option} reads the input twice, but {each.path} can be read only once; name a file")


def _gather(
    read: Callable[..., Iterator[Document | Failure]], n_inputs: int, tagger: Tagger, inference: Inference, seed: int,
    jobs: int,
) -> CollectionNames:  # fmt: skip
    """Collect the names in all input files; do not report failures, because the second pass over the files does so."""
    logger.info("first pass: gathering names of %s", format_count(n_inputs, "input"))
    with show_files("gathering names", n_inputs) as advance, _no_parse_warnings():
        documents = read(on_file_end=advance)
        names = tagger.gather(documents, inference, seed=seed, n_jobs=jobs)
    logger.info("second pass: tagging with these names")
    if names.is_exact:
        logger.info("the collection has %d documents and %d names", names.n_documents, len(names))
    else:
        logger.info("the collection has %d documents and too many names to count exactly", names.n_documents)
    return names


@contextmanager
def _no_parse_warnings() -> Generator[None]:
    """Suppress the readers' warnings in the ``with`` block, because the files are read twice, once with warnings."""
    readers = logging.getLogger("herdner.text.io")
    level = readers.level
    readers.setLevel(logging.ERROR)
    try:
        yield
    finally:
        readers.setLevel(level)


# --- runs that continue after an interruption


def _check_resume(resume: bool, output: str | None) -> None:
    """Raise a usage error for ``--resume`` without a file; without ``--resume``, print a note about an earlier run."""
    if output in (None, "-"):
        if resume:
            raise UsageError("--resume continues an interrupted output file; add --output FILE")
    elif not resume and (path := _journal_path(output)).exists():
        print_note(f"{path}: results of an interrupted run; add --resume to continue it, or delete this file")


def _journal_path(output: str) -> Path:
    return Path(f"{output}.unfinished")


def _run_settings(
    texts: TextOptions, tagging: TaggingOptions, inference: Inference, inputs: Sequence[CommandInput], strict: bool,
) -> dict[str, object]:  # fmt: skip
    """Return the settings on which the results of a run depend."""
    import herdner

    reading = [texts.column, texts.id_column, texts.delimiter, texts.encoding, strict, texts.errors == "replace"]
    return {
        "version": herdner.__version__, "model": _file_version(tagging.model), "inference": inference.to_dict(),
        "seed": tagging.seed, "reading": reading,
        "inputs": [(each.format, _file_version(each.path)) for each in inputs],
    }  # fmt: skip


def _file_version(path: str) -> tuple[object, ...]:
    """Return the path, size and modification time of a file; only the path if the file does not exist."""
    try:
        state = Path(path).stat()
    except OSError:
        return (path,)
    return path, state.st_size, state.st_mtime_ns


def _tag_resumably(
    run: TagRun, journal_path: Path, settings: Mapping[str, object], tokenizer: TokenizerSettings
) -> None:
    """Tag the input files, and keep the results in a journal until the output is complete.

    For the output, the files are read again and joined with the entities of the journal.
    """
    from herdner.text.io.journal import Journal
    from herdner.text.tokenize import Tokenizer

    status = run.status
    with Journal.open(journal_path, settings) as journal:
        n_done = journal.n_documents + journal.n_failures
        if n_done:
            done = format_count(n_done, "finished document")
            print_note(f"{journal.path}: has {done}; the run continues with the next document")
        status.documents, status.failures = journal.n_documents, journal.n_failures
        status.is_truncated = journal.is_truncated and status.errors is None
        if status.errors == "fail" and status.failures:
            raise ValueError(
                f"{journal.path}: {format_count(status.failures, 'document')} of the interrupted run failed, so"
                " --errors fail writes no output; correct the documents, and delete this file to start again"
            )
        try:
            with run.results(first=n_done) as results:
                for _ in status.successes(journal.record(results)):
                    pass
            status.exit_without_output()
            with show_files("writing", run.n_inputs) as advance:
                documents = journal.restore(_read_again(run, advance), Tokenizer(tokenizer))
                run.write(documents)
        except KeyboardInterrupt:
            print_note(f"{journal.path}: the same command continues the run")
            raise
        except ValueError:
            if run.format != "jsonl":
                print_note(
                    f"{journal.path}: has the results; the same command with --format jsonl writes all documents"
                )
            raise
        journal.remove()


def _read_again(run: TagRun, on_file_end: Callable[[], object]) -> Iterator[Document | Failure]:
    with _no_parse_warnings():  # until the last document, so that the writer's warnings are printed
        yield from run.read(on_file_end=on_file_end)


# --- on a Dask cluster


def _cluster_files(
    texts: TextOptions, cluster: str, jobs: int | None, output: str | None, output_format: str
) -> tuple[list[str], str | None]:
    """Return the names of the input files and the format that all files share; raise `UsageError` for wrong options."""
    from herdner.corpora.formats import split_format

    check_encoding(texts.encoding)
    pairs = [split_format(file) for file in texts.files or []]
    formats = {own or texts.input_ for _, own in pairs}
    if len(formats) > 1:
        raise UsageError(
            f"--cluster: the files have {len(formats)} formats, but must have the same format; run the command once for"
            " each format"
        )
    files, input_format = [file for file, _ in pairs], next(iter(formats), texts.input_)
    if output is None or output == "-":
        raise UsageError("--cluster writes a folder of parts; add --output DIR")
    if not files or "-" in files:
        raise UsageError("--cluster cannot read standard input; name files, folders or patterns")
    if jobs is not None and cluster != "local":
        raise UsageError(f"--jobs requires --cluster local; the cluster at {cluster} determines the number of workers")
    if output_format not in ("jsonl", "parquet"):
        raise UsageError(f"--format must be jsonl or parquet with --cluster, got {output_format!r}")
    if input_format not in (None, "text", "jsonl", "parquet"):
        raise UsageError(f"--input must be text, jsonl or parquet with --cluster, got {input_format!r}")
    return files, input_format


def _tag_on_cluster(files: list[str], output: str, languages: LanguageMessages, **settings: Any) -> None:
    """Tag the files on a Dask cluster; exit with code 1 if documents or parts have failed."""
    check_extra("dask", "--cluster needs Dask")
    from herdner.integrations.dask import tag_files

    # Dask logs the life of its workers. Its configuration sets the level of each logger separately.
    dask_loggers = (f"distributed{part}" for part in ("", ".nanny", ".worker", ".scheduler"))
    for name in (*dask_loggers, "asyncio", "tornado", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with show_progress("{task.completed} of {task.total} parts") as display:
        task = display.add_task("tagging", total=None)

        def update(done: int, total: int) -> None:
            display.update(task, completed=done, total=total)

        manifest = tag_files(files, output, progress=update, report_language=languages.report, **settings)
    if not manifest.complete:
        n_missing, n = len(manifest.missing_parts), len(manifest.parts)
        print_message(f"{n_missing} of {n} parts are missing; run the same command again to compute them")
    if manifest.failed or not manifest.complete:
        raise typer.Exit(1)
