"""Input files and output folders, on any file system that fsspec supports."""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import glob
import hashlib
import io
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from herdner.base.files import atomic_write
from herdner.corpora.formats import format_of

INPUT_FORMATS = ("text", "jsonl", "parquet")
# Keys by which file systems report the version of a file; the first one that exists detects changes.
_VERSION_KEYS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "updated", "created")


class OutputError(OSError):
    """Error: the output folder cannot be read or written. The message names the reason."""


@dataclass(frozen=True)
class RunInput:
    """Input file of a run on a cluster.

    Attributes:
        path: Path or URL, as fsspec accepts it.
        format: One of `INPUT_FORMATS`.
        size: Size in bytes.
        version: String that changes when the file changes; empty if the file system reports none.
    """

    path: str
    format: str
    size: int
    version: str


def find_files(
    inputs: Iterable[str], format: str | None = None, storage_options: Mapping[str, Any] | None = None
) -> list[RunInput]:
    """List the files that paths, folders and glob patterns name.

    Args:
        inputs: Paths, folders or patterns. A folder is expanded to its files with an extension of `INPUT_FORMATS`.
        format: Format of all files; None: the file extensions determine it.
        storage_options: Options of fsspec.

    Returns:
        The files in the order of ``inputs``; the files of one folder or pattern are sorted.

    Raises:
        ValueError: An input does not exist, cannot be listed or has another format.
    """
    if format is not None and format not in INPUT_FORMATS:
        raise ValueError(f"the input format must be one of {', '.join(INPUT_FORMATS)}, got {format!r}")
    files = [file for each in inputs for file in _files_of(each, format, storage_options or {})]
    if not files:
        raise ValueError("the list of inputs is empty; name at least one file, folder or pattern")
    return files


def _files_of(path_or_pattern: str, format: str | None, options: Mapping[str, Any]) -> list[RunInput]:
    try:
        fs, path = url_to_fs(path_or_pattern, **options)
        infos = _list(fs, path, format)
    except FileNotFoundError:
        raise ValueError(f"{path_or_pattern}: no such file") from None
    except Exception as error:  # each file system raises errors of its own
        raise ValueError(f"{path_or_pattern}: cannot be listed ({error or type(error).__name__})") from None
    if not infos:
        wanted = " or ".join(INPUT_FORMATS if format is None else (format,))
        problem = "no file matches" if glob.has_magic(path) else f"no {wanted} file in this folder"
        raise ValueError(f"{path_or_pattern}: {problem}")
    files: list[RunInput] = []
    for info in sorted(infos, key=lambda info: PurePosixPath(info["name"]).parts):
        name = info["name"] if isinstance(fs, LocalFileSystem) else fs.unstrip_protocol(info["name"])
        own = format or format_of(name) or "text"
        if own not in INPUT_FORMATS:
            raise ValueError(f"{name}: on a cluster the format must be one of {', '.join(INPUT_FORMATS)}, got {own}")
        version = next((str(info[key]) for key in _VERSION_KEYS if info.get(key)), "")
        files.append(RunInput(name, own, int(info["size"] or 0), version))
    return files


def _list(fs: Any, path: str, format: str | None) -> list[dict[str, Any]]:
    """Return the entries (dicts of fsspec) of the files that a path, pattern or folder names."""
    if glob.has_magic(path) and not fs.exists(path):
        return [info for info in fs.glob(path, detail=True).values() if info["type"] == "file"]
    if not fs.isdir(path):
        return [fs.info(path)]
    formats = INPUT_FORMATS if format is None else (format,)
    return [info for info in fs.find(path, detail=True).values() if format_of(info["name"]) in formats]


class OutputFolder:
    """Folder for output files, without subfolders, on any file system to which fsspec can write.

    Args:
        url: Path or URL of the folder. It need not exist.
        storage_options: Options of fsspec.

    Raises:
        OutputError: The URL is invalid.
    """

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
        """Connect to the file system of the output folder."""
        self.url: str = url
        self.fs: Any
        self.path: str
        try:
            self.fs, self.path = url_to_fs(url, **(storage_options or {}))
        except (ValueError, ImportError) as error:
            raise OutputError(f"{url}: cannot be written ({error})") from None
        self.is_local = isinstance(self.fs, LocalFileSystem)
        if self.is_local:
            self.url = self.path  # absolute, because workers may have another working directory

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file in the folder, by file name.

        The dict is empty if the folder does not exist.

        Raises:
            OutputError: The folder cannot be read.
        """
        with self._output_errors():
            self.fs.invalidate_cache()
            if not self.fs.exists(self.path):
                return {}
            if not self.fs.isdir(self.path):
                raise OutputError(f"{self.url}: is a file; name a folder")
            infos = self.fs.ls(self.path, detail=True)
        paths = {info["name"].rstrip("/"): int(info["size"] or 0) for info in infos}
        # Some stores list the folder as an entry of itself.
        sizes = {path.rpartition("/")[2]: size for path, size in paths.items() if path != self.path.rstrip("/")}
        # Hidden files are incomplete, or belong to the desktop.
        return {name: size for name, size in sizes.items() if not name.startswith(".")}

    def read(self, name: str) -> bytes:
        """Return the content of a file in the folder.

        Args:
            name: Name of the file in the folder.

        Raises:
            OutputError: The file cannot be read.
        """
        with self._output_errors():
            return self.fs.cat_file(f"{self.path}/{name}")

    @contextmanager
    def write(self, name: str) -> Generator[Any]:
        """Open a binary stream to write a file of the folder.

        The file appears when the ``with`` block ends without an error.

        On a local disk a temporary file is renamed. Elsewhere a temporary local file is uploaded as one object.

        Args:
            name: Name of the file in the folder.

        Yields:
            The stream, a `HashingStream`.

        Raises:
            OutputError: The file cannot be written.
        """
        if self.is_local:
            with self._output_errors():
                Path(self.path).mkdir(parents=True, exist_ok=True)
                with atomic_write(Path(self.path) / name) as stream:
                    yield HashingStream(stream)
            return
        with tempfile.NamedTemporaryFile(prefix="herdner-") as stream:
            yield HashingStream(stream)
            stream.flush()
            with self._output_errors():
                self.fs.makedirs(self.path, exist_ok=True)
                self.fs.put_file(stream.name, f"{self.path}/{name}")

    def remove_temporary_files(self) -> None:
        """Remove the incomplete files that killed processes have left in the folder."""
        if self.is_local:
            for path in Path(self.path).glob(".[pm]*.part"):
                path.unlink(missing_ok=True)

    @contextmanager
    def _output_errors(self) -> Generator[None]:
        try:
            yield
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(f"{self.url}: cannot be written ({error.strerror or error})") from None


class HashingStream(io.RawIOBase):
    """Writable stream that forwards bytes, counts them and computes their SHA-256.

    Attributes:
        size: Number of bytes so far.
        digest: SHA-256 of the bytes so far.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        """Wrap the stream to which all bytes are forwarded."""
        self.stream, self.size, self.digest = stream, 0, hashlib.sha256()

    def writable(self) -> bool:
        """Return True, because the stream is writable."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes to the wrapped stream, and update their count and checksum.

        Args:
            data: The bytes.

        Returns:
            The number of bytes.
        """
        self.stream.write(data)
        self.digest.update(data)
        n_bytes = memoryview(data).nbytes
        self.size += n_bytes
        return n_bytes

    def tell(self) -> int:
        """Return the number of bytes that have been written so far."""
        return self.size
