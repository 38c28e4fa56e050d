"""The registry of known corpora: what they are, where they come from, and how to get and check their files.

The registry is data (``corpora/registry.toml``), so a new corpus needs no code; `fetch` takes the path of another one.
Corpora that are read need not be registered: `parse_source`, `read` and `convert` take any file of a known format.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.resources
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, cast, get_args

import platformdirs

from herdner.base.files import replacing
from herdner.corpora.download import TIMEOUT, DownloadError, check_url, download
from herdner.text.document import Document
from herdner.text.io import FORMATS, read_documents, write_documents

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

Use = Literal["train", "measure only"]
Task = Literal["ner", "text", "images", "regression"]
Fetch = Literal["download", "by hand"]
Progress = Callable[[str, int, int], object]

REGISTRY_VERSION = 1
MAX_FILE_SIZE = 4 << 30  # bytes; no corpus of names comes near it
_BLOCK = 1 << 16


class CorpusError(Exception):
    """A corpus is unknown, cannot be fetched, or is not what the registry says; the message is one line."""


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file of a corpus, or a folder (``name`` ends in ``/``).

    ``size`` counts bytes. ``sha256`` is 64 hexadecimal digits; that of a folder is defined by `checksum`.
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


# --- the registry


def load_registry(path: str | os.PathLike[str] | None = None) -> dict[str, Corpus]:
    """The corpora of a registry file by name; of herdner's own when no path is given.

    Raises CorpusError when the file cannot be read or an entry lacks something.
    """
    source = Path(path) if path is not None else importlib.resources.files("herdner") / "data" / "registry.toml"
    try:
        data = cast("dict[str, Any]", tomllib.loads(source.read_text(encoding="utf-8")))  # pyright: ignore
    except OSError as problem:
        raise CorpusError(f"{source}: cannot read the registry: {problem.strerror or problem}") from None
    except ValueError as problem:  # bytes that are not UTF-8, or not TOML
        raise CorpusError(f"{source}: not a registry: {problem}") from None
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


# --- files on the disk


def checksum(path: str | os.PathLike[str]) -> tuple[int, str]:
    """Size in bytes and SHA-256 of a file, or of a folder.

    The size of a folder is the sum over its files. Its checksum is that of what ``sha256sum`` prints for them: one line
    ``CHECKSUM  PATH`` each, paths relative to the folder and sorted by their bytes. Raises OSError.
    """
    path = Path(path)
    if not path.is_dir():
        return _checksum_of(path)
    files = sorted((file.relative_to(path).as_posix(), file) for file in path.rglob("*") if file.is_file())
    total, digest = 0, hashlib.sha256()
    for name, file in files:
        size, sha256 = _checksum_of(file)
        total += size
        digest.update(f"{sha256}  {name}\n".encode())
    return total, digest.hexdigest()


def _checksum_of(path: Path) -> tuple[int, str]:
    size, digest = 0, hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            size += len(block)
            digest.update(block)
    return size, digest.hexdigest()


def verify(corpus: Corpus, folder: str | os.PathLike[str]) -> Iterator[str]:
    """What is wrong with the files of the corpus in the folder, one line per file; nothing when all agree."""
    for file in corpus.files:
        problem = _problem(file, Path(folder) / file.name)
        if problem:
            yield problem


def _problem(file: CorpusFile, path: Path) -> str | None:
    try:
        if path.is_file() and path.stat().st_size != file.size:  # no need to read it
            return f"{path}: has {path.stat().st_size} bytes, expected {file.size}"
        size, sha256 = checksum(path)
    except FileNotFoundError:
        return f"{path}: missing"
    except OSError as problem:
        return f"{path}: {problem.strerror or problem}"
    if (size, sha256) != (file.size, file.sha256):
        return f"{path}: SHA-256 is {sha256}, expected {file.sha256}"
    return None


def fetch(
    name: str,
    destination: str | os.PathLike[str] | None = None,
    *,
    registry: str | os.PathLike[str] | Mapping[str, Corpus] | None = None,
    progress: Progress | None = None,
    timeout: float = TIMEOUT,
) -> Path:
    """Bring the files of a corpus into a folder and return the folder; files that are there and right are kept.

    ``destination`` is the folder itself; by default the corpus's own under the user's cache. ``progress(file, done,
    total)`` is called as bytes arrive. ``timeout`` is the longest silence of the network, in seconds. A corpus that
    has to be fetched by hand is only checked. A file gets its name only when its size and checksum are right.
    Raises CorpusError.
    """
    corpus = info(name, registry)
    folder = (
        Path(destination) if destination is not None else platformdirs.user_cache_path("herdner") / "corpora" / name
    )
    if corpus.fetch == "by hand":
        for problem in verify(corpus, folder):
            how = " ".join(corpus.instructions.split())
            raise CorpusError(f"{name} has to be fetched by hand: {how} Put the files into {folder}. ({problem})")
        return folder
    for file in corpus.files:
        path = folder / file.name
        if file.url is None or _problem(file, path) is None:
            continue
        report = partial(progress, file.name) if progress else None
        try:
            download(file.url, path, file.size, file.sha256, progress=report, timeout=timeout)
        except DownloadError as problem:
            raise CorpusError(f"{name}: {problem}") from None
    return folder


# --- reading and converting


class SourceFile(NamedTuple):
    """A file (or whatever else `herdner.text.io.read_documents` reads) and its format."""

    path: str
    format: str


EXTENSIONS = {".jsonl": "jsonl", ".txt": "text", ".conll": "conll", ".iob2": "uner", ".spacy": "spacy"}


def parse_source(argument: str) -> SourceFile:
    """Take ``FILE:FORMAT`` apart; the format may be left out where the extension tells it (`EXTENSIONS`, also .gz).

    A path may hold colons: what follows the last one is a format only if it has that form, and a file that exists under
    the whole name is taken as it is. Raises ValueError with a line that names the formats.
    """
    head, colon, tail = argument.rpartition(":")
    whole = Path(argument)
    by_extension = EXTENSIONS.get(Path(whole.name.removesuffix(".gz")).suffix.lower())
    formats = [name for name, entry in FORMATS.items() if entry.read is not None]
    if colon and head and tail in formats and not (whole.exists() and not Path(head).exists()):
        return SourceFile(head, tail)
    if by_extension and (whole.exists() or not colon or not tail.isidentifier()):
        return SourceFile(argument, by_extension)
    known = f"expected FILE:FORMAT with one of {', '.join(formats)}"
    if not argument or (colon and not head):
        raise ValueError(f"{argument!r} names no file; {known}")
    if colon and tail.isidentifier() and not whole.exists():
        near = difflib.get_close_matches(tail.lower(), formats, n=1)
        raise ValueError(
            f"{argument!r}: unknown format {tail!r}{f' (did you mean {near[0]}?)' if near else ''}; {known}"
        )
    raise ValueError(f"{argument!r}: the extension does not tell the format; {known}")


def label_map(format: str, registry: Mapping[str, Corpus] | None = None) -> dict[str, str | None] | None:
    """How the registry maps the classes of the corpora of a format to PER, LOC and ORG; None for general formats.

    A format belongs to a corpus where it has that corpus's name (``wnut17``), or serves only one annotated corpus.
    """
    corpora = (load_registry() if registry is None else registry).values()
    owners = [corpus for corpus in corpora if corpus.task == "ner" and corpus.format == format]
    general = format in EXTENSIONS.values() and format != "uner"
    return None if general or len(owners) != 1 else owners[0].label_map


def read(source: str | SourceFile, *, map_labels: bool = False, **options: Any) -> Iterator[Document]:
    """The documents of ``FILE:FORMAT``, streaming; ``options`` are those of `herdner.text.io.read_documents`.

    With ``map_labels`` the classes of a registered corpus become PER, LOC and ORG and the others are dropped
    (`label_map`); tags are then IOB2. Raises ValueError, or FormatError when iteration gets to the fault.
    """
    path, format = parse_source(source) if isinstance(source, str) else source
    if map_labels and (labels := label_map(format)) is not None:
        options.setdefault("labels", labels)
    return read_documents(path, format, **options)


def convert(
    source: str | SourceFile,
    target_format: str,
    output: str | os.PathLike[str],
    *,
    map_labels: bool = False,
    **options: Any,
) -> int:
    """Write the documents of ``FILE:FORMAT`` in another format, streaming, and return how many there were.

    ``output`` is complete or is left as it was; ``"-"`` is standard output. Other arguments as for `read`; a column
    format can only be written of text with a ``tokenizer``. Raises ValueError (FormatError among them) and OSError.
    """
    count = 0

    def counted() -> Iterator[Document]:
        nonlocal count
        for document in read(source, map_labels=map_labels, **options):
            count += 1
            yield document

    if str(output) == "-":
        write_documents(counted(), sys.stdout, target_format)
        return count
    with replacing(output) as stream:
        write_documents(counted(), stream, target_format)
    return count
