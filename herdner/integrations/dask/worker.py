"""Functions that run on workers, which receive the model once and then tag parts."""

from __future__ import annotations

import hashlib
import io
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

import herdner
from herdner.base.locks import ForkLock
from herdner.corpora.formats import write_documents
from herdner.integrations.dask.files import OutputFolder
from herdner.integrations.dask.manifest import MAX_FAILURES, OutputPart, RunSettings, WrittenPart
from herdner.integrations.dask.slices import ReadOptions, read_part
from herdner.ner.inference import Inference
from herdner.ner.known_names import CollectionNames
from herdner.ner.language import LanguageCheck
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import shipped_models
from herdner.ner.tagger import Tagger
from herdner.text.document import Document, Failure
from herdner.text.io.parquet import write_parquet


@dataclass(frozen=True)
class ModelBytes:
    """Content and SHA-256 checksum of a model file.

    Two objects with equal checksums are equal.
    """

    sha256: str
    data: bytes = field(repr=False, compare=False)

    def __dask_tokenize__(self) -> str:
        """Return the SHA-256 of the model file, so that Dask does not compute a hash of the content."""
        return self.sha256


def model_bytes(model: str | os.PathLike[str]) -> ModelBytes:
    """Read the content of a model file, to send it to machines that do not have the file.

    Args:
        model: Name of a shipped model, or path of a file.

    Returns:
        The content of the file.

    Raises:
        ModelError: The model does not exist or is invalid.
    """
    herdner.load(model)  # raises the error here rather than on a worker
    name = os.fspath(model)
    data = shipped_models().get(name, Path(name)).read_bytes()
    return ModelBytes(hashlib.sha256(data).hexdigest(), data)


_loading = ForkLock()


def tagger_of(model: ModelBytes) -> Tagger:
    """Return the tagger of a model, which all threads of the process share.

    Args:
        model: Bytes of the model file.
    """
    with _loading.current:
        return _load_tagger(model)


@lru_cache(maxsize=2)
def _load_tagger(model: ModelBytes) -> Tagger:
    return Tagger.from_model(TaggerModel.load(io.BytesIO(model.data)))


@dataclass(frozen=True)
class TagJob:
    """Job for all workers of a run: model, settings and output folder.

    Attributes:
        name: Unique name of the run on the cluster.
        model: The model.
        settings: Settings of the run.
        output: URL of the output folder.
        storage_options: Options of fsspec.
        inference: Options of tagging.
    """

    name: str
    model: ModelBytes
    settings: RunSettings
    output: str
    storage_options: Mapping[str, Any]
    inference: Inference

    @property
    def read_options(self) -> ReadOptions:
        """Options for reading the input files, according to the settings of the run."""
        return ReadOptions(self.settings.encoding, self.settings.column, self.storage_options)


_jobs: dict[str, TagJob] = {}


class JobPlugin(WorkerPlugin):
    """Worker plugin that sends a job, with its model, once to each worker.

    This includes workers that start later.

    Args:
        job: The job.
    """

    def __init__(self, job: TagJob) -> None:
        """Store the job. The name of the job becomes the name of the plugin."""
        self.name = job.name
        self.job = job

    def setup(self, worker: Any) -> None:
        """Make the job available to the tasks that run on a worker.

        Args:
            worker: The worker; it is not used.
        """
        _jobs[self.job.name] = self.job

    def teardown(self, worker: Any) -> None:
        """Remove the job from a worker when the plugin is unregistered.

        Args:
            worker: The worker; it is not used.
        """
        _jobs.pop(self.job.name, None)


def tag_part(job_name: str, index: int, part: OutputPart, formats: Mapping[str, str]) -> WrittenPart:
    """Tag one part of a run, and write the output file of the part.

    Equal parts yield equal bytes on any worker.

    Args:
        job_name: Name of a registered job.
        index: Index of the part.
        part: The part.
        formats: Format of each of its input files, by path.

    Returns:
        The description of the file.

    Raises:
        ValueError: An input file has changed.
        OutputError: The file cannot be written.
    """
    job = _jobs[job_name]
    settings, tagger, name = job.settings, tagger_of(job.model), part_name(index, job.settings.format)
    counter = _Counter(tagger.language_check)
    results = tagger.outcomes(
        read_part(part, formats, job.read_options), job.inference, seed=settings.seed, first=part.first_document
    )
    paths = chain.from_iterable(repeat(piece.path, piece.n_documents) for piece in part.slices)
    documents = counter.successful(results, paths)
    with OutputFolder(job.output, job.storage_options).write(name) as stream:
        if settings.format == "parquet" and set(formats.values()) != {"parquet"}:
            write_parquet(documents, stream)
        else:
            options = {"column": settings.column} if settings.format == "parquet" else {}
            write_documents(documents, stream, settings.format, **options)
    return WrittenPart(
        name, counter.documents, counter.tokens, counter.entities, counter.failed,
        stream.size, stream.digest.hexdigest(), tuple(counter.failures), counter.languages,
    )  # fmt: skip


def gather_part(job_name: str, index: int, part: OutputPart, formats: Mapping[str, str]) -> CollectionNames:
    """Collect the names in the documents of one part of a run.

    Args:
        job_name: Name of a registered job.
        index: Index of the part; it is not used.
        part: The part.
        formats: Format of each of its input files, by path.

    Returns:
        The names, with their counts and first contexts.

    Raises:
        ValueError: An input file has changed.
    """
    job = _jobs[job_name]
    documents = read_part(part, formats, job.read_options)
    return tagger_of(job.model).gather(documents, job.inference, seed=job.settings.seed, first=part.first_document)


def part_name(index: int, format: str) -> str:
    """Return the file name of the part with this index.

    Names sort in the order of the documents, up to ten million parts.

    Args:
        index: Index of the part, from 0.
        format: Format of the part, which is its file extension.
    """
    return f"part-{index:07}.{format}"


class _Counter:
    """Counts in a stream of documents, the failure messages, and the files that are not in the model's language."""

    def __init__(self, check: LanguageCheck) -> None:
        self._checks: dict[str, Callable[[Document], str | None]] = defaultdict(check.of_stream)
        self.documents = self.tokens = self.entities = self.failed = 0
        self.failures: list[str] = []
        self.languages: dict[str, str] = {}

    def successful(self, items: Iterable[Document | Failure], paths: Iterable[str]) -> Iterator[Document]:
        paths = chain(paths, repeat(""))  # `read_part` raises after the documents if a file has more of them now
        for item, path in zip(items, paths, strict=False):
            if isinstance(item, Failure):
                self.failed += 1
                self.failures += [item.message] if self.failed <= MAX_FAILURES else []
                continue
            self.documents += 1
            self.tokens += item.n_tokens
            self.entities += len(item.entities)
            if path not in self.languages and (other := self._checks[path](item)):
                self.languages[path] = other
            yield item
