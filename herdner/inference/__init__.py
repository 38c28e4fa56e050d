"""Inference backends, which are built by name, and algorithms for linear chains (`herdner.inference.linear_chain`)."""

from __future__ import annotations

from herdner.inference.backend import (
    Backend,
    Capabilities,
    ImpossibleGraph,
    Interrupted,
    UnsupportedGraph,
    UnsupportedRecord,
)
from herdner.inference.registry import BACKENDS, describe_backend, make_backend
from herdner.inference.result import Result

__all__ = [
    "BACKENDS", "Backend", "Capabilities", "ImpossibleGraph", "Interrupted", "Result", "UnsupportedGraph",
    "UnsupportedRecord", "describe_backend", "make_backend",
]  # fmt: skip
