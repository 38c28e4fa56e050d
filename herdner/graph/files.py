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

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.files import atomic_write
from herdner.base.npz import NpzError, read_arrays
from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph
from herdner.graph.tables import compile_tables

VERSION = 1
_ARRAYS = {"scopes": "i4", "tables": "f8", "table_of_factor": "i4", "scale": "f8"}


class GraphFileError(ValueError):
    """A file does not hold a graph: what is wrong with it, in one line."""


def save_graph(path: str | os.PathLike[str], graph: FactorGraph) -> None:
    """Writes a graph of labels and tables, whole or not at all.

    Raises:
        ValueError: The graph has other variables or factors.
        OSError: The file cannot be written.
    """
    compiled = compile_tables(graph)
    arrays: dict[str, Any] = {"format": np.array([VERSION], np.int32), "sizes": compiled.sizes}
    for g, group in enumerate(compiled.factors):
        for name in _ARRAYS:
            arrays[f"{name}_{g}"] = getattr(group, name)
    with atomic_write(path) as stream:
        np.savez(stream, **arrays)


def load_graph(path: str | os.PathLike[str]) -> FactorGraph:
    """Reads a graph file.

    No array is read that is not whole in the file, so that what a file claims cannot take more memory than the file.

    Raises:
        GraphFileError: The file is no graph file.
        OSError: The file cannot be read.
    """
    try:
        return _graph(read_arrays(path, packed=False))
    except NpzError as error:
        mend = "expected .npz as herdner.save_graph writes it"
        raise GraphFileError(f"{path}: not a graph file: {error}; {mend}") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise GraphFileError(f"{path}: not a graph file: {' '.join(str(error).split())}") from None


def _check_kind(name: str, array: NDArray[Any]) -> None:
    base, _, number = name.rpartition("_")
    kind = "i4" if name in ("format", "sizes") else _ARRAYS.get(base if number.isdecimal() else "")
    if kind is None:
        raise GraphFileError(f"it holds an array {name!r}, of which nothing is known")
    if array.dtype.kind != np.dtype(kind).kind or array.dtype.itemsize not in (4, 8):
        raise GraphFileError(f"its array {name} holds {array.dtype}, not {np.dtype(kind)}")


def _graph(arrays: dict[str, NDArray[Any]]) -> FactorGraph:
    for name, array in arrays.items():
        _check_kind(name, array)
    if "format" not in arrays or arrays["format"].tolist() != [VERSION]:
        raise GraphFileError(f"it has no array format with the number {VERSION}; a later herdner may read it")
    if "sizes" not in arrays:
        raise GraphFileError("it has no array sizes")
    numbers = sorted({int(name.rpartition("_")[2]) for name in arrays if name not in ("format", "sizes")})
    groups: list[TableFactors] = []
    for g in numbers:
        if f"scopes_{g}" not in arrays or f"tables_{g}" not in arrays:
            raise GraphFileError(f"group {g} needs both scopes_{g} and tables_{g}")
        known = {name: arrays[key] for name in _ARRAYS if (key := f"{name}_{g}") in arrays}
        groups.append(TableFactors(**known))
    return FactorGraph(arrays["sizes"], groups)
