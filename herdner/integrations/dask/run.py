"""Files in, parts and a manifest out: `tag_files`."""

# Dask's calls have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from distributed import Client, Future, KilledWorker, as_completed

import herdner
from herdner.integrations.dask.cluster import ClusterError, check_workers, cluster_client
from herdner.integrations.dask.files import File, find_files
from herdner.integrations.dask.manifest import NAME, Manifest, Settings, Written, check_same, load_manifest
from herdner.integrations.dask.outputs import Folder, OutputError
from herdner.integrations.dask.slices import Part, Slice, looks, parts_of, placed, slices_of
from herdner.integrations.dask.worker import Job, JobPlugin, model_bytes, part_name, tag_part
from herdner.ner.inference import Inference

PART_BYTES = 8 << 20
OUTPUT_FORMATS = ("jsonl", "parquet")
IN_FLIGHT = 2  # tasks per thread of the cluster
RETRIES = 2  # of a task that raises
SAVE_SECONDS = 2.0  # between two savings of the manifest, at least

Fail = Callable[[str], object]
Progress = Callable[[int, int], object]


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
    part_bytes: int = PART_BYTES,
    storage_options: Mapping[str, Any] | None = None,
    fail: Fail | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Manifest:
    """Tag text, JSONL or Parquet files on a Dask cluster, part by part.

    >>> from herdner.integrations.dask import tag_files
    >>> tag_files("s3://lake/news/*.jsonl", "s3://lake/tagged", client="tcp://10.0.0.1:8786")  # doctest: +SKIP

    The workers must reach inputs and output. The output gets ``part-0000000.jsonl`` (or ``.parquet``), ... and
    ``manifest.json``. The parts, one behind the other, are what ``herdner tag -f jsonl`` writes, whatever the number
    of workers: document i of all has the random numbers of child i of ``seed``. A run that was stopped goes on where it
    was when it is called again.

    Args:
        inputs: Paths, folders or globs of any file system that fsspec knows.
        output: A folder.
        model: A shipped name, or a file that only this process need see.
        client: A Dask client, a scheduler's address, or "local": for the time of the call a cluster of ``jobs``
            processes (None: one for each processor).
        column: Of Parquet files, which holds the texts.
        inference: Options of tagging. None builds them from ``options``.
        seed: Seed of the random numbers.
        part_bytes: Inputs are cut into parts of about this size.
        storage_options: Of fsspec.
        fail: Is told each document or part that failed.
        progress: Is told how many parts are done, and of how many.
        options: Keyword arguments of `herdner.ner.inference.Inference.of`, such as ``backend``; a file of names is read
            by this process.

    Returns:
        The manifest; where parts failed ``complete`` is False, and calling again tries these again.

    Raises:
        ValueError: Arguments are wrong, inputs are not there, or the folder has other files or parts of another run.
        OutputError: The folder cannot be written.
        ClusterError: The cluster cannot be used.
    """
    if format not in OUTPUT_FORMATS:
        raise ValueError(f"format {format!r}: expected one of {', '.join(OUTPUT_FORMATS)}")
    if part_bytes < 1:
        raise ValueError(f"part_bytes={part_bytes}; expected a positive number")
    inference = Inference.of(**options) if inference is None else inference
    if inference.names is not None:
        herdner.load(model).finder(inference.names)  # raises if the model lacks the label of a name
    paths = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    files = find_files([os.fspath(path) for path in paths], input_format, storage_options)
    data = model_bytes(model)
    settings = Settings(
        herdner.__version__,
        Path(model).name,
        data.sha256,
        inference.to_dict(),
        seed,
        format,
        encoding,
        column,
        part_bytes,
    )
    folder = Folder(os.fspath(output), storage_options)
    job = Job(f"herdner-{uuid4().hex}", data, settings, folder.url, dict(storage_options or {}), inference)
    chosen = cluster_client(client, jobs) if isinstance(client, str) else nullcontext(client)
    return _run(job, files, folder, chosen, _Listener(fail, progress))


class _Listener:
    """Who is told how the run goes."""

    def __init__(self, fail: Fail | None, progress: Progress | None) -> None:
        self.fail: Fail = fail or (lambda _: None)
        self.progress: Progress = progress or (lambda _, __: None)

    def written(self, manifest: Manifest, part: Written) -> None:
        for message in part.failures:
            self.fail(message)
        if part.failed > len(part.failures):
            self.fail(f"{part.name}: {part.failed - len(part.failures)} more documents failed")
        self.progress(len(manifest.written), len(manifest.parts))


def _run(
    job: Job, files: list[File], folder: Folder, client: AbstractContextManager[Client], listener: _Listener
) -> Manifest:
    """Begin a run or go on with it."""
    manifest = _begun(folder, job.settings, files)
    if manifest is not None:
        for part in manifest.written.values():
            listener.written(manifest, part)
        if manifest.complete:
            return manifest
    try:
        with client as chosen:
            check_workers(chosen)
            with _plugged(chosen, job):
                if manifest is None:
                    manifest = Manifest(job.settings, files, _plan(chosen, job, files))
                _tag(chosen, job, manifest, folder, listener)
    finally:
        folder.sweep()  # of workers that were killed; one that still writes there for a run that was stopped fails
    return manifest


