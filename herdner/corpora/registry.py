"""The registry of known corpora: what they are, and where they come from.

The registry is data (``corpora/registry.toml``), so a new corpus needs no code; `load_registry` takes other files.
"""

from __future__ import annotations

import difflib
import importlib.resources
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast, get_args

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

Use = Literal["train", "measure only"]
Task = Literal["ner", "text", "images", "regression"]
Fetch = Literal["download", "by hand"]

REGISTRY_VERSION = 1
MAX_FILE_SIZE = 4 << 30  # bytes; no corpus of names comes near it


class CorpusError(Exception):
    """A corpus is unknown, cannot be fetched, or is not what the registry says; the message is one line."""


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file of a corpus, or a folder (``name`` ends in ``/``).

    ``size`` counts bytes. ``sha256`` is 64 hexadecimal digits; that of a folder is defined by
    `herdner.corpora.files.checksum`.
    """

    name: str
    size: int
    sha256: str
    url: str | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """One entry of the registry; the head of ``corpora/registry.toml`` says what the fields mean."""

    name: str
    title: str
    source: str
    licence: str
    use: Use
    task: Task
    language: str
    format: str
    citation: str
    fetch: Fetch
    files: tuple[CorpusFile, ...]
    encoding: str | None = None
    classes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    instructions: str = ""

    @property
    def label_map(self) -> dict[str, str | None]:
        """``labels`` as the readers of `herdner.text.io` take it: the classes that are not named are dropped."""
        return {**self.labels, "*": None}


def load_registry(path: str | os.PathLike[str] | None = None) -> dict[str, Corpus]:
    """The corpora of a registry file by name; of herdner's own when no path is given.

    Raises:
        CorpusError: The file cannot be read or an entry lacks something.
    """
    source = Path(path) if path is not None else importlib.resources.files("herdner") / "data" / "registry.toml"
    try:
        data = cast("dict[str, Any]", tomllib.loads(source.read_text(encoding="utf-8")))  # pyright: ignore
    except OSError as problem:
        raise CorpusError(f"{source}: cannot read the registry: {problem.strerror or problem}") from None
    except ValueError as problem:  # bytes that are not UTF-8, or not TOML
        raise CorpusError(f"{source}: not a registry: {problem}") from None
    except RecursionError:
        raise CorpusError(f"{source}: not a registry: its lists are nested too deeply") from None
    if data.get("version") != REGISTRY_VERSION:
        raise CorpusError(
            f"{source}: registry version {data.get('version')!r}; herdner reads version {REGISTRY_VERSION}"
        )
    if not isinstance(data.get("corpus"), dict) or not data["corpus"]:
        raise CorpusError(f"{source}: no entry [corpus.NAME]")
    try:
        return {name: _corpus(name, entry) for name, entry in _table(data["corpus"], "corpus").items()}
    except ValueError as problem:
        raise CorpusError(f"{source}: {problem}") from None


def info(name: str, registry: str | os.PathLike[str] | Mapping[str, Corpus] | None = None) -> Corpus:
    """The entry of the registry (its path, or what `load_registry` returned); an unknown name is a CorpusError."""
    corpora = registry if isinstance(registry, Mapping) else load_registry(registry)
    if name in corpora:
        return corpora[name]
    near = difflib.get_close_matches(name.lower(), corpora, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(corpora)}"
    raise CorpusError(f"unknown corpus {name!r}; {hint}")


def _corpus(name: str, entry: object) -> Corpus:
    where = f"corpus {name}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9_]*", name):
        raise ValueError(f"{where}: the name must be lower-case letters, digits and _")
    table = _table(entry, where)
    files = tuple(_corpus_file(item, where) for item in _take(table, "files", list, where))
    values: dict[str, Any] = {
        key: _take(table, key, str, where) for key in ("title", "source", "licence", "language", "format", "citation")
    }
    for key, allowed in (("use", get_args(Use)), ("task", get_args(Task)), ("fetch", get_args(Fetch))):
        values[key] = _take(table, key, str, where)
        if values[key] not in allowed:
            raise ValueError(f"{where}: {key} is {values[key]!r}, expected one of {', '.join(allowed)}")
    values["encoding"] = _take(table, "encoding", str, where, default=None)
    values["instructions"] = _take(table, "instructions", str, where, default="")
    values["classes"] = tuple(_take(table, "classes", list, where, default=[]))
    values["labels"] = _take(table, "labels", dict, where, default={})
    if not set(values["labels"]) <= set(values["classes"]):
        raise ValueError(f"{where}: labels names a class that is not among classes")
    if values["fetch"] == "download" and not all(file.url for file in files):
        raise ValueError(f"{where}: fetch is 'download', but a file has no url")
    if values["fetch"] == "by hand" and not values["instructions"]:
        raise ValueError(f"{where}: fetch is 'by hand', but there are no instructions")
    _finish(table, where)
    return Corpus(name=name, files=files, **values)


def _corpus_file(entry: object, where: str) -> CorpusFile:
    table = _table(entry, f"{where}: files")
    name = _take(table, "name", str, where)
    path = PurePosixPath(name)
    # The name becomes a path on this machine: it may not leave the folder of the corpus.
    if not path.parts or path.is_absolute() or ".." in path.parts or re.search(r'[\\:\x00-\x1f<>|?*"]', name):
        raise ValueError(f"{where}: {name!r} is no safe file name")
    where = f"{where}: file {name}"
    file = CorpusFile(
        name=name,
        size=_take(table, "size", int, where),
        sha256=_take(table, "sha256", str, where),
        url=_take(table, "url", str, where, default=None),
        split=_take(table, "split", str, where, default=None),
    )
    if not 0 <= file.size <= MAX_FILE_SIZE:
        raise ValueError(f"{where}: size {file.size} is not between 0 and {MAX_FILE_SIZE}")
    if not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
        raise ValueError(f"{where}: sha256 must be 64 lower-case hexadecimal digits")
    if file.url is not None:
        if name.endswith("/"):
            raise ValueError(f"{where}: a folder cannot have a url")
        from herdner.corpora.download import check_url

        check_url(file.url)
    _finish(table, where)
    return file


def _table(entry: object, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: expected a table, found {type(entry).__name__}")
    return dict(cast("dict[str, Any]", entry))


_REQUIRED: Any = object()


def _take(table: dict[str, Any], key: str, kind: type, where: str, default: Any = _REQUIRED) -> Any:
    if key not in table:
        if default is _REQUIRED:
            raise ValueError(f"{where}: {key} is missing")
        return default
    value = table.pop(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{where}: {key} must be of type {kind.__name__}, found {type(value).__name__}")
    if kind in (list, dict) and key != "files":
        members = value if kind is list else value.values()
        if not all(isinstance(member, str) for member in members):
            raise ValueError(f"{where}: {key} must hold strings only")
    return value


def _finish(table: dict[str, Any], where: str) -> None:
    if table:
        raise ValueError(f"{where}: unknown field {', '.join(table)}")
