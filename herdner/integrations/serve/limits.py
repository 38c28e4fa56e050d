"""What a request may ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from herdner.base.checks import check_integer

_BYTES_OF_A_CHARACTER = 12  # JSON may write one as two escapes, "\\ud83d\\ude00"
_BYTES_BESIDE_THE_TEXT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on requests; ValueError for those that make no sense.

    Attributes:
        characters: Of a text.
        seconds: Within which each request is answered, waiting included; a run that takes longer is ended.
        n_workers: Processes that tag, one request at a time each; a model takes some 200 MB in each of them.
        n_waiting: Requests that may wait for a process; more are turned away at once.
    """

    characters: int = 100_000
    seconds: float = 20.0
    n_workers: int = 2
    n_waiting: int = 16

    def __post_init__(self) -> None:
        for name, least in (("characters", 1), ("n_workers", 1), ("n_waiting", 0)):
            check_integer(getattr(self, name), name, least)
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(f"seconds must be a number above 0, not {self.seconds!r}")

    @property
    def body_bytes(self) -> int:
        """Of a request's body, whatever it holds: checked before it is read."""
        return self.characters * _BYTES_OF_A_CHARACTER + _BYTES_BESIDE_THE_TEXT
