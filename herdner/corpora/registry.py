"""Registry of corpora: their sources, licences, formats and checksums.

The registry is a file (``corpora/registry.toml``), so a new corpus needs no code; `load_registry` reads other files
too.
"""

from __future__ import annotations

import difflib
import importlib.resources
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast, get_args

from herdner.corpora.download import check_url

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

Use = Literal["train", "measure only"]
Task = Literal["ner", "text", "images", "regression"]
Fetch = Literal["download", "by hand"]

REGISTRY_VERSION = 1
MAX_FILE_SIZE = 4 << 30  # bytes; larger than any corpus of names


class CorpusError(ValueError):
    """Error: a corpus is unknown, cannot be fetched, or differs from its registry entry.

    The message is one line.
    """


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """File or folder of a corpus, with its address, size and checksum.

    Attributes:
        name: Path relative to the folder of the corpus; the name of a folder ends in "/".
        size: Number of bytes.
        sha256: Checksum, 64 hexadecimal digits, as `herdner.corpora.files.checksum` defines it for files and folders.
        url: Address of the file; None if it cannot be downloaded.
        split: Part of the corpus, such as "train" or "dev".
    """

    name: str
    size: int
    sha256: str
    url: str | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Entry of the corpus registry.

    The head of ``corpora/registry.toml`` explains the fields.
    """

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
    labels: tuple[str, ...] = ()
    label_names: Mapping[str, str] = field(default_factory=dict[str, str])
    instructions: str = ""

    @property
    def all_label_names(self) -> dict[str, str | None]:
        """Dict that maps each label of the corpus to its new name, for `herdner.text.labels.rename_labels`.

        Labels that are not in ``label_names`` are removed.
        """
        return {**self.label_names, "*": None}


def load_registry(path: str | os.PathLike[str] | None = None) -> dict[str, Corpus]:
    """Read the corpus registry from a file.

    Args:
        path: The file; by default herdner's registry.

    Returns:
        The corpora by name.

    Raises:
        CorpusError: The file cannot be read or an entry is invalid.
    """
    source = Path(path) if path is not None else importlib.resources.files("herdner") / "data" / "registry.toml"
    try:
        data = cast("dict[str, Any]", tomllib.loads(source.read_text(encoding="utf-8")))  # pyright: ignore
    except OSError as problem:
        raise CorpusError(f"{source}: cannot read the registry: {problem.strerror or problem}") from None
    except ValueError as problem:  # bytes that are not UTF-8, or not TOML
        raise CorpusError(f"{source}: not a registry of corpora: {problem}") from None
    except RecursionError:
        raise CorpusError(f"{source}: not a registry of corpora: its lists are nested too deeply") from None
    if (version := data.get("version")) != REGISTRY_VERSION:
        problem = f"the registry has version {version!r}, but this version of herdner reads version {REGISTRY_VERSION}"
        raise CorpusError(f"{source}: {problem}; use a registry of this version")
    if not isinstance(data.get("corpus"), dict) or not data["corpus"]:
        raise CorpusError(f"{source}: the registry has no entry; expected at least one table [corpus.NAME]")
    try:
        return {name: _corpus(name, entry) for name, entry in _table(data["corpus"], "corpus").items()}
    except ValueError as problem:
        raise CorpusError(f"{source}: {problem}") from None


def info(name: str, registry: str | os.PathLike[str] | Mapping[str, Corpus] | None = None) -> Corpus:
    """Return the registry entry of the corpus ``name``.

    Args:
        name: Name of the corpus.
        registry: Path of a registry file, or the result of `load_registry`; by default herdner's registry.

    Returns:
        The corpus.

    Raises:
        CorpusError: The name is unknown.
    """
    corpora = registry if isinstance(registry, Mapping) else load_registry(registry)
    if name in corpora:
        return corpora[name]
    near = difflib.get_close_matches(name.lower(), corpora, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(corpora)}"
    raise CorpusError(f"unknown corpus {name!r}; {hint}")


# Types of the fields of `Corpus` and `CorpusFile` in a registry file; all others are strings.
_TYPES: Mapping[str, type] = {"size": int, "files": list, "labels": list, "label_names": dict}


def _corpus(name: str, entry: object) -> Corpus:
    where = f"corpus {name}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9_]*", name):
        raise ValueError(f"{where}: the name must consist of lower-case letters, digits and _")
    values = dict(_values(entry, Corpus, where))
    values["files"] = files = tuple(_corpus_file(file, where) for file in values["files"])
    values["labels"] = tuple(values.get("labels", ()))
    corpus = Corpus(name=name, **values)
    for key, allowed in (("use", get_args(Use)), ("task", get_args(Task)), ("fetch", get_args(Fetch))):
        if values[key] not in allowed:
            raise ValueError(f"{where}: {key} is {values[key]!r}, expected one of {', '.join(allowed)}")
    if unlisted := set(corpus.label_names) - set(corpus.labels):
        problem = f"`label_names` contains {min(unlisted)!r}, which is missing from `labels`"
        raise ValueError(f"{where}: {problem}; add it to `labels`")
    if corpus.fetch == "download" and (missing := next((file.name for file in files if not file.url), None)):
        problem = f"`fetch` is 'download', but the file {missing!r} has no url"
        raise ValueError(f"{where}: {problem}; add a `url` to each file")
    if corpus.fetch == "by hand" and not corpus.instructions:
        raise ValueError(f"{where}: `fetch` is 'by hand', but there are no instructions; add `instructions`")
    return corpus


def _corpus_file(entry: object, where: str) -> CorpusFile:
    file = CorpusFile(**_values(entry, CorpusFile, f"{where}: files"))
    path = PurePosixPath(file.name)
    # The name becomes a path on this machine, which must be within the folder of the corpus.
    if not path.parts or path.is_absolute() or ".." in path.parts or re.search(r'[\\:\x00-\x1f<>|?*"]', file.name):
        raise ValueError(f"{where}: {file.name!r} is not a safe file name; expected a relative path without ..")
    where = f"{where}: file {file.name}"
    if not 0 <= file.size <= MAX_FILE_SIZE:
        raise ValueError(f"{where}: size {file.size} is not between 0 and {MAX_FILE_SIZE}")
    if not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
        raise ValueError(f"{where}: sha256 must be 64 lower-case hexadecimal digits, got {file.sha256!r:.80}")
    if file.url is not None:
        if file.name.endswith("/"):
            raise ValueError(f"{where}: the folder {file.name!r} must not have a `url`; remove the `url`")
        check_url(file.url)
    return file


def _table(entry: object, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: expected a table, found {type(entry).__name__}")
    return cast("dict[str, Any]", entry)


def _values(entry: object, cls: type[Corpus | CorpusFile], where: str) -> dict[str, Any]:
    """Check the names and types of the fields of a registry table, and return the table.

    The name of a corpus is not a field, because it is the key of the table.
    """
    table = _table(entry, where)
    names = {each.name: each.default is MISSING and each.default_factory is MISSING for each in fields(cls)}
    if cls is Corpus:
        del names["name"]
    if unknown := [key for key in table if key not in names]:
        raise ValueError(f"{where}: unknown field {', '.join(unknown)}; check the spelling, or remove it")
    if missing := next((key for key, is_required in names.items() if is_required and key not in table), None):
        raise ValueError(f"{where}: the field {missing} is missing")
    for key, value in table.items():
        expected = _TYPES.get(key, str)
        if not isinstance(value, expected) or isinstance(value, bool):
            raise ValueError(f"{where}: {key} must be of type {expected.__name__}, found {type(value).__name__}")
        members = cast("dict[object, object]", value).values() if isinstance(value, dict) else value
        if expected in (list, dict) and key != "files" and not all(isinstance(each, str) for each in members):
            raise ValueError(f"{where}: {key} must contain strings only, got {value!r:.80}")
    return table
