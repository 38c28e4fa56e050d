"""Tagging of files into a folder of parts and a manifest: `tag_files`."""

# Dask is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from distributed import Client, Future, KilledWorker, as_completed

import herdner
from herdner.base.messages import warn_caller
from herdner.integrations.dask.cluster import ClusterError, check_workers, cluster_client
from herdner.integrations.dask.files import OutputError, OutputFolder, RunInput, find_files
from herdner.integrations.dask.manifest import (
    NAME,
    InputSlice,
    Manifest,
    OutputPart,
    RunSettings,
    WrittenPart,
    check_same_run,
    load_manifest,
)
from herdner.integrations.dask.slices import join_slices, locate_slices, plan_scans, scan_slices
from herdner.integrations.dask.worker import JobPlugin, TagJob, gather_part, model_bytes, part_name, tag_part, tagger_of
from herdner.ner.inference import Inference
from herdner.ner.known_names import CollectionNames
from herdner.ner.language import LanguageWarning

PART_BYTES = 8 << 20
OUTPUT_FORMATS = ("jsonl", "parquet")
TASKS_PER_THREAD = 2  # number of submitted tasks for each thread of the cluster
RETRIES = 2  # number of repetitions of a task that raises an exception
SAVE_SECONDS = 2.0  # minimum time between two saves of the manifest


def tag_files(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] = "en",
    client: Client | str = "local",
    jobs: int | None = None,
    format: str = "jsonl",
    input_format: str | None = None,
    column: str = "text",
    encoding: str = "utf-8",
    inference: Inference | None = None,
    seed: int = 0,
    collection: bool = False,
    part_bytes: int = PART_BYTES,
    storage_options: Mapping[str, Any] | None = None,
    fail: Callable[[str], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
    report_language: Callable[[str, str], object] | None = None,
    **options: Any,
) -> Manifest:
    """Tag text, JSONL or Parquet files on a Dask cluster.

    >>> from herdner.integrations.dask import tag_files
    >>> tag_files("s3://lake/news/*.jsonl", "s3://lake/tagged", client="tcp://10.0.0.1:8786")  # doctest: +SKIP

    The output folder gets the parts ``part-0000000.jsonl`` (or ``.parquet``) and so on, and ``manifest.json``. The
    concatenated parts equal the output of ``herdner tag -f jsonl`` for any number of workers: document i of the run
    uses the random numbers of child i of ``seed``. If a run is interrupted, the same call continues it. Workers must be
    able to read the inputs and write the output. A `LanguageWarning` is issued for each input file that contains a text
    whose language is clearly not that of the model.

    Args:
        inputs: Paths, folders or patterns of any file system that fsspec supports.
        output: The output folder.
        model: Name of a shipped model, or a file, which only this process must be able to read.
        client: A Dask client, the address of a scheduler, or "local" for a temporary cluster of local processes.
        jobs: Number of local processes; None: one for each processor.
        format: Format of the parts, "jsonl" or "parquet". Parquet parts keep the columns of Parquet inputs. For other
            inputs they have the columns id, text, entities and offset, and a warning reports that all keys of JSON
            lines except id and text are lost.
        input_format: Format of the inputs, "text", "jsonl" or "parquet"; None: the file extensions determine it.
        column: Column of Parquet files that contains the texts.
        encoding: Encoding of text and JSONL files.
        inference: Options of tagging. None builds them from ``options``.
        seed: Seed of the random numbers.
        collection: Tag all documents as one collection, in two passes (`Tagger.pipe`). A continued run repeats the
            first pass.
        part_bytes: Approximate size of the input of each part, in bytes.
        storage_options: Options of fsspec.
        fail: Function that is called with the message of each document or part that fails.
        progress: Function that is called with the number of written parts and the number of all parts.
        report_language: Function that is called, instead of the `LanguageWarning`, with the path of the input file and
            the code of the text's language.
        options: Keyword arguments of `herdner.ner.inference.Inference.of`, such as ``backend``. A file of names is read
            by this process.

    Returns:
        The manifest. If parts failed, ``complete`` is False, and the same call tries them again.

    Raises:
        ValueError: Arguments are invalid, inputs do not exist, or the folder contains other files or parts of another
            run.
        OutputError: The folder cannot be written.
        ClusterError: The cluster cannot be used.
    """
    if format not in OUTPUT_FORMATS:
        raise ValueError(f"`format` must be one of {', '.join(OUTPUT_FORMATS)}, got {format!r}")
    if part_bytes < 1:
        raise ValueError(f"`part_bytes` must be positive, got {part_bytes}")
    inference = Inference.of(**options) if inference is None else inference
    if inference.names is not None:
        herdner.load(model).finder(inference.names)  # raises an error if the model lacks the label of a name
    paths = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    files = find_files([os.fspath(path) for path in paths], input_format, storage_options)
    if format == "parquet" and any(file.format == "jsonl" for file in files):
        warn_caller(
            "Parquet parts of JSON lines have only the columns id, text, entities and offset; to keep other keys, write"
            " JSON lines"
        )
    data = model_bytes(model)
    plain = inference.to_dict() | ({"collection": True} if collection else {})
    settings = RunSettings(
        herdner.__version__, Path(model).name, data.sha256, plain, seed, format, encoding, column,
        part_bytes,
    )  # fmt: skip
    folder = OutputFolder(os.fspath(output), storage_options)
    job = TagJob(f"herdner-{uuid4().hex}", data, settings, folder.url, dict(storage_options or {}), inference)
    connection = cluster_client(client, jobs) if isinstance(client, str) else nullcontext(client)
    manifest = _run(job, files, folder, connection, _Callbacks(fail, progress))
    for path, other in manifest.languages.items():
        if report_language is not None:
            report_language(path, other)
        else:
            message = tagger_of(data).language_check.message(other, f"{path}: the text")
            warn_caller(message, LanguageWarning)
    return manifest


