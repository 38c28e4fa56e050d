"""The manifest of a run: its settings, its inputs, and the state of each output part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from herdner.integrations.dask.files import OutputFolder, RunInput

NAME = "manifest.json"
FORMAT = "herdner-parts"
VERSION = 1
MAX_FAILURES = 1000  # messages that the manifest keeps for each part


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run on a cluster: all values, except the input files, that determine the content of the output.

    Attributes:
        herdner: Version of herdner.
        model: Name of the model file.
        sha256: SHA-256 of the model file.
        inference: Options of tagging, as plain data.
        seed: Seed of the random numbers.
        format: Format of the parts.
        encoding: Encoding of text files.
        column: Column of Parquet files that contains the texts.
        part_bytes: Approximate size of the input of each part, in bytes.
    """

    herdner: str
    model: str
    sha256: str
    inference: dict[str, Any]
    seed: int
    format: str
    encoding: str
    column: str
    part_bytes: int


@dataclass(frozen=True)
class InputSlice:
    """Consecutive documents of an input file, given as a range of bytes or row groups, or as the whole file.

    Attributes:
        path: Path or URL of the file.
        unit: Meaning of ``begin`` and ``end``: "lines" and "piece" count bytes (JSON lines; one piece of a long text),
            "rows" counts row groups of a Parquet file, "file" is the whole file.
        begin: Index of the first byte or row group.
        end: Index behind the last byte or row group.
        first: Number of the first line, row or piece in the file, from 1.
        offset: Offset in characters at which a piece begins.
        n_documents: Number of documents, including unreadable documents.
        n_bytes: Size in bytes.
    """

    path: str
    unit: Literal["file", "lines", "piece", "rows"]
    begin: int
    end: int
    first: int
    offset: int
    n_documents: int
    n_bytes: int


@dataclass(frozen=True)
class WrittenPart:
    """Output file of one part of a run, with its numbers of documents, tokens and entities, and its failures.

    Attributes:
        name: Name of the file.
        documents: Number of documents in it.
        tokens: Number of tokens in it.
        entities: Number of entities in it.
        failed: Number of documents that could not be read or tagged.
        bytes: Size of the file.
        sha256: SHA-256 of the file.
        failures: Messages of failed documents, at most `MAX_FAILURES`.
        languages: Code of the language of each input file's first document that is not in the model's language, by the
            path of the file.
    """

    name: str
    documents: int
    tokens: int
    entities: int
    failed: int
    bytes: int
    sha256: str
    failures: tuple[str, ...] = ()
    languages: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class OutputPart:
    """Part of the output: the input of one task, and the output file once it is written.

    Attributes:
        first_document: Index of the first document of the part among all documents of the run.
        slices: Input of the part.
        output: Output file of the part; None until it is written.
    """

    first_document: int
    slices: tuple[InputSlice, ...]
    output: WrittenPart | None = None

    @property
    def n_documents(self) -> int:
        """Number of documents in the part, including unreadable documents."""
        return sum(piece.n_documents for piece in self.slices)