def _begun(folder: Folder, settings: Settings, files: Sequence[File]) -> Manifest | None:
    """The run that the folder holds; parts whose files are gone, or of another size, are to be done again."""
    sizes = folder.sizes()
    if NAME not in sizes:
        if sizes:
            raise ValueError(f"{folder.url}: holds other files ({min(sizes)}, ...); name a new or an empty folder")
        return None
    manifest = load_manifest(folder)
    check_same(manifest, settings, files, folder)
    manifest.written = {k: part for k, part in manifest.written.items() if sizes.get(part.name) == part.bytes}
    return manifest


@contextmanager
def _plugged(client: Client, job: Job) -> Generator[None]:
    """The job is on every worker, also on those that come later."""
    client.register_plugin(JobPlugin(job))
    try:
        yield
    finally:
        with suppress(Exception):  # a cluster that is gone has forgotten it too
            client.unregister_worker_plugin(job.name)


def _plan(client: Client, job: Job, files: Sequence[File]) -> list[Part]:
    """The parts of the inputs. The workers read all of them once, to number lines, rows and documents."""
    part_bytes = job.settings.part_bytes
    batches = looks(files, part_bytes, job.reading)
    found: dict[int, list[Slice]] = {}
    with closing(_results(client, job, slices_of, [(batch, job.reading) for batch in batches])) as results:
        for index, result in results:
            if isinstance(result, Exception):
                raise ValueError(f"{batches[index][0].file.path}: cannot be read ({_one_line(result)})")
            found[index] = result
    return parts_of(placed(piece for index in sorted(found) for piece in found[index]), part_bytes)


def _tag(client: Client, job: Job, manifest: Manifest, folder: Folder, listener: _Listener) -> None:
    """Tag what is missing; the manifest in the folder follows, and is right whatever ends this."""
    formats = {file.path: file.format for file in manifest.inputs}
    parts = manifest.missing
    tasks = [(job.name, part, {piece.path: formats[piece.path] for piece in part.slices}) for part in parts]
    listener.progress(len(manifest.written), len(manifest.parts))
    manifest.save(folder)  # finds out, before any work is done, whether this can be written
    next_save = time.monotonic() + SAVE_SECONDS
    try:
        with closing(_results(client, job, tag_part, tasks)) as results:
            for index, result in results:
                part = parts[index]
                if isinstance(result, OutputError):
                    raise result
                if isinstance(result, Exception):
                    listener.fail(f"{part_name(part.index, job.settings.format)} is missing: {_one_line(result)}")
                    continue
                manifest.written[part.index] = result
                listener.written(manifest, result)
                if (began := time.monotonic()) > next_save:
                    manifest.save(folder)
                    # The manifest of very many parts takes its time, which should not be most of the time.
                    next_save = time.monotonic() + max(SAVE_SECONDS, 20 * (time.monotonic() - began))
    finally:
        manifest.save(folder)


def _results(
    client: Client, job: Job, task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
) -> Generator[tuple[int, Any], None, None]:
    """Numbers and results, or exceptions, of tasks as they finish; few are with the cluster at a time, so that neither
    the scheduler nor this process ever holds all. A task whose worker dies is done by another.
    """
    waiting = iter(enumerate(arguments))
    numbers: dict[str, int] = {}

    def submit(count: int) -> list[Future[Any]]:
        futures: list[Future[Any]] = []
        for number, values in islice(waiting, max(count, 0)):
            key = f"{task.__name__}-{job.name}-{number}"
            futures.append(client.submit(task, *values, key=key, pure=False, retries=RETRIES, priority=-number))
            numbers[key] = number
        return futures

    running: Any = as_completed(submit(_in_flight(client)), loop=client.loop)
    try:
        for future in running:
            if future.status in ("cancelled", "lost"):
                raise ClusterError("the connection to the cluster was lost; run the same again to go on")
            error = future.exception()
            yield numbers.pop(future.key), future.result() if error is None else error
            running.update(submit(_in_flight(client) - len(numbers)))
    finally:
        futures: list[Future[Any]] = [Future(key, client) for key in numbers]
        if futures:
            with suppress(Exception):
                client.cancel(futures, force=True)


def _in_flight(client: Client) -> int:
    threads: Any = client.nthreads()  # typed as the coroutine that it is in asynchronous clients
    return IN_FLIGHT * max(sum(threads.values()), 1)


def _one_line(error: object) -> str:
    if isinstance(error, KilledWorker):
        return "it killed its workers, perhaps for want of memory; is one of its documents very long?"
    return " ".join(str(error).split()) or type(error).__name__