class _Callbacks:
    """Functions that the caller of `tag_files` has passed to receive failures and progress."""

    def __init__(self, fail: Callable[[str], object] | None, progress: Callable[[int, int], object] | None) -> None:
        self.fail: Callable[[str], object] = fail or (lambda _: None)
        self._progress: Callable[[int, int], object] = progress or (lambda _, __: None)

    def progress(self, manifest: Manifest) -> None:
        self._progress(len(manifest.written_parts), len(manifest.parts))

    def failures(self, part: WrittenPart) -> None:
        for message in part.failures:
            self.fail(message)
        if part.failed > len(part.failures):
            self.fail(f"{part.name}: {part.failed - len(part.failures)} more documents failed")


def _run(
    job: TagJob,
    files: list[RunInput],
    folder: OutputFolder,
    connection: AbstractContextManager[Client],
    callbacks: _Callbacks,
) -> Manifest:
    """Tag the files on the cluster: start a run, or continue the run in the output folder."""
    manifest = _earlier_run(folder, job.settings, files)
    if manifest is not None:
        for part in manifest.written_parts:
            callbacks.failures(part)
        callbacks.progress(manifest)
        if manifest.complete:
            return manifest
    try:
        with connection as client:
            check_workers(client)
            with _register_job(client, job):
                if manifest is None:
                    manifest = Manifest(job.settings, files, _plan(client, job, files))
                if not job.settings.inference.get("collection"):
                    _tag_missing(client, job, manifest, folder, callbacks)
                    return manifest
                names = _gather(client, job, manifest)
            second = replace(job, name=f"{job.name}-second", inference=replace(job.inference, collection=names))
            with _register_job(client, second):
                _tag_missing(client, second, manifest, folder, callbacks)
    finally:
        folder.remove_temporary_files()
    return manifest


def _earlier_run(folder: OutputFolder, settings: RunSettings, files: Sequence[RunInput]) -> Manifest | None:
    """Return the manifest of the earlier run that wrote the output folder, or None if the folder is empty.

    In the manifest, a part counts as not written if its file is missing or has another size. Raise `ValueError` if the
    folder contains other files or the run had other settings or inputs.
    """
    sizes = folder.sizes()
    if NAME not in sizes:
        if sizes:
            raise ValueError(f"{folder.url}: contains other files ({min(sizes)}, ...); name a new or an empty folder")
        return None
    manifest = load_manifest(folder)
    check_same_run(manifest, settings, files, folder)
    for part in manifest.parts:
        if part.output is not None and sizes.get(part.output.name) != part.output.bytes:
            part.output = None
    return manifest


@contextmanager
def _register_job(client: Client, job: TagJob) -> Generator[None]:
    """Register the job on all workers for the duration of a ``with`` block.

    This includes workers that start later.
    """
    client.register_plugin(JobPlugin(job))
    try:
        yield
    finally:
        with suppress(Exception):  # the cluster may have ended
            client.unregister_worker_plugin(job.name)


