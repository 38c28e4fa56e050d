"""Reading and writing of NumPy's .npz archives from untrusted sources.

No content is executed, and no array takes more memory than its bytes in the archive.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.files import atomic_write

Where = str | os.PathLike[str] | IO[bytes]
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # fixed, so that equal contents give equal files
# An archive may unpack to at most _MIN_LIMIT bytes plus `MAX_RATIO` times its size, or less if a reader says so.
MAX_RATIO, _MIN_LIMIT = 100, 1 << 24
_MAX_TEXT = 1 << 22  # bytes of a text member; as parsed JSON it may take thirty times this memory


class NpzError(ValueError):
    """Error: a file is not an .npz archive, is damaged, or contains unsupported members.

    The message is one line.
    """


def write_npz(
    where: Where,
    arrays: Mapping[str, NDArray[Any]],
    texts: Mapping[str, bytes],
    *,
    largest: int | None = None,
    ratio: int = MAX_RATIO,
) -> None:
    """Write arrays and further members, which are byte strings, to a compressed .npz archive.

    The archive is accepted by `read_arrays` with the same limits: if it would unpack to too much for its size, members
    that compress by more than ``ratio`` are stored uncompressed.

    Args:
        where: A path, which is replaced atomically, or a binary stream.
        arrays: Arrays by name.
        texts: Other members by name; they precede the arrays.
        largest: Number of bytes to which the archive may unpack; None: any number.
        ratio: Bytes to which the archive may unpack for each of its own.

    Raises:
        ValueError: A member in ``texts`` is longer than `read_member` accepts, or the archive would unpack to more than
            ``largest`` bytes.
    """
    for name, data in texts.items():
        if len(data) > _MAX_TEXT:
            raise ValueError(f"the member {name} has {len(data) >> 20} MiB; expected at most {_MAX_TEXT >> 20} MiB")
    packed, members = _archive(arrays, texts, set())
    size = sum(member.file_size for member in members)
    if largest is not None and size > largest:
        raise ValueError(f"the file would unpack to {size >> 20} MiB; expected at most {largest >> 20} MiB")
    if size > _MIN_LIMIT + ratio * len(packed):
        sparse = {member.filename for member in members if member.file_size > ratio * member.compress_size}
        packed, _ = _archive(arrays, texts, sparse)
    target = atomic_write(where) if isinstance(where, str | os.PathLike) else nullcontext(where)
    with target as file:
        file.write(packed)


def _archive(
    arrays: Mapping[str, NDArray[Any]], texts: Mapping[str, bytes], stored: Collection[str]
) -> tuple[bytes, list[zipfile.ZipInfo]]:
    """Return a zip archive and the list of its members; the members named in ``stored`` are not compressed."""
    buffer = io.BytesIO()
    contents: dict[str, bytes | NDArray[Any]] = {**texts, **{f"{name}.npy": array for name, array in arrays.items()}}
    with zipfile.ZipFile(buffer, "w", compresslevel=9) as archive:
        for name, content in contents.items():
            info = zipfile.ZipInfo(name, _FIRST_DATE)
            info.compress_type = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content if isinstance(content, bytes) else _npy(content))
    return buffer.getvalue(), archive.infolist()


def _npy(array: NDArray[Any]) -> bytes:
    """Return the bytes of a .npy file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def read_member(where: Where, name: str, largest: int) -> bytes:
    """Read a member that is not an array from an .npz archive, and return its bytes.

    Args:
        where: A path or binary stream.
        name: Name of the member.
        largest: Number of bytes to which the archive may unpack; it is checked before reading.

    Returns:
        The content of the member.

    Raises:
        NpzError: The archive is damaged or has no such member.
        OSError: The file cannot be read.
    """
    with _open_archive(where) as archive:
        if name not in archive.namelist():
            raise NpzError(f"{name} is missing")
        _check_size(archive, largest, MAX_RATIO)
        member = archive.getinfo(name)
        if member.file_size > _MAX_TEXT:
            size, most = member.file_size >> 20, _MAX_TEXT >> 20
            raise NpzError(f"the member {name} would unpack to {size} MiB; expected at most {most} MiB")
        return _bytes(archive, member, True)


def read_arrays(
    where: Where,
    *,
    texts: Collection[str] = (),
    largest: int | None = None,
    ratio: int = MAX_RATIO,
    packed: bool = True,
) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz archive.

    Args:
        where: A path or binary stream.
        texts: Names of other members, which are ignored.
        largest: Number of bytes to which the archive may unpack; it is checked before reading. None: the limit depends
            on the size of the archive.
        ratio: Bytes to which the archive may unpack for each of its own.
        packed: Accept compressed arrays. If False, reading takes no more memory than the size of the file.

    Returns:
        Numeric arrays in C order, by name.

    Raises:
        NpzError: The archive is damaged or has other members.
        OSError: The file cannot be read.
    """
    arrays: dict[str, NDArray[Any]] = {}
    with _open_archive(where) as archive:
        _check_size(archive, largest, ratio)
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename and name in texts:
                continue
            if name in arrays or name == member.filename:
                raise NpzError(f"the member {member.filename!r} of the archive is not an array, or occurs twice")
            arrays[name] = _array(_bytes(archive, member, packed), f"its array {name}")
    return arrays


@contextmanager
def _open_archive(where: Where) -> Generator[zipfile.ZipFile, None, None]:
    with Path(where).open("rb") if isinstance(where, str | os.PathLike) else nullcontext(where) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                yield archive
        except NpzError:
            raise
        except Exception as error:  # zipfile, zlib and NumPy raise many types for damaged bytes
            raise NpzError(" ".join(str(error).split()) or type(error).__name__) from None


def _check_size(archive: zipfile.ZipFile, largest: int | None, ratio: int) -> None:
    """Raise `NpzError` if an archive would unpack to more than ``largest`` bytes or to far more than its own size."""
    size, most = sum(member.file_size for member in archive.infolist()), _MIN_LIMIT
    if archive.fp is not None:
        most += ratio * archive.fp.seek(0, os.SEEK_END)
    most = most if largest is None else min(most, largest)
    if size > most:
        raise NpzError(f"the archive would unpack to {size >> 20} MiB; expected at most {most >> 20} MiB")


def _bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, packed: bool) -> bytes:
    """Return the content of a member of an archive.

    The module zipfile checks the length and the CRC-32.
    """
    name = member.filename
    if not packed and member.compress_type != zipfile.ZIP_STORED:
        raise NpzError(f"the member {name} of the archive is compressed; store it uncompressed, as numpy.savez does")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 0x1:
        raise NpzError(f"the member {name} is encrypted, or compressed by another method than deflate; save it again")
    return archive.read(member)


def _array(data: bytes, what: str) -> NDArray[Any]:
    """Convert the bytes of a .npy file to an array, after checking that the shape fits the number of bytes."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise NpzError(f"{what} has the .npy format version {version[0]}.{version[1]}; expected version 1.0 or 2.0")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream, max_header_size=10_000)
    if dtype.hasobject or dtype.kind not in "uif":
        raise NpzError(f"{what} has the type {dtype}; expected numbers")
    if fortran and len(shape) > 1:
        raise NpzError(f"{what} is in Fortran order; store it in C order")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise NpzError(f"{what} has {len(data)} bytes, which do not fit the shape {shape}; the array is damaged")
    return np.reshape(np.frombuffer(data, dtype, math.prod(shape), stream.tell()), shape)
