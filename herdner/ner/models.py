"""Where models are: those that herdner ships, and files."""

from __future__ import annotations

import importlib.resources
import os
from pathlib import Path
from typing import Any

from herdner.ner.model import Model
from herdner.ner.model_file import ModelError
from herdner.ner.tagger import Tagger

SUFFIX = ".herdner"


def shipped_models() -> dict[str, Path]:
    """The models that came with herdner, by name."""
    folder = Path(str(importlib.resources.files("herdner"))) / "data"
    return {path.stem: path for path in sorted(folder.glob(f"*{SUFFIX}"))}


def load(name_or_path: str | os.PathLike[str], **params: Any) -> Tagger:
    """The tagger of a shipped model ("en") or of a model file; ``params`` are `Tagger` parameters such as ``backend``.

    A shipped name goes before a file of the same name in the current folder. Raises `ModelError` where there is no such
    model or where it cannot be read.
    """
    shipped = shipped_models()
    path = shipped.get(str(name_or_path), Path(name_or_path))
    if not path.exists():
        raise ModelError(
            f"there is no model {str(name_or_path)!r}: give a file, or one of {', '.join(shipped) or 'none'}"
        )
    return Tagger.from_model(Model.load(path), **params)