def _plan(client: Client, job: TagJob, files: Sequence[RunInput]) -> list[OutputPart]:
    """Divide the input files into parts.

    The workers read all input files once to count lines, rows and documents.
    """
    part_bytes = job.settings.part_bytes
    batches = plan_scans(files, part_bytes, job.read_options)
    slices: dict[int, list[InputSlice]] = {}
    with closing(_results(client, job, scan_slices, [(batch, job.read_options) for batch in batches])) as results:
        for index, result in results:
            if isinstance(result, Exception):
                raise ValueError(f"{batches[index][0].file.path}: cannot be read ({_one_line(result)})")
            slices[index] = result
    return join_slices(locate_slices(piece for index in sorted(slices) for piece in slices[index]), part_bytes)


def _gather(client: Client, job: TagJob, manifest: Manifest) -> CollectionNames:
    """Run the first pass over a collection: collect the names of all documents of a run."""
    tasks = _tasks(job, manifest, enumerate(manifest.parts))
    names: CollectionNames | None = None
    with closing(_results(client, job, gather_part, tasks)) as results:
        for task, result in results:
            if isinstance(result, Exception):
                raise ValueError(
                    f"the input of {part_name(task, job.settings.format)} cannot be read: {_one_line(result)}"
                )
            if names is None:
                names = result
            else:
                names.update(result)
    return CollectionNames(tagger_of(job.model).labels) if names is None else names


def _tasks(job: TagJob, manifest: Manifest, parts: Iterable[tuple[int, OutputPart]]) -> list[tuple[Any, ...]]:
    """Return the arguments of `tag_part` and `gather_part` for each part."""
    formats = {file.path: file.format for file in manifest.inputs}
    return [
        (job.name, index, part, {piece.path: formats[piece.path] for piece in part.slices}) for index, part in parts
    ]


def _tag_missing(client: Client, job: TagJob, manifest: Manifest, folder: OutputFolder, callbacks: _Callbacks) -> None:
    """Tag the missing parts; save the manifest in the folder at intervals, and at the end even after an error."""
    missing = manifest.missing_parts
    tasks = _tasks(job, manifest, missing)
    callbacks.progress(manifest)
    manifest.save(folder)  # raises an error before any work is done if the folder cannot be written
    next_save = time.monotonic() + SAVE_SECONDS
    try:
        with closing(_results(client, job, tag_part, tasks)) as results:
            for task, result in results:
                index, part = missing[task]
                if isinstance(result, OutputError):
                    raise result
                if isinstance(result, Exception):
                    callbacks.fail(f"{part_name(index, job.settings.format)} was not written: {_one_line(result)}")
                    continue
                part.output = result
                callbacks.failures(result)
                callbacks.progress(manifest)
                if (start := time.monotonic()) > next_save:
                    manifest.save(folder)
                    # Saving a large manifest is slow. The interval limits saving to 5 % of the run time.
                    next_save = time.monotonic() + max(SAVE_SECONDS, 20 * (time.monotonic() - start))
    finally:
        manifest.save(folder)


def _results(
    client: Client, job: TagJob, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
) -> Generator[tuple[int, Any], None, None]:
    """Call a function on the cluster for each item of ``arguments``, and yield each result when its call finishes.

    Each yielded value is the index of a call, and the result or the exception of the call.

    The number of submitted tasks is limited (`TASKS_PER_THREAD`) to save memory in the scheduler and in this process.
    If a worker dies, another one runs its tasks.
    """
    waiting = iter(enumerate(arguments))
    index_of: dict[str, int] = {}

    def submit(count: int) -> list[Future[Any]]:
        futures: list[Future[Any]] = []
        for index, values in islice(waiting, max(count, 0)):
            key = f"{function.__name__}-{job.name}-{index}"
            futures.append(client.submit(function, *values, key=key, pure=False, retries=RETRIES, priority=-index))
            index_of[key] = index
        return futures

    running: Any = as_completed(submit(_max_tasks(client)), loop=client.loop)
    try:
        for future in running:
            if future.status in ("cancelled", "lost"):
                raise ClusterError(
                    "the connection to the cluster was lost; to continue the run, repeat it with the same output folder"
                )
            error = future.exception()
            yield index_of.pop(future.key), future.result() if error is None else error
            running.update(submit(_max_tasks(client) - len(index_of)))
    finally:
        futures: list[Future[Any]] = [Future(key, client) for key in index_of]
        if futures:
            with suppress(Exception):
                client.cancel(futures, force=True)


def _max_tasks(client: Client) -> int:
    threads: Any = client.nthreads()  # typed as the coroutine that it is in asynchronous clients
    return TASKS_PER_THREAD * max(sum(threads.values()), 1)


def _one_line(error: object) -> str:
    if isinstance(error, KilledWorker):
        return "the worker was killed several times, perhaps by lack of memory; check for very long documents"
    return " ".join(str(error).split()) or type(error).__name__
