"""Writing files so that a crash never leaves half of one."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[IO[bytes], None, None]:
    """A binary stream whose bytes appear under ``path``, all at once, when the block ends without an error.

    Until then they are in a temporary file in the same folder, which an error removes; what stood under ``path`` stays.
    A link is kept and its target replaced; a device or pipe is written to directly. Raises OSError.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        with part.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # the name must never appear before the bytes
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
