"""Download of a file over http or https with a check of its size and SHA-256 checksum.

pooch is not used because it checks a file only after the whole download and follows redirects from https to http.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib import error, request
from urllib.parse import urlsplit

from herdner.base.files import atomic_write
from herdner.base.messages import one_line

MAX_REDIRECTS = 5
TIMEOUT = 30.0  # seconds
_BLOCK = 1 << 16

Progress = Callable[[int, int], object]
"""A function of the numbers of received and expected bytes."""


class DownloadError(ValueError):
    """Error: a download failed, and no file was kept.

    The message is one line.
    """


def check_url(url: str, after: str | None = None) -> None:
    """Check that the address of a download uses http or https, and that no redirect leads from https to http.

    Args:
        url: The address.
        after: The address that redirected to ``url``; None if ``url`` is the first one.

    Raises:
        ValueError: The address has another scheme than http or https, or is reached by a redirect from https to http.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an http or https address")
    if after is not None and urlsplit(after).scheme == "https" and parts.scheme != "https":
        raise ValueError(f"the https address {after!r} redirects to {url!r}, which does not use https")


def download(
    url: str, path: Path, size: int, sha256: str, *, progress: Progress | None = None, timeout: float = TIMEOUT
) -> None:
    """Download a file to ``path``. The file appears only after its size and checksum have been checked.

    An interrupted download is removed, not resumed.

    Args:
        url: Address of the file.
        path: The file to create or replace.
        size: Expected number of bytes.
        sha256: Expected checksum, 64 hexadecimal digits.
        progress: Function that is called after each received block, with the numbers of received and expected bytes.
        timeout: Longest time without data from the server, in seconds.

    Raises:
        DownloadError: The download failed or the file is not the expected one.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as stream, closing(_blocks(url, size, timeout)) as blocks:
            _store(stream, blocks, url, size, sha256, progress)
    except OSError as problem:  # an error of the disk, because network errors are DownloadErrors
        raise DownloadError(f"cannot write {path}: {problem.strerror or problem}; the download was deleted") from None


def _store(
    stream: IO[bytes], blocks: Iterator[bytes], url: str, size: int, sha256: str, progress: Progress | None
) -> None:
    done, digest = 0, hashlib.sha256()
    for block in blocks:
        done += len(block)
        if done > size:
            raise DownloadError(f"{url}: the file is longer than the expected {size} bytes; the download was deleted")
        stream.write(block)
        digest.update(block)
        if progress:
            progress(done, size)
    if done < size:
        raise DownloadError(f"{url}: the download ended after {done} of {size} bytes and was deleted; try again")
    if digest.hexdigest() != sha256:
        problem = f"the SHA-256 is {digest.hexdigest()}, expected {sha256}"
        raise DownloadError(f"{url}: {problem}; the download was deleted; try again")


def _blocks(url: str, size: int, timeout: float) -> Generator[bytes, None, None]:
    """Yield the blocks of bytes of an HTTP response. Raise `DownloadError` for network errors."""
    try:
        with _opener().open(request.Request(url, headers={"User-Agent": "herdner"}), timeout=timeout) as response:
            declared = response.headers.get("Content-Length", "")
            if declared.isdecimal() and int(declared) != size:
                sizes = f"{int(declared)} bytes, expected {size}"
                raise DownloadError(f"{url}: the server announces {sizes}; nothing was downloaded")
            while block := response.read(_BLOCK):
                yield block
    except DownloadError:  # a refused redirect, or another size
        raise
    except error.HTTPError as problem:
        problem.close()
        answer = one_line(f"{problem.code} {problem.reason}")
        raise DownloadError(f"{url}: the server answered {answer}; check the address, or try again later") from None
    except TimeoutError:
        raise DownloadError(f"{url}: the server sent nothing for {timeout:g} seconds; try again") from None
    except error.URLError as problem:
        if isinstance(problem.reason, TimeoutError):
            raise DownloadError(f"{url}: no answer within {timeout:g} seconds; try again") from None
        raise DownloadError(f"{url}: no connection ({one_line(problem.reason)}); check the network") from None
    except (HTTPException, OSError, ValueError) as problem:
        what = f"the connection broke ({one_line(problem)}) and the download was deleted"
        raise DownloadError(f"{url}: {what}; try again") from None


class _Redirects(request.HTTPRedirectHandler):
    max_redirections = MAX_REDIRECTS

    def redirect_request(
        self, req: request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> request.Request | None:
        try:
            check_url(newurl, after=req.full_url)
        except ValueError as problem:
            raise DownloadError(f"{req.full_url}: the redirect was refused, because {problem}") from None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> request.OpenerDirector:
    # urllib's default opener also opens file:, ftp: and data: addresses.
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.UnknownHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPErrorProcessor,
        _Redirects,
    ):
        opener.add_handler(handler())
    return opener
