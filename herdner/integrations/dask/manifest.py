"""The manifest of a run: what was asked, how the inputs were cut, and which parts are there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from herdner.integrations.dask.files import File
from herdner.integrations.dask.outputs import Folder
from herdner.integrations.dask.slices import Part, Slice

NAME = "manifest.json"
VERSION = 1
FAILURES_KEPT = 1000  # of a part


@dataclass(frozen=True)
class Settings:
    """All that the bytes of the parts depend on, beside the inputs; ``sha256`` is that of the model file."""

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
class Written:
    """What became of a part. ``documents`` and ``failed`` make up those of its slices; ``bytes`` and ``sha256`` are
    those of the file ``name``; of the messages of ``failures`` the first thousand are kept.
    """

    name: str
    documents: int
    tokens: int
    entities: int
    failed: int
    bytes: int
    sha256: str
    failures: tuple[str, ...] = ()


@dataclass
class Manifest:
    """The state of a run. ``written`` holds the finished parts by their index."""

    settings: Settings
    inputs: list[File]
    parts: list[Part]
    written: dict[int, Written] = field(default_factory=dict[int, Written])

    @property
    def complete(self) -> bool:
        return len(self.written) == len(self.parts)

    @property
    def missing(self) -> list[Part]:
        return [part for part in self.parts if part.index not in self.written]

    @property
    def documents(self) -> int:
        """Documents tagged so far."""
        return sum(part.documents for part in self.written.values())

    @property
    def failed(self) -> int:
        """Documents that could not be read or tagged, so far."""
        return sum(part.failed for part in self.written.values())

    @property
    def names(self) -> list[str]:
        """The finished files, in the order of the documents."""
        return [self.written[index].name for index in sorted(self.written)]

    def save(self, folder: Folder) -> None:
        """Write ``manifest.json``, atomically. Raises OutputError."""
        with folder.writing(NAME) as stream:
            stream.write(json.dumps(self.to_dict(), indent=1, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        parts = [
            {
                "first_document": part.first,
                "input": [asdict(piece) for piece in part.slices],
                "output": asdict(self.written[part.index]) if part.index in self.written else None,
            }
            for part in self.parts
        ]
        return {
            "format": "herdner-parts", "version": VERSION, "complete": self.complete, "documents": self.documents,
            "failed": self.failed, "settings": asdict(self.settings), "inputs": [asdict(file) for file in self.inputs],
            "parts": parts,
        }  # fmt: skip


def load_manifest(folder: Folder) -> Manifest:
    """The manifest of a folder. Raises ValueError where it cannot be one, OutputError where it cannot be read."""
    data = folder.read(NAME)
    try:
        values = _FILE.validate_json(data, strict=True)
        json.dumps(values.settings.inference, allow_nan=False)  # NaN is no JSON, and equals nothing later on
    except ValueError as error:
        said = str(error)
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            said = " ".join(f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}".split())
        message = f"{folder.url}/{NAME}: no manifest that this herdner reads ({said}); use another folder"
        raise ValueError(message) from None
    parts = [Part(index, part.first_document, part.input) for index, part in enumerate(values.parts)]
    written = {index: part.output for index, part in enumerate(values.parts) if part.output is not None}
    return Manifest(values.settings, values.inputs, parts, written)


@dataclass(frozen=True)
class _Part:
    """A part as the file has it."""

    first_document: int
    input: tuple[Slice, ...]
    output: Written | None


@dataclass(frozen=True)
class _File:
    """What the file must hold; the rest follows from it."""

    format: Literal["herdner-parts"]
    version: Literal[1]
    settings: Settings
    inputs: list[File]
    parts: list[_Part]


_FILE = TypeAdapter(_File)


def check_same(old: Manifest, settings: Settings, inputs: Sequence[File], folder: Folder) -> None:
    """ValueError where a folder holds parts of a run with other settings or inputs."""
    mend = "give what was given then, or use another folder"
    before, now = asdict(old.settings), asdict(settings)
    for name in before:
        if name != "model" and before[name] != now[name]:
            raise ValueError(
                f"{folder.url} holds parts of another run: {_difference(name, old.settings, settings)}; {mend}"
            )
    then, given = ({file.path: file for file in files} for files in (old.inputs, inputs))
    for path in [*then, *given]:
        if path not in given:
            raise ValueError(f"{folder.url} holds parts of another run: {path} was an input then; {mend}")
        if path not in then:
            raise ValueError(f"{folder.url} holds parts of another run: {path} was no input then; {mend}")
        if then[path] != given[path]:
            raise ValueError(f"{path} has changed since the run in {folder.url} began; use another folder")
    if old.inputs != list(inputs):
        raise ValueError(f"{folder.url} holds parts of another run: its inputs came in another order; {mend}")


def _difference(name: str, old: Settings, new: Settings) -> str:
    if name == "sha256":
        return f"the model is another one ({old.model} then, {new.model} now)"
    if name == "herdner":
        return f"herdner was {old.herdner} then, and is {new.herdner} now"
    return f"{name.replace('_', ' ')} was {json.dumps(getattr(old, name))}, and is {json.dumps(getattr(new, name))} now"
