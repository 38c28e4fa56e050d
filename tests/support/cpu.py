"""The time of the processor, by which laws of growth are held."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call without the garbage collector, which would scan objects of earlier tests."""
    gc.disable()
    try:
        began = process_time()
        call()
        return process_time() - began
    finally:
        gc.enable()
