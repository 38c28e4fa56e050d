"""Inference: backends by name, and the chain algorithms in bulk (`herdner.inference.chain`)."""

from __future__ import annotations

from herdner.inference.backend import Backend, ImpossibleGraph, Interrupted, UnsupportedGraph
from herdner.inference.registry import BACKENDS, describe_backend, make_backend

__all__ = [
    "BACKENDS",
    "Backend",
    "ImpossibleGraph",
    "Interrupted",
    "UnsupportedGraph",
    "describe_backend",
    "make_backend",
]
