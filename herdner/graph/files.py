"""Graphs of discrete variables in NumPy's .npz files, without pickle; files are treated as untrusted.

A graph file is an .npz archive: a ZIP file whose uncompressed members are .npy arrays in C order. `save_graph` writes
it from a graph, and `numpy.savez` writes it from arrays.

``format``                  int32[1], the version, 1
``sizes``                   int32[V], the number of states of each variable
``scopes_G``                int32[F, a], the variables of each factor, for each group of factors G = 0, 1, ..
``tables_G``                float64[T, K1, .., Ka], log-potentials, finite or -inf
``table_of_factor_G``       int32[F], the table of each factor; optional if T is 1 or F
``scale_G``                 float64[F], the multiplier of each factor's table; optional if all are 1
``names``                   uint8[..], the UTF-8 bytes of the variables' names, separated by zero bytes; optional
``shape``                   int32[..], the shape of a grid; optional
``observed``                int32[.., 2], index and state of each observed cell of a grid; optional
"""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.files import atomic_write
from herdner.base.npz import NpzError, read_arrays
from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph
from herdner.graph.tables import compile_tables

VERSION = 1
_WHOLE = {"format": "i4", "sizes": "i4", "shape": "i4", "observed": "i4", "names": "u1"}  # arrays of the whole graph
_ARRAYS = {"scopes": "i4", "tables": "f8", "table_of_factor": "i4", "scale": "f8"}


class GraphFileError(ValueError):
    """Error: a file does not contain a valid graph. The message names the fault in one line."""


def _has_uai_name(path: str | os.PathLike[str]) -> bool:
    return re.search(r"\.uai(\.(gz|bz2|xz|zst|zip))?$", os.fspath(path), re.IGNORECASE) is not None


def save_graph(path: str | os.PathLike[str], graph: FactorGraph) -> None:
    """Write a graph of discrete variables to a file; if an error occurs, an existing file remains unchanged.

    Args:
        path: Path of the file, usually with the extension ``.npz``.
        graph: A graph of `Discrete` variables and `TableFactors`.

    Raises:
        ValueError: The graph has other domains or factors, a name contains a zero byte, or the extension is ``.uai``.
        OSError: The file cannot be written.
    """
    if _has_uai_name(path):
        raise ValueError(
            f"{os.fspath(path)}: save_graph writes .npz files; use herdner.graph.uai_files.write_uai for .uai files"
        )
    compiled = compile_tables(graph)
    arrays: dict[str, Any] = {"format": np.array([VERSION], np.int32), "sizes": compiled.sizes}
    if graph.shape is not None:
        arrays["shape"] = np.array(graph.shape, np.int32)
    if graph.observed:
        arrays["observed"] = np.array(list(graph.observed.items()), np.int32)
    if graph.names is not None:
        if any("\0" in name for name in graph.names):
            raise ValueError("names of variables in a graph file must not contain zero bytes")
        arrays["names"] = np.frombuffer("\0".join(graph.names).encode(), np.uint8)
    for g, group in enumerate(compiled.factors):
        for name in _ARRAYS:
            arrays[f"{name}_{g}"] = getattr(group, name)
    with atomic_write(path) as stream:
        np.savez(stream, **arrays)


def load_graph(path: str | os.PathLike[str]) -> FactorGraph:
    """Read a graph from a file that `save_graph` has written, or from a file of the UAI competitions.

    An array is read only if the file holds all its elements, so a file cannot request more memory than its size.

    Args:
        path: Path of the file. Files with the extension ``.uai``, which may be compressed, are read by `read_uai`.

    Returns:
        The graph.

    Raises:
        GraphFileError: The file is not a graph file.
        OSError: The file cannot be read.
    """
    if _has_uai_name(path):
        from herdner.graph.uai_files import read_uai  # it imports this module

        return read_uai(path)
    try:
        return _graph(read_arrays(path, packed=False))
    except NpzError as error:
        raise GraphFileError(
            f"{path}: not a graph file: {error}; expected an .npz file that herdner.save_graph wrote, or a .uai file"
        ) from None
    except (ValueError, TypeError, OverflowError) as error:
        raise GraphFileError(f"{path}: not a graph file: {' '.join(str(error).split())}") from None


def _check_type(name: str, array: NDArray[Any]) -> None:
    base, _, number = name.rpartition("_")
    dtype = _WHOLE.get(name) or _ARRAYS.get(base if number.isdecimal() else "")
    if dtype is None:
        raise GraphFileError(f"unknown array {name!r}")
    sizes = (1,) if dtype == "u1" else (4, 8)
    if array.dtype.kind != np.dtype(dtype).kind or array.dtype.itemsize not in sizes:
        raise GraphFileError(f"array {name} must hold {np.dtype(dtype)}, not {array.dtype}")


def _graph(arrays: dict[str, NDArray[Any]]) -> FactorGraph:
    for name, array in arrays.items():
        _check_type(name, array)
    version = arrays["format"].tolist() if "format" in arrays else None
    if version != [VERSION]:
        raise GraphFileError(
            f"array 'format' must hold the version {VERSION}, got {version}; if a later version of herdner wrote this"
            " file, update herdner"
        )
    if "sizes" not in arrays:
        raise GraphFileError("array sizes is missing")
    indices = sorted({int(name.rpartition("_")[2]) for name in arrays if name not in _WHOLE})
    groups: list[TableFactors] = []
    for g in indices:
        if f"scopes_{g}" not in arrays or f"tables_{g}" not in arrays:
            raise GraphFileError(f"factor group {g} needs both arrays scopes_{g} and tables_{g}; one is missing")
        groups.append(TableFactors(**{name: arrays[key] for name in _ARRAYS if (key := f"{name}_{g}") in arrays}))
    names = arrays["names"].tobytes().decode().split("\0") if "names" in arrays else None
    if names == [""] and not arrays["sizes"].size:
        names = []
    shape = arrays["shape"].ravel().tolist() if "shape" in arrays else None
    observed = None
    if "observed" in arrays:
        pairs = arrays["observed"]
        if pairs.ndim != 2 or pairs.shape[1] != 2 or ((pairs[:, 1] < 0) | (pairs[:, 1] > 65_535)).any():
            raise GraphFileError("array observed must hold pairs of a cell and its state, from 0 to 65535")
        observed = dict(pairs.tolist())
    return FactorGraph(arrays["sizes"], groups, names=names, shape=shape, observed=observed)
