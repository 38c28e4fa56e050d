"""Writing files so that a crash never leaves half of one."""

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
from functools import lru_cache
from pathlib import Path
from typing import IO

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_PART = re.compile(r"\..+\.\d+-\d+\.part", re.DOTALL | re.ASCII)  # as `replacing` names them


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[IO[bytes], None, None]:
    """A binary stream whose bytes appear under ``path``, all at once, when the block ends without an error.

    Until then they are in a hidden file in the same folder, which an error removes; what stood under ``path`` stays.
    What a process left that was killed, the next one removes that begins to write into the folder. A link is kept and
    its target replaced, with its mode and owner; other hard links to it keep the old content. A device or pipe is
    written to directly. Raises OSError.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        with _of(path, path), path.open("wb") as stream:
            yield stream
        return
    _remove_abandoned(path.parent, os.getpid())
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    with _of(path, part):
        try:
            with part.open("wb") as stream:
                _claim(stream)
                yield stream
                stream.flush()
                os.fsync(stream.fileno())  # the name must never appear before the bytes
                _be_like(path, part)
                if sys.platform != "win32":
                    part.replace(path)  # while it is claimed
            if sys.platform == "win32":
                part.replace(path)  # where no open file can be renamed
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def _of(path: Path, part: Path) -> Generator[None, None, None]:
    """What fails with the file that is written, ``part``, is told of the one that was asked for."""
    try:
        yield
    except OSError as error:
        unnamed = error.errno in _FULL and error.filename is None  # a write does not say of which file
        if unnamed or error.filename == str(part):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _be_like(path: Path, part: Path) -> None:
    """The new file has the mode of the old one and, where that is allowed, its owner."""
    with suppress(FileNotFoundError):
        old = path.stat()
        if hasattr(os, "chown"):
            with suppress(PermissionError):
                os.chown(part, old.st_uid, old.st_gid)
        part.chmod(stat.S_IMODE(old.st_mode))


def _claim(stream: IO[bytes]) -> bool:
    """Whether the file is locked for this process now; locks end with their processes, whatever ends those."""
    if sys.platform == "win32":
        return True  # an open file cannot be removed there
    import fcntl

    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@lru_cache(maxsize=1024)
def _remove_abandoned(folder: Path, _process: int) -> None:
    """Removes what processes left that were killed while they wrote into a folder; once in a process, as a folder of
    very many files takes its time.
    """
    for part in folder.iterdir() if folder.is_dir() else ():
        if _PART.fullmatch(part.name):
            with suppress(OSError), part.open("r+b") as stream:
                now = os.fstat(stream.fileno())  # one that is empty may have been made just now, and not be locked yet
                if (now.st_size or now.st_mtime < time.time() - 60) and _claim(stream):
                    part.unlink()
