"""Model files: zip archives (NumPy's .npz) of plain arrays and a JSON header. Reading them executes no code."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from herdner.base.npz import MAX_RATIO, NpzError, Where, read_arrays, read_member, write_npz

if TYPE_CHECKING:
    from importlib.abc import Traversable

FORMAT, LAYER_FORMAT = "herdner-model", "herdner-layer"
LOADERS = {FORMAT: "a tagger: open it with herdner.load", LAYER_FORMAT: "a layer: open it with SkipChainLayer.load"}
FORMAT_VERSION = 1
READABLE_SINCE = {1: "0.1"}  # from format version to the first version of herdner that reads it
LARGEST = 4 << 30  # largest size of an unpacked model, in bytes
# Largest ratio of the unpacked size to the size of the file. It is 1.4 to 2 for trained taggers; layers may be zeros.
_RATIOS = {FORMAT: 10, LAYER_FORMAT: MAX_RATIO}
SUFFIX = ".herdner"
LARGEST_WEIGHT = 1e100  # no sum of such weights overflows
_HEADER = "header.json"


class ModelError(ValueError):
    """Error: a model is missing or cannot be read."""


@dataclass(frozen=True)
class ModelFile:
    """Contents of a model file: a header (a dict of JSON values) and named arrays."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def shipped_models() -> dict[str, Traversable]:
    """Return the models that are installed with herdner, as a dict from name to file."""
    folder = importlib.resources.files("herdner") / "data"
    return {file.name.removesuffix(SUFFIX): file for file in folder.iterdir() if file.name.endswith(SUFFIX)}


def write_model(
    where: Where, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], format: str = FORMAT
) -> None:
    """Write the header and the arrays of a model to a stream or a file.

    A file is written atomically.

    Args:
        where: Path or binary stream.
        header: JSON values.
        arrays: Arrays by name.
        format: One of the formats of ``LOADERS``.

    Raises:
        ValueError: The model is larger than `read_model` accepts.
    """
    head = {"format": format, "format_version": FORMAT_VERSION, "needs": READABLE_SINCE[FORMAT_VERSION], **header}
    head["arrays"] = sorted(arrays)
    head["checksum"] = checksum(json.loads(json.dumps(head)), arrays)  # reading returns the same header
    text = json.dumps(head, indent=1, ensure_ascii=False, sort_keys=True)
    write_npz(where, arrays, {_HEADER: text.encode()}, largest=LARGEST, ratio=_RATIOS[format])


def read_model(where: Where, format: str = FORMAT) -> ModelFile:
    """Read a model from a file or a stream.

    Args:
        where: Path or binary stream.
        format: Expected format, one of ``LOADERS``.

    Returns:
        The header and the arrays of the file.

    Raises:
        ModelError: The file is missing, damaged, too new or of another format.
    """
    path = name_of(where)
    try:
        header = _read_header(read_member(where, _HEADER, LARGEST), path, format)
        arrays = read_arrays(where, texts=[_HEADER], largest=LARGEST, ratio=_RATIOS[format])
    except NpzError as error:
        raise ModelError(f"{path}: not a herdner model, or damaged ({error}); train or copy it again") from None
    except FileNotFoundError:
        raise ModelError(f"{path}: no such model file") from None
    except IsADirectoryError:
        raise ModelError(f"{path}: the path is a directory, not a model file") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    if sorted(arrays) != header.get("arrays"):
        raise ModelError(f"{path}: damaged model (arrays differ from the list in the header); train or copy it again")
    if header.pop("checksum", None) != checksum(header, arrays):
        raise ModelError(f"{path}: damaged model (the checksum does not match the contents); train or copy it again")
    return ModelFile(header, arrays)


