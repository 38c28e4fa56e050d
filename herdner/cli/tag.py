"""``herdner tag``: names of files, folders or standard input, streaming."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from herdner.cli.common import command, complain, destination, inference, progress
from herdner.cli.names import FoldCaseOption, HardOption, NamesOption, StrengthOption, known_names
from herdner.cli.options import BackendOption, EncodingOption, ModelOption, SeedOption, SetOption, StrictOption
from herdner.cli.usage import UsageError, check_encoding, check_not_input, check_writable

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.text.document import Document
    from herdner.text.failure import Failure

InputOption = Annotated[
    str | None,
    typer.Option(
        "--input", "-i", metavar="FORMAT", help="text, jsonl, conll, ... [default: by the file's extension, else text]"
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="text, jsonl, conll, html, spacy, label-studio, doccano, prodigy or brat [default: text];"
        " with --cluster jsonl or parquet [default: jsonl].",
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Write this file, when all is done, instead of standard output. Documents that fail are left out; where a"
        " file breaks off in the middle, nothing is written.",
    ),
]
MESSAGES = 100  # about documents that fail; the rest are counted


class Input(NamedTuple):
    """A file (or ``-``) and the name of its format."""

    path: str
    format: str


@dataclass
class Report:
    """What became of the inputs."""

    documents: int = 0
    tokens: int = 0
    failures: int = 0
    broken: bool = False  # a file broke off: what came before it is not all

    def fail(self, message: object) -> None:
        self.failures += 1
        if self.failures <= MESSAGES:
            complain(message)

    def close(self) -> None:
        """Exit code 1 where something failed."""
        if self.failures > MESSAGES:
            complain(f"{self.failures - MESSAGES} more failed")
        if self.failures:
            raise typer.Exit(1)


@command
def tag(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Files or folders; - (or nothing, behind a pipe) is standard input."),
    ] = None,
    model: ModelOption = "en",
    backend: BackendOption = None,
    set_: SetOption = None,
    input_: InputOption = None,
    format_: FormatOption = None,
    output: OutputOption = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Processes that tag at the same time [default: 1; a cluster's: all]."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Tag on Dask: local, or a scheduler such as tcp://10.0.0.1:8786."),
    ] = None,
    column: Annotated[str, typer.Option(help="Column of Parquet files that holds the texts.")] = "text",
    part_size: Annotated[int, typer.Option(min=1, help="Megabytes of input for a part, with --cluster.")] = 8,
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty", help="Average the confidence of names over the model's particles.")
    ] = False,
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
    inputs = [] if cluster is not None else expand(files or [], input_)
    if cluster is None:
        check_output(format_ or "text", output)
        check_not_input(output, [each.path for each in inputs])
    elif strict:
        raise UsageError("--strict: not with --cluster, whose parts are read apart")
    import herdner

    known = known_names(names, names_strength, names_hard, names_fold_case)
    tagger = herdner.load(model)
    options = inference(backend, set_, tagger)
    if known is not None:
        tagger.finder(known)  # what is wrong with them is said before anything is written
        options["names"] = known
    if uncertainty:
        check_particles(tagger, model)
        options["uncertainty"] = True
    if cluster is not None:
        from herdner.cli.cluster import tag_on_cluster

        tag_on_cluster(
            files or [], cluster, jobs=jobs, output=output, format=format_ or "jsonl", input_format=input_, model=model,
            inference=options, seed=seed, encoding=encoding, column=column, part_bytes=part_size << 20,
            fail=report.fail,
        )  # fmt: skip
    else:
        documents = partial(read, inputs, encoding, strict)
        stream_tags(tagger, inputs, documents, options, report, model, format_ or "text", output, jobs or 1, seed)
    report.close()


def stream_tags(
    tagger: Tagger,
    inputs: list[Input],
    documents: Callable[[Callable[[], object]], Iterable[Document | Failure]],
    options: dict[str, Any],
    report: Report,
    model: str,
    format: str,
    output: str | None,
    jobs: int,
    seed: int,
) -> None:
    """Tag the documents of the inputs in the order given, to one stream or file; those are called with what is to be
    called after each input.
    """
    from herdner.cli.tagging import outcomes
    from herdner.text.failure import Failure
    from herdner.text.io import write_documents

    on_terminal = (output is None or output == "-") and sys.stdout.isatty()
    with progress("{task.fields[words]:,} tokens", shown=not on_terminal) as display:
        task = display.add_task("tagging", total=len(inputs), words=0)

        def counted(results: Iterable[Document | Failure]) -> Iterator[Document]:
            for result in results:
                if isinstance(result, Failure):
                    report.fail(result.message)
                    report.broken |= result.breaks_off
                    continue
                report.documents += 1
                report.tokens += len(result.tokens)
                display.update(task, words=report.tokens)
                yield result

        sources = documents(lambda: display.advance(task))
        results = outcomes(tagger, sources, inference=options, seed=seed, jobs=jobs, model=model)
        with destination(output) as stream:
            write_documents(counted(results), stream, format)
            if report.broken or (report.failures and not report.documents):
                report.close()  # nothing to show, or not all of it: an older output file stays


def check_output(format: str, output: str | None) -> None:
    """Wrong use before any work is done: a format that cannot be written, bytes on a terminal."""
    from herdner.text.io import FORMATS

    known = [name for name, entry in FORMATS.items() if entry.write is not None]
    if format not in known:
        raise UsageError(f"--format {format!r}: expected one of {', '.join(known)}")
    if FORMATS[format].is_binary and output in (None, "-") and sys.stdout.isatty():
        raise UsageError(f"--format {format} is binary: add --output FILE")
    check_writable(output)


def check_particles(tagger: Tagger, model: str) -> None:
    """ValueError for a model that cannot say how sure it is of its own tables."""
    if tagger.model_.particles is None:
        raise ValueError(
            f"--uncertainty: model {model} has no particles to average over; train it with herdner train --particles 32"
        )


def expand(files: list[str], format: str | None) -> list[Input]:
    """The inputs in the order given; a folder stands for the files in it whose extension is known, sorted."""
    from pathlib import Path

    from herdner.corpora.reading import format_of
    from herdner.text.io import FORMATS

    known = [name for name, entry in FORMATS.items() if entry.read is not None]
    if format is not None and format not in known:
        raise UsageError(f"--input {format!r}: expected one of {', '.join(known)}")
    if not files:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("no FILE: name files or folders, or pipe text in")
        files = ["-"]
    if files.count("-") > 1:
        raise UsageError("standard input (-) can be read only once")
    inputs: list[Input] = []
    for name in files:
        path = Path(name)
        if name == "-" or not path.is_dir():
            inputs.append(Input(name, format or format_of(path) or "text"))
            continue
        found = [(str(file), format_of(file)) for file in sorted(path.rglob("*")) if file.is_file()]
        chosen = [Input(file, own) for file, own in found if own is not None and format in (None, own)]
        # The extensions of the corpora's own formats vary: their readers look for the files themselves.
        inputs += chosen or [Input(name, format or "text")]
    return inputs


def read(inputs: list[Input], encoding: str, strict: bool, done: Callable[[], object]) -> Iterator[Document | Failure]:
    """The documents of all inputs; what cannot be read is a `Failure`, and the next document or file follows."""
    from herdner.text.io.formats import read_items

    for path, format in inputs:
        yield from read_items(path, format, encoding, strict)
        done()
