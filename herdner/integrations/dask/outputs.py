"""Output folders: a name appears there when all its bytes do."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from herdner.base.files import atomic_write
from herdner.integrations.dask.files import file_system, is_local


class OutputError(OSError):
    """The output cannot be written; there is no use in going on."""


class Folder:
    """A folder of files without folders, local or wherever fsspec can write."""

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self.url = url
        try:
            self.fs, self.path = file_system(url, storage_options or {})
        except (ValueError, ImportError) as error:
            raise OutputError(f"{url}: cannot be written ({error})") from None
        self.is_local = is_local(self.fs)
        if self.is_local:
            self.url = self.path  # absolute: a worker need not stand in the same folder

    def sizes(self) -> dict[str, int]:
        """The size of each file by name; nothing where there is no folder. Raises OutputError."""
        with self._errors():
            self.fs.invalidate_cache()
            if not self.fs.exists(self.path):
                return {}
            if not self.fs.isdir(self.path):
                raise OutputError(f"{self.url}: is a file; name a folder")
            infos = self.fs.ls(self.path, detail=True)
        names = {info["name"].rstrip("/"): int(info["size"] or 0) for info in infos}
        # Some stores list the folder in itself. What begins with a dot is half-written, or the desktop's.
        found = {name.rpartition("/")[2]: size for name, size in names.items() if name != self.path.rstrip("/")}
        return {name: size for name, size in found.items() if not name.startswith(".")}

    def read(self, name: str) -> bytes:
        with self._errors():
            return self.fs.cat_file(f"{self.path}/{name}")

    @contextmanager
    def writing(self, name: str) -> Generator[Any]:
        """A stream whose bytes appear under ``name``, all at once, when the block ends without an error; a `Hashing`.

        On a disk that is a renamed file; elsewhere a local file that is put there as one object. Raises OutputError.
        """
        if self.is_local:
            with self._errors():
                Path(self.path).mkdir(parents=True, exist_ok=True)
                with atomic_write(Path(self.path) / name) as stream:
                    yield Hashing(stream)
            return
        with tempfile.NamedTemporaryFile(prefix="herdner-") as stream:
            yield Hashing(stream)
            stream.flush()
            with self._errors():
                self.fs.makedirs(self.path, exist_ok=True)
                self.fs.put_file(stream.name, f"{self.path}/{name}")

    def sweep(self) -> None:
        """Remove what processes that were killed have left half-written on a disk."""
        if self.is_local:
            for path in Path(self.path).glob(".[pm]*.part"):
                path.unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(f"{self.url}: cannot be written ({error.strerror or error})") from None


class Hashing(io.RawIOBase):
    """Passes bytes on, and knows how many there were and their SHA-256."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.size, self.digest = stream, 0, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.stream.write(data)
        self.digest.update(data)
        self.size += memoryview(data).nbytes
        return memoryview(data).nbytes

    def tell(self) -> int:
        return self.size