def remove_shared_arrays(
    arrays: Mapping[str, NDArray[Any]], model: str, names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Remove from ``arrays`` each array that equals the array of the same name in a shipped model.

    Args:
        arrays: Arrays by name.
        model: Name of the shipped model.
        names: Names of the arrays that may be shared.

    Returns:
        The value of "shared_lexicon" in the header, and the remaining arrays.

    Raises:
        ValueError: No array equals the array of this name in the shipped model.
    """
    theirs = _shipped_arrays(model, names)
    shared = {name: array for name, array in theirs.items() if name in arrays and np.array_equal(arrays[name], array)}
    if not shared:
        raise ValueError(f"the lexicon and the model {model!r} have no array in common; omit `shared_lexicon`")
    value = {"model": model, "arrays": sorted(shared), "checksum": checksum({}, shared)}
    return value, {name: array for name, array in arrays.items() if name not in shared}


def add_shared_arrays(file: ModelFile, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model: those in its file, and those that the model shares with a shipped model.

    Args:
        file: Contents of the file.
        names: Names of the arrays that may be shared.

    Returns:
        The arrays by name.

    Raises:
        ValueError: The shipped model does not exist or has other arrays.
    """
    value = file.header.get("shared_lexicon")
    if value is None:
        return file.arrays
    listed: Any = value["arrays"]
    if not isinstance(listed, list) or not set(map(str, cast(list[object], listed))) <= set(names) - set(file.arrays):
        raise ValueError(f"the shared arrays must be some of {', '.join(names)}, got {listed!r:.80}")
    shared = _shipped_arrays(str(value["model"]), cast(list[str], listed))
    if checksum({}, shared) != value["checksum"]:
        raise ValueError(
            f"the file needs the lexicon of another version of the model {value['model']}; install the release of"
            " herdner that saved the file"
        )
    return {**file.arrays, **shared}


def _shipped_arrays(model: str, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return those arrays of a shipped model whose names are in ``names``."""
    shipped = shipped_models()
    if model not in shipped:
        raise ValueError(f"the shared model must be one of {', '.join(sorted(shipped))}, got {model!r:.80}")
    with importlib.resources.as_file(shipped[model]) as path:
        arrays = read_model(path).arrays
    return {name: arrays[name] for name in names if name in arrays}


@contextmanager
def intact(where: Where, kind: str, remedy: str) -> Generator[None]:
    """Convert errors of a ``with`` block that are due to an invalid model file to `ModelError`.

    Args:
        where: Path or stream of the file.
        kind: "model" or "layer".
        remedy: Verb of the remedy in the message, such as "train" in "train or copy it again".

    Raises:
        ModelError: The body of the ``with`` statement raises an error that an invalid file causes.
    """
    try:
        yield
    except KeyError as error:
        raise ModelError(f"{name_of(where)}: damaged {kind} ({error} is missing); {remedy} or copy it again") from None
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise ModelError(f"{name_of(where)}: damaged {kind} ({error}); {remedy} or copy it again") from None


def checksum(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 checksum of the header and the arrays of a model.

    Args:
        header: JSON values of the model.
        arrays: Arrays of the model by name.
    """
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def check_arrays(arrays: Mapping[str, NDArray[Any]], allowed_types: Mapping[str, tuple[str, int]]) -> None:
    """Raise `ValueError` if an array has an unexpected name, type or number of dimensions, or a value out of range.

    Args:
        arrays: Arrays by name.
        allowed_types: For each name, its types (values of ``dtype.str``, separated by spaces) and its number of axes.

    Raises:
        ValueError: An array is unknown or has another type or number of axes; or a value is not finite or too large.
    """
    for name, array in arrays.items():
        types, n_axes = allowed_types.get(name, ("", 0))
        if array.dtype.str not in types.split() or array.ndim != n_axes:
            raise ValueError(f"the file has an unexpected array {name} of type {array.dtype} with {array.ndim} axes")
        if array.dtype.kind == "f" and not (np.abs(array) <= np.float64(LARGEST_WEIGHT)).all():
            raise ValueError(f"the array {name} has values that are not finite or exceed {LARGEST_WEIGHT:g}")


def name_of(where: Where) -> str:
    """Return the name of a file or a stream, for error messages.

    Args:
        where: Path or stream.
    """
    return os.fspath(where) if isinstance(where, str | os.PathLike) else "the model's bytes"


def _read_header(data: bytes, path: str, format: str) -> dict[str, Any]:
    try:
        header: object = json.loads(data)
    except (ValueError, RecursionError):
        raise ModelError(f"{path}: not a herdner model, or damaged (the header is not JSON)") from None
    values = cast(dict[str, Any], header) if isinstance(header, dict) else {}
    if values.get("format") not in tuple(LOADERS):
        raise ModelError(f"{path}: not a herdner model (the header does not name the format {format})")
    if values["format"] != format:
        raise ModelError(f"{path}: expected the format {format}, but the file contains {LOADERS[values['format']]}")
    version = values.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise ModelError(f"{path}: damaged model (the format version must be an integer above 0, got {version!r})")
    if version > FORMAT_VERSION:
        needs = values.get("needs", "newer")
        raise ModelError(
            f"{path}: model format {version} needs herdner {needs} or later; update the clone and install it again"
        )
    return values
