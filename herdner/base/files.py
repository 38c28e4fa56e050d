"""Atomic replacement of files."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import IO

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_PART = re.compile(r"\..+\.\d+-\d+\.part", re.DOTALL | re.ASCII)  # names of temporary files


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: int | None = None) -> Generator[IO[bytes], None, None]:
    """Open a temporary file that replaces ``path`` when the ``with`` block ends without an error.

    Until then the bytes are in a hidden file in the same folder, and ``path`` keeps its content; an error removes the
    hidden file. Hidden files of killed processes are removed by the next process that writes into the folder. If
    ``path`` is a symbolic link, its target is replaced; the new file has the mode and owner of the old one. Other hard
    links to the old file keep its content. A device or pipe is written to directly.

    Args:
        path: The file to replace or create.
        mode: Permissions of the file from its first byte on; None: those of the old file, or the default.

    Yields:
        A binary stream.

    Raises:
        OSError: The file cannot be written; the error names ``path``.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        with _errors_for(path, path), path.open("wb") as stream:
            yield stream
        return
    _remove_abandoned(path.parent, os.getpid())
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    with _errors_for(path, part):
        try:
            opener = None if mode is None else partial(os.open, mode=mode)
            with open(part, "wb", opener=opener) as stream:  # Path.open has no opener
                lock_file(stream)
                yield stream
                stream.flush()
                os.fsync(stream.fileno())  # the content must be on disk before the file is renamed
                _copy_mode_and_owner(path, part, mode)
                if sys.platform != "win32":
                    part.replace(path)  # while it is locked
            if sys.platform == "win32":
                part.replace(path)  # Windows cannot rename an open file
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def _errors_for(path: Path, part: Path) -> Generator[None, None, None]:
    """Replace the temporary file name ``part`` by ``path`` in each `OSError` that the ``with`` block raises."""
    try:
        yield
    except OSError as error:
        is_unnamed = error.errno in _FULL and error.filename is None  # errors of write have no file name
        if is_unnamed or error.filename == str(part):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _copy_mode_and_owner(path: Path, part: Path, mode: int | None) -> None:
    """Copy the owner of ``path`` to ``part`` if permitted, and set the permissions to ``mode`` or those of ``path``."""
    with suppress(FileNotFoundError):
        old = path.stat()
        if hasattr(os, "chown"):
            with suppress(PermissionError):
                os.chown(part, old.st_uid, old.st_gid)
        part.chmod(stat.S_IMODE(old.st_mode) if mode is None else mode)


def lock_file(stream: IO[bytes]) -> bool:
    """Try to lock a file, without waiting for another lock to be released. Closing the file releases the lock.

    Args:
        stream: The open file.

    Returns:
        False if another process or another open file holds the lock. Always True on Windows.
    """
    if sys.platform == "win32":
        return True  # not needed, because Windows does not remove open files
    import fcntl

    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@lru_cache(maxsize=1024)
def _remove_abandoned(folder: Path, _process: int) -> None:
    """Delete the temporary files that killed processes left in a folder.

    This is done once per process, because listing a folder may be slow.
    """
    for part in folder.iterdir() if folder.is_dir() else ():
        if _PART.fullmatch(part.name):
            with suppress(OSError), part.open("r+b") as stream:
                now = os.fstat(stream.fileno())  # an empty file may be new and not yet locked
                if (now.st_size or now.st_mtime < time.time() - 60) and lock_file(stream):
                    part.unlink()
