"""Model files: one zip archive (NumPy's .npz) of plain arrays and a JSON header. Nothing in it is ever executed."""

from __future__ import annotations

import importlib.resources
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

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
_HEADER = "header.json"


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
    """Write a file of one of the formats of `HOLDS`, to a stream or atomically to a path: whatever happens, that holds
    the old file or the whole new one.
    """
    head = {"format": format, "format_version": FORMAT_VERSION, "needs": READABLE_SINCE[FORMAT_VERSION], **header}
    head["arrays"] = sorted(arrays)
    text = json.dumps(head, indent=1, ensure_ascii=False, sort_keys=True)
    write_npz(where, arrays, {_HEADER: text.encode()})


def read_model(where: Where, format: str = FORMAT) -> ModelFile:
    """Read a file of this format, or a stream of its bytes; `ModelError` where it is missing, of another one, damaged
    or too new.
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
