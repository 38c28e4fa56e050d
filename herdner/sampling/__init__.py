"""Plain values around sampling and inference."""

from __future__ import annotations

from herdner.sampling.result import Result

__all__ = ["Result"]
