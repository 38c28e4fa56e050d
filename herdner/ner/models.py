"""Where models are: those that herdner ships, and files."""

from __future__ import annotations

import importlib.resources
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdner.ner.model import Model
from herdner.ner.model_file import ModelError
from herdner.ner.tagger import Tagger

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SUFFIX = ".herdner"


def shipped_models() -> dict[str, Traversable]:
    """The models that came with herdner, by name."""
    folder = importlib.resources.files("herdner") / "data"
    return {file.name.removesuffix(SUFFIX): file for file in folder.iterdir() if file.name.endswith(SUFFIX)}


def load(name_or_path: str | os.PathLike[str], **params: Any) -> Tagger:
    """The tagger of a shipped model ("en") or of a model file; ``params`` are `Tagger` parameters such as ``backend``.

    A shipped name goes before a file of the same name in the current folder. Raises `ModelError` where there is no such
    model or where it cannot be read.
    """
    shipped = shipped_models()
    if (name := os.fspath(name_or_path)) in shipped:
        with importlib.resources.as_file(shipped[name]) as path:
            return Tagger.from_model(Model.load(path), **params)
    if not Path(name).exists():
        raise ModelError(f"there is no model {name!r}: give a file, or one of {', '.join(sorted(shipped)) or 'none'}")
    return Tagger.from_model(Model.load(name), **params)
