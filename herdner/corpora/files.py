"""The files of registered corpora on the disk: fetched, and checked against their sizes and checksums."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import platformdirs

from herdner.corpora.download import TIMEOUT, DownloadError, download
from herdner.corpora.registry import Corpus, CorpusError, CorpusFile, info

Progress = Callable[[str, int, int], object]

_BLOCK = 1 << 16


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
