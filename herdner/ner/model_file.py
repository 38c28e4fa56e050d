"""Model files: one zip archive (NumPy's .npz) of plain arrays and a JSON header. Nothing in it is ever executed."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import logging
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from herdner.base.npz import NpzError, Where, read_arrays, read_member, write_npz

if TYPE_CHECKING:
    from importlib.abc import Traversable

FORMAT, LAYER_FORMAT = "herdner-model", "herdner-layer"
HOLDS = {FORMAT: "a tagger: open it with herdner.load", LAYER_FORMAT: "a layer: open it with SkipChainLayer.load"}
FORMAT_VERSION = 1
READABLE_SINCE = {1: "0.1"}  # format version -> first herdner that reads it
LARGEST = 4 << 30  # bytes that a model may unpack to
SUFFIX = ".herdner"
LARGEST_WEIGHT = 1e100  # so that no sum of weights leaves the range of a double
_HEADER = "header.json"

logger = logging.getLogger(__name__)


class ModelError(ValueError):
    """A model that cannot be found or read; the message says why."""


@dataclass(frozen=True)
class ModelFile:
    """Header (JSON values) and arrays by name."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def shipped_models() -> dict[str, Traversable]:
    """The models that came with herdner, by name."""
    folder = importlib.resources.files("herdner") / "data"
    return {file.name.removesuffix(SUFFIX): file for file in folder.iterdir() if file.name.endswith(SUFFIX)}


def write_model(
    where: Where, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], format: str = FORMAT
) -> None:
    """Write a file of one of the formats of ``HOLDS``, to a stream or atomically to a path: whatever happens, that
    holds the old file or the whole new one.
    """
    head = {"format": format, "format_version": FORMAT_VERSION, "needs": READABLE_SINCE[FORMAT_VERSION], **header}
    head["arrays"] = sorted(arrays)
    head["checksum"] = checksum(json.loads(json.dumps(head)), arrays)  # as it will be read
    text = json.dumps(head, indent=1, ensure_ascii=False, sort_keys=True)
    write_npz(where, arrays, {_HEADER: text.encode()})


def read_model(where: Where, format: str = FORMAT) -> ModelFile:
    """Read a file of this format, or a stream of its bytes. Files written before there were checksums are read with a
    warning.

    Raises:
        ModelError: The file is missing, of another format, damaged or too new.
    """
    path = name_of(where)
    try:
        header = _read_header(read_member(where, _HEADER, LARGEST), path, format)
        arrays = read_arrays(where, texts=[_HEADER], largest=LARGEST)
    except NpzError as error:
        raise ModelError(f"{path}: not a herdner model, or damaged ({error}); train or copy it again") from None
    except FileNotFoundError:
        raise ModelError(f"{path}: no such model file") from None
    except IsADirectoryError:
        raise ModelError(f"{path}: is a directory, not a model file") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    if sorted(arrays) != header.get("arrays"):
        raise ModelError(
            f"{path}: damaged model (its arrays are not those that its header names); train or copy it again"
        )
    given = header.pop("checksum", None)
    if given is None:
        logger.warning("%s: has no checksum, so that damage may go unnoticed; load it and save it again", path)
    elif given != checksum(header, arrays):
        raise ModelError(f"{path}: damaged model (its checksum is not that of its contents); train or copy it again")
    return ModelFile(header, arrays)


@contextmanager
def undamaged(where: Where, what: str, mend: str) -> Generator[None]:
    """What is wrong with the values of a file is a `ModelError`, which names the file."""
    try:
        yield
    except KeyError as error:
        raise ModelError(f"{name_of(where)}: damaged {what} ({error} is missing); {mend} or copy it again") from None
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise ModelError(f"{name_of(where)}: damaged {what} ({error}); {mend} or copy it again") from None


def checksum(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of what a file says: of the header as JSON, and of the type, shape and numbers of each array."""
    found = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def check_arrays(arrays: Mapping[str, NDArray[Any]], known: Mapping[str, tuple[str, int]]) -> None:
    """ValueError where an array is not ``known``, by its name, to be of one of these types (as ``dtype.str`` has them)
    and of so many axes; or where a number is not finite, or too large for sums.
    """
    for name, array in arrays.items():
        types, n_axes = known.get(name, ("", 0))
        if array.dtype.str not in types.split() or array.ndim != n_axes:
            raise ValueError(f"its array {name} is {array.dtype} of {array.ndim} axes, which has no place here")
        if array.dtype.kind == "f" and not (np.abs(array) <= np.float64(LARGEST_WEIGHT)).all():
            raise ValueError(f"its array {name} holds numbers that are not finite, or too large")


def name_of(where: Where) -> str:
    """What messages call a file or stream."""
    return os.fspath(where) if isinstance(where, str | os.PathLike) else "the model's bytes"


def _read_header(data: bytes, path: str, format: str) -> dict[str, Any]:
    try:
        header: object = json.loads(data)
    except (ValueError, RecursionError):
        raise ModelError(f"{path}: not a herdner model, or damaged (its header is not JSON)") from None
    values = cast(dict[str, Any], header) if isinstance(header, dict) else {}
    if values.get("format") not in tuple(HOLDS):
        raise ModelError(f"{path}: not a herdner model (its header names no {format} format)")
    if values["format"] != format:
        raise ModelError(f"{path}: holds {HOLDS[values['format']]}")
    version = values.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise ModelError(f"{path}: damaged model (format version {version!r})")
    if version > FORMAT_VERSION:
        needs = values.get("needs", "newer")
        raise ModelError(f"{path}: model format {version} needs herdner {needs} or later: pip install -U herdner")
    return values
