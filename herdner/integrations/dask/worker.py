"""What happens on a worker: the model comes once, parts come and are written."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

import herdner
from herdner.corpora.formats import write_documents
from herdner.integrations.dask.manifest import FAILURES_KEPT, Settings, Written
from herdner.integrations.dask.outputs import Folder
from herdner.integrations.dask.slices import Part, Reading, read_part
from herdner.ner.inference import Inference
from herdner.ner.model import TaggerModel
from herdner.ner.model_file import shipped_models
from herdner.ner.tagger import Tagger
from herdner.text.document import Document, Failure
from herdner.text.io.parquet import write_parquet


@dataclass(frozen=True)
class ModelBytes:
    """A model file as it travels: its bytes, known by their SHA-256."""

    sha256: str
    data: bytes = field(repr=False, compare=False)

    def __dask_tokenize__(self) -> str:
        return self.sha256


def model_bytes(model: str | os.PathLike[str]) -> ModelBytes:
    """The file of a shipped model or of a path, which need not exist anywhere else. Raises `ModelError`."""
    herdner.load(model)  # a fault of the file is found here
    name = os.fspath(model)
    data = shipped_models().get(name, Path(name)).read_bytes()
    return ModelBytes(hashlib.sha256(data).hexdigest(), data)


_loading = Lock()


def tagger_of(model: ModelBytes) -> Tagger:
    """The tagger of a model that came as bytes; one for all threads of the process."""
    with _loading:
        return _tagger_of(model)


@lru_cache(maxsize=2)
def _tagger_of(model: ModelBytes) -> Tagger:
    return Tagger.from_model(TaggerModel.load(io.BytesIO(model.data)))


@dataclass(frozen=True)
class Job:
    """What all parts of a run have in common."""

    name: str
    model: ModelBytes
    settings: Settings
    output: str
    storage_options: Mapping[str, Any]
    inference: Inference

    @property
    def reading(self) -> Reading:
        return Reading(self.settings.encoding, self.settings.column, self.storage_options)


_jobs: dict[str, Job] = {}


class JobPlugin(WorkerPlugin):
    """Brings the job, and with it the model, to each worker once: also to those that come later, or again."""

    def __init__(self, job: Job) -> None:
        self.name = job.name
        self.job = job

    def setup(self, worker: Any) -> None:
        _jobs[self.job.name] = self.job

    def teardown(self, worker: Any) -> None:
        _jobs.pop(self.job.name, None)


def tag_part(job: str, part: Part, formats: Mapping[str, str]) -> Written:
    """Tag a part and write its file. The same part gives the same bytes wherever and however often it is done."""
    known = _jobs[job]
    tagger, settings = tagger_of(known.model), known.settings
    counts, documents = _Counts(), read_part(part, formats, known.reading)
    items = tagger.outcomes(documents, known.inference, seed=settings.seed, first=part.first)
    name = part_name(part.index, settings.format)
    with Folder(known.output, known.storage_options).writing(name) as stream:
        if settings.format == "parquet":
            write_parquet(counts.counted(items), stream)
        else:
            write_documents(counts.counted(items), stream, settings.format)
    return Written(
        name, counts.documents, counts.tokens, counts.entities, counts.failed,
        stream.size, stream.digest.hexdigest(), tuple(counts.failures),
    )  # fmt: skip


def part_name(index: int, format: str) -> str:
    """Files sort as the documents do, up to ten million parts."""
    return f"part-{index:07}.{format}"


class _Counts:
    """Counts documents that pass, and keeps the failures."""

    def __init__(self) -> None:
        self.documents = self.tokens = self.entities = self.failed = 0
        self.failures: list[str] = []

    def counted(self, items: Iterable[Document | Failure]) -> Iterator[Document]:
        for item in items:
            if isinstance(item, Failure):
                self.failed += 1
                self.failures += [item.message] if self.failed <= FAILURES_KEPT else []
                continue
            self.documents += 1
            self.tokens += item.n_tokens
            self.entities += len(item.entities)
            yield item
