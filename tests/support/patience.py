"""Waiting in tests: for what happens, never for a time in which it should."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which a test gives up: nothing that works takes as long, on whatever machine."""


def wait_until(happened: Callable[[], object]) -> None:
    """Returns when it has happened; AssertionError where it never does."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)