@dataclass
class Manifest:
    """State of a run, stored as the manifest of the output folder: settings, inputs and parts.

    Attributes:
        settings: Settings of the run.
        inputs: Input files.
        parts: All parts, in the order of the documents.
    """

    settings: RunSettings
    inputs: list[RunInput]
    parts: list[OutputPart]

    @property
    def written_parts(self) -> list[WrittenPart]:
        """Output files that have been written so far, in the order of the documents."""
        return [part.output for part in self.parts if part.output is not None]

    @property
    def missing_parts(self) -> list[tuple[int, OutputPart]]:
        """Parts that have not been written yet, each with its index."""
        return [(index, part) for index, part in enumerate(self.parts) if part.output is None]

    @property
    def complete(self) -> bool:
        """True if all parts of the run have been written."""
        return not self.missing_parts

    @property
    def documents(self) -> int:
        """Number of documents that the run has tagged so far."""
        return sum(part.documents for part in self.written_parts)

    @property
    def failed(self) -> int:
        """Number of documents that the run could not read or tag so far."""
        return sum(part.failed for part in self.written_parts)

    @property
    def languages(self) -> dict[str, str]:
        """Code of the language of each input file that is not in the model's language, by the path of the file."""
        languages: dict[str, str] = {}
        for part in self.written_parts:
            for path, code in part.languages.items():
                languages.setdefault(path, code)
        return languages

    @property
    def names(self) -> list[str]:
        """Names of the output files that have been written so far, in the order of the documents."""
        return [part.name for part in self.written_parts]

    def save(self, folder: OutputFolder) -> None:
        """Write the manifest to ``manifest.json`` in the output folder; a reader never sees an incomplete file.

        Args:
            folder: The output folder.

        Raises:
            OutputError: The file cannot be written.
        """
        with folder.write(NAME) as stream:
            stream.write(json.dumps(self.to_dict(), indent=1, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest as a dict for JSON."""
        counts = {"complete": self.complete, "documents": self.documents, "failed": self.failed}
        return {"format": FORMAT, "version": VERSION, **counts, **asdict(self)}


@dataclass
class _ManifestFile(Manifest):
    """Content of the file ``manifest.json``, with its format and version."""

    format: Literal["herdner-parts"]
    version: Literal[1]


_MANIFEST_FILE = TypeAdapter(_ManifestFile)


def load_manifest(folder: OutputFolder) -> Manifest:
    """Read the manifest of an output folder.

    Args:
        folder: The folder.

    Returns:
        The manifest.

    Raises:
        ValueError: The file is not a valid manifest.
        OutputError: The file cannot be read.
    """
    data = folder.read(NAME)
    try:
        file = _MANIFEST_FILE.validate_json(data, strict=True)
        json.dumps(file.settings.inference, allow_nan=False)  # NaN is not JSON, and is not equal to itself
    except ValueError as error:
        problem = str(error)
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            problem = " ".join(f"{'.'.join(map(str, first['loc'])) or 'content'}: {first['msg']}".split())
        raise ValueError(f"{folder.url}/{NAME}: not a valid manifest ({problem}); use another output folder") from None
    return Manifest(file.settings, file.inputs, file.parts)


def check_same_run(manifest: Manifest, settings: RunSettings, inputs: Sequence[RunInput], folder: OutputFolder) -> None:
    """Raise `ValueError` unless the run in a manifest can be continued with the given settings and input files.

    Args:
        manifest: Manifest of the earlier run.
        settings: Settings of the new run.
        inputs: Input files of the new run.
        folder: The output folder, for messages.

    Raises:
        ValueError: Settings or inputs differ, or an input file has changed.
    """

    def different(problem: str) -> ValueError:
        remedy = "use the arguments of that run, or another output folder"
        return ValueError(f"{folder.url} contains parts of another run: {problem}; {remedy}")

    old, new = asdict(manifest.settings), asdict(settings)
    for name in old:
        if name != "model" and old[name] != new[name]:
            raise different(_setting_difference(name, manifest.settings, settings))
    old_files, new_files = ({file.path: file for file in files} for files in (manifest.inputs, inputs))
    for path in [*old_files, *new_files]:
        if path not in new_files:
            raise different(f"{path} was an input of the run that wrote this folder, but not of this run")
        if path not in old_files:
            raise different(f"{path} is an input of this run, but was not an input of the run that wrote this folder")
        if old_files[path] != new_files[path]:
            raise ValueError(f"{path} has changed since the run in {folder.url} began; use another output folder")
    if manifest.inputs != list(inputs):
        raise different(
            "the run that wrote this folder read the files in another order, or some of them more than once, and can be"
            " continued only with the same list of files"
        )


def _setting_difference(name: str, old: RunSettings, new: RunSettings) -> str:
    if name == "sha256":
        return f"the run that wrote this folder used another model file ({old.model}, now {new.model})"
    if name == "herdner":
        return f"the version of herdner was {old.herdner}, now it is {new.herdner}"
    return f"{name.replace('_', ' ')} was {json.dumps(getattr(old, name))}, now it is {json.dumps(getattr(new, name))}"
