"""Download and check of the files of registered corpora."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import platformdirs

from herdner.corpora.download import TIMEOUT, DownloadError, download
from herdner.corpora.registry import Corpus, CorpusError, CorpusFile, info

DownloadProgress = Callable[[str, int, int], object]
"""A function of the file name and the numbers of received and expected bytes."""

_BLOCK = 1 << 16


def checksum(path: str | os.PathLike[str]) -> tuple[int, str]:
    """Return the size in bytes and the SHA-256 checksum of a file or folder.

    The size of a folder is the sum over its files. Its checksum is that of the output of ``sha256sum`` for them: one
    line ``CHECKSUM  PATH`` per file, with paths relative to the folder and sorted by their bytes.

    Args:
        path: The file or folder.

    Returns:
        Number of bytes, and SHA-256 in hexadecimal digits.

    Raises:
        OSError: A file cannot be read.
    """
    path, size, digest = Path(path), 0, hashlib.sha256()
    if path.is_dir():
        files = [(file.relative_to(path).as_posix(), file) for file in path.rglob("*") if file.is_file()]
        for name, file in sorted(files):
            file_size, sha256 = checksum(file)
            size += file_size
            digest.update(f"{sha256}  {name}\n".encode())
    else:
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                size += len(block)
                digest.update(block)
    return size, digest.hexdigest()


def verify(corpus: Corpus, folder: str | os.PathLike[str]) -> Iterator[str]:
    """Yield an error message for each file of a corpus that is missing in a folder or differs from the registry.

    Args:
        corpus: The corpus.
        folder: The folder with its files.

    Yields:
        An error message for each file that is missing or differs.
    """
    yield from filter(None, (_problem(file, Path(folder) / file.name) for file in corpus.files))


def _problem(file: CorpusFile, path: Path) -> str | None:
    try:
        if path.is_file() and path.stat().st_size != file.size:  # cheaper than reading it
            return f"{path}: the file has {path.stat().st_size} bytes, expected {file.size}"
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
    progress: DownloadProgress | None = None,
    timeout: float = TIMEOUT,
) -> Path:
    """Download the files of a corpus into a folder and check them.

    Valid files that exist are kept. The files of a corpus that cannot be downloaded are only checked.

    Args:
        name: Name of the corpus in the registry.
        destination: The folder; by default one in the user's cache.
        registry: Path of a registry file, or the result of `load_registry`; by default herdner's registry.
        progress: Function that is called after each received block.
        timeout: Longest time without data from the server, in seconds.

    Returns:
        The folder.

    Raises:
        CorpusError: The corpus is unknown, or a file is missing, differs or cannot be downloaded.
    """
    corpus = info(name, registry)
    folder = (
        Path(destination) if destination is not None else platformdirs.user_cache_path("herdner") / "corpora" / name
    )
    if corpus.fetch == "by hand":
        for problem in verify(corpus, folder):
            how = " ".join(corpus.instructions.split())
            raise CorpusError(
                f"the corpus {name} must be fetched by hand: {how} Put the files into {folder}. ({problem})"
            )
        return folder
    for file in corpus.files:
        path = folder / file.name
        if file.url is None or _problem(file, path) is None:
            continue
        file_progress = partial(progress, file.name) if progress else None
        try:
            download(file.url, path, file.size, file.sha256, progress=file_progress, timeout=timeout)
        except DownloadError as problem:
            raise CorpusError(f"{name}: {problem}") from None
    return folder
