"""Which files a run reads, wherever fsspec finds them."""

# fsspec has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from herdner.corpora.formats import format_of

FORMATS = ("text", "jsonl", "parquet")
# What file systems call the state of a file; the first that there is tells whether a file has changed.
_STAMPS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "updated", "created")


@dataclass(frozen=True)
class File:
    """An input: its address as fsspec takes it, its format, its size in bytes and a stamp that changes with it."""

    path: str
    format: str
    size: int
    stamp: str


def file_system(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of an address, as fsspec has it, and the path there."""
    return url_to_fs(url, **options)


def is_local(fs: Any) -> bool:
    """Whether a file system is that of this machine."""
    return isinstance(fs, LocalFileSystem)


def find_files(
    inputs: Iterable[str], format: str | None = None, storage_options: Mapping[str, Any] | None = None
) -> list[File]:
    """The files behind paths, folders and globs, in the order of the inputs; those of one input are sorted.

    A folder stands for the text, JSONL and Parquet files in it, by their extensions; ``format`` overrules extensions.
    Raises ValueError where there is nothing, or where it cannot be listed.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"input format {format!r}: expected one of {', '.join(FORMATS)}")
    found = [file for where in inputs for file in _found(where, format, storage_options or {})]
    if not found:
        raise ValueError("no input: name files, folders or patterns")
    return found


def _found(where: str, format: str | None, options: Mapping[str, Any]) -> list[File]:
    try:
        fs, path = file_system(where, options)
        infos, chosen = _listed(fs, path, format)
    except FileNotFoundError:
        raise ValueError(f"{where}: no such file") from None
    except Exception as error:  # each file system raises errors of its own
        raise ValueError(f"{where}: cannot be listed ({error or type(error).__name__})") from None
    if not infos:
        raise ValueError(
            f"{where}: {'no file matches' if glob.has_magic(path) else 'no ' + chosen + ' in this folder'}"
        )
    files: list[File] = []
    for info in sorted(infos, key=lambda info: PurePosixPath(info["name"]).parts):
        name = info["name"] if is_local(fs) else fs.unstrip_protocol(info["name"])
        own = format or format_of(name) or "text"
        if own not in FORMATS:
            raise ValueError(f"{name}: {own} is not read on a cluster; expected {', '.join(FORMATS)}")
        stamp = next((str(info[key]) for key in _STAMPS if info.get(key)), "")
        files.append(File(name, own, int(info["size"] or 0), stamp))
    return files


def _listed(fs: Any, path: str, format: str | None) -> tuple[list[dict[str, Any]], str]:
    """The files of a path, glob or folder, and what a folder was searched for."""
    if glob.has_magic(path) and not fs.exists(path):
        return [info for info in fs.glob(path, detail=True).values() if info["type"] == "file"], ""
    if not fs.isdir(path):
        return [fs.info(path)], ""
    infos = fs.find(path, detail=True).values()
    wanted = FORMATS if format is None else (format,)
    return [info for info in infos if format_of(info["name"]) in wanted], " or ".join(wanted) + " file"
