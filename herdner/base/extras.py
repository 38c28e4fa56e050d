"""Libraries that only some uses need: what is missing is one line that says what to install."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


class MissingExtra(ImportError):
    """A library that is not installed; the message says what needs it and how to get it."""


def extra(module: str, need: str, name: str) -> Any:
    """The module, which the extra ``name`` installs; MissingExtra begins with ``need``, as in "scores need seqeval"."""
    check_extra(module, need, name)
    return import_module(module)


def check_extra(module: str, need: str, name: str) -> None:
    """MissingExtra where the module is not installed; nothing is imported."""
    if find_spec(module.partition(".")[0]) is None:
        raise MissingExtra(f"{need}: pip install 'herdner[{name}]'")
