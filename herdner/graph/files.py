"""Graphs of labels and tables in files: NumPy's .npz, without pickle, read as untrusted.

A graph file is an .npz archive (a ZIP file whose members are stored, not compressed, .npy arrays in C order):

``format``                  int32[1], the version: 1
``sizes``                   int32[V], the number of labels of each variable
``scopes_G``                int32[F, a], for each group G = 0, 1, .. of factors: the variables of each factor
``tables_G``                float64[T, K1, .., Ka], log-potentials, finite or -inf
``table_of_factor_G``       int32[F], which of the T tables each factor uses; may be left out where T is 1 or F
``scale_G``                 float64[F], what its table is multiplied by; may be left out where all are 1

numpy.savez writes such a file from anywhere; `save_graph` from a graph.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph
from herdner.graph.tables import compile_tables

VERSION = 1
# What zipfile and NumPy raise where bytes are not as they should be; an OSError is a place outside the file.
_DAMAGE = (
    ValueError, EOFError, NotImplementedError, RuntimeError, SyntaxError, OSError, TypeError, LookupError,
    OverflowError, struct.error,
)  # fmt: skip
_ARRAYS = {"scopes": "i4", "tables": "f8", "table_of_factor": "i4", "scale": "f8"}


class GraphFileError(ValueError):
    """A file does not hold a graph: what is wrong with it, in one line."""


def save_graph(path: str | os.PathLike[str], graph: FactorGraph) -> None:
    """Writes a graph of labels and tables, whole or not at all. ValueError for any other graph, OSError as of files."""
    compiled = compile_tables(graph)
    arrays: dict[str, Any] = {"format": np.array([VERSION], np.int32), "sizes": compiled.sizes}
    for g, group in enumerate(compiled.factors):
        for name in _ARRAYS:
            arrays[f"{name}_{g}"] = getattr(group, name)
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as stream:
            np.savez(stream, **arrays)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def load_graph(path: str | os.PathLike[str]) -> FactorGraph:
    """Reads a graph file. GraphFileError where it is none, OSError as of files.

    No array is read that is not whole in the file, so that what a file claims cannot take more memory than the file.
    """
    with Path(path).open("rb") as stream:
        try:
            return _graph(_arrays(stream, os.fstat(stream.fileno()).st_size))
        except zipfile.BadZipFile:
            raise GraphFileError(f"{path}: not a graph file: expected .npz as herdner.save_graph writes it") from None
        except _DAMAGE as error:
            raise GraphFileError(f"{path}: not a graph file: {' '.join(str(error).split())}") from None


def _arrays(stream: IO[bytes], file_size: int) -> dict[str, NDArray]:
    arrays: dict[str, NDArray] = {}
    with zipfile.ZipFile(stream) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name in arrays or name == member.filename:
                raise GraphFileError(f"its member {member.filename!r} is no array, or there twice")
            arrays[name] = _array(archive, member, name, file_size)
    return arrays


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, file_size: int) -> NDArray:
    """One member, checked before it is read."""
    base, _, number = name.rpartition("_")
    kind = "i4" if name in ("format", "sizes") else _ARRAYS.get(base if number.isdecimal() else "")
    if kind is None:
        raise GraphFileError(f"it holds an array {name!r}, of which nothing is known")
    if member.compress_type != zipfile.ZIP_STORED or member.file_size > file_size:
        raise GraphFileError(f"its array {name} is compressed; store it plain, as numpy.savez does")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise GraphFileError(f"its array {name} is of an unknown version of .npy")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
        dtype = np.dtype(dtype)
        if fortran and len(shape) > 1:
            raise GraphFileError(f"its array {name} is in Fortran order; store it in C order")
        if dtype.kind != np.dtype(kind).kind or dtype.itemsize not in (4, 8):
            raise GraphFileError(f"its array {name} holds {dtype}, not {np.dtype(kind)}")
        n_bytes = math.prod(shape) * dtype.itemsize
        if any(side < 0 for side in shape) or n_bytes > member.file_size:
            raise GraphFileError(f"its array {name} of shape {shape} is cut off")
        data = stream.read(n_bytes)
        if len(data) < n_bytes:
            raise GraphFileError(f"its array {name} is cut off")
    return np.frombuffer(data, dtype).reshape(shape)


def _graph(arrays: dict[str, NDArray]) -> FactorGraph:
    if "format" not in arrays or arrays["format"].tolist() != [VERSION]:
        raise GraphFileError(f"it has no array format with the number {VERSION}; a later herdner may read it")
    if "sizes" not in arrays:
        raise GraphFileError("it has no array sizes")
    numbers = sorted({int(name.rpartition("_")[2]) for name in arrays if name not in ("format", "sizes")})
    groups = []
    for g in numbers:
        if f"scopes_{g}" not in arrays or f"tables_{g}" not in arrays:
            raise GraphFileError(f"group {g} needs both scopes_{g} and tables_{g}")
        groups.append(TableFactors(*(arrays.get(f"{name}_{g}") for name in _ARRAYS)))  # type: ignore[arg-type]
    return FactorGraph(arrays["sizes"], groups)
