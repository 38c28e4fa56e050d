"""Model files: one zip archive (NumPy's .npz) of plain arrays and a JSON header. Nothing in it is ever executed."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.files import replacing

FORMAT, LAYER_FORMAT = "herdner-model", "herdner-layer"
HOLDS = {FORMAT: "a tagger: open it with herdner.load", LAYER_FORMAT: "a layer: open it with SkipChainLayer.load"}
FORMAT_VERSION = 1
READABLE_SINCE = {1: "0.1"}  # format version -> first herdner that reads it
LARGEST = 4 << 30  # bytes that a model may unpack to
_HEADER = "header.json"
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # equal models are equal files


class ModelError(ValueError):
    """A model that cannot be found or read; the message says why."""


@dataclass(frozen=True)
class ModelFile:
    """Header (JSON values) and arrays by name."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write_model(
    where: str | os.PathLike[str] | IO[bytes],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    format: str = FORMAT,
) -> None:
    """Write a file of one of the formats of `HOLDS`, to a stream or atomically to a path: whatever happens, that holds
    the old file or the whole new one.
    """
    head = {"format": format, "format_version": FORMAT_VERSION, "needs": READABLE_SINCE[FORMAT_VERSION], **header}
    head["arrays"] = sorted(arrays)
    target = replacing(where) if isinstance(where, str | os.PathLike) else nullcontext(where)
    with target as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        _add(archive, _HEADER, json.dumps(head, indent=1, ensure_ascii=False, sort_keys=True).encode())
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            _add(archive, f"{name}.npy", buffer.getvalue())


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _FIRST_DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


def read_model(where: str | os.PathLike[str] | IO[bytes], format: str = FORMAT) -> ModelFile:
    """Read a file of this format, or a stream of its bytes; `ModelError` where it is missing, of another one, damaged
    or too new.
    """
    path = name_of(where)
    try:
        with zipfile.ZipFile(where) as archive:
            return _read(archive, path, format)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such model file") from None
    except IsADirectoryError:
        raise ModelError(f"{path}: is a directory, not a model file") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{path}: not a herdner model, or damaged ({error}); train or copy it again") from None


def name_of(where: str | os.PathLike[str] | IO[bytes]) -> str:
    """What messages call a file or stream."""
    return os.fspath(where) if isinstance(where, str | os.PathLike) else "the model's bytes"


def _read(archive: zipfile.ZipFile, path: str, format: str) -> ModelFile:
    members = {member.filename: member for member in archive.infolist()}
    if _HEADER not in members:
        raise ModelError(f"{path}: a zip archive, but not a herdner model ({_HEADER} is missing)")
    unpacked = sum(member.file_size for member in members.values())
    if unpacked > LARGEST:
        raise ModelError(f"{path}: would unpack to {unpacked >> 20} MiB; a model has at most {LARGEST >> 20} MiB")
    header = _read_header(_bytes(archive, members[_HEADER], path), path, format)
    arrays = {
        name.removesuffix(".npy"): _array(_bytes(archive, member, path), f"{path}: {name}")
        for name, member in members.items()
        if name.endswith(".npy")
    }
    if sorted(arrays) != header.get("arrays"):
        raise ModelError(
            f"{path}: damaged model (its arrays are not those that its header names); train or copy it again"
        )
    return ModelFile(header, arrays)


def _read_header(data: bytes, path: str, format: str) -> dict[str, Any]:
    try:
        header = json.loads(data)
    except (ValueError, RecursionError):
        raise ModelError(f"{path}: not a herdner model, or damaged (its header is not JSON)") from None
    if not isinstance(header, dict) or header.get("format") not in tuple(HOLDS):
        raise ModelError(f"{path}: not a herdner model (its header names no {format} format)")
    if header["format"] != format:
        raise ModelError(f"{path}: holds {HOLDS[header['format']]}")
    version = header.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise ModelError(f"{path}: damaged model (format version {version!r})")
    if version > FORMAT_VERSION:
        needs = header.get("needs", "newer")
        raise ModelError(f"{path}: model format {version} needs herdner {needs} or later: pip install -U herdner")
    return header


def _bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str) -> bytes:
    """A member's content, at most as long as the archive's directory says; zipfile checks its CRC-32."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 0x1:
        raise ModelError(f"{path}: {member.filename} is packed in a way that models are not")
    try:
        return archive.read(member)
    except Exception as error:  # zlib.error, struct.error, ...: all of them mean the same
        raise ModelError(f"{path}: damaged model ({member.filename}: {error}); train or copy it again") from None


def _array(data: bytes, place: str) -> NDArray[Any]:
    """An array that owns no more than ``data``: the declared shape is compared with the bytes before anything is
    allocated.
    """
    stream = io.BytesIO(data)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("unknown version of the array format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=10_000)
    except (ValueError, SyntaxError, RecursionError) as error:
        raise ModelError(f"{place}: damaged array ({error})") from None
    if dtype.hasobject or fortran or dtype.kind not in "uif":
        raise ModelError(f"{place}: an array of {dtype} has no place in a model")
    n_items = 1
    for extent in shape:
        n_items *= int(extent)
    if n_items * dtype.itemsize != len(data) - stream.tell():
        raise ModelError(f"{place}: damaged array (its shape {shape} does not fit its {len(data)} bytes)")
    return np.frombuffer(data, dtype, n_items, stream.tell()).reshape(shape)
