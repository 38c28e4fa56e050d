"""Numbers of operations, which do not depend on the load of the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def count_operations(call: Callable[[], object]) -> int:
    """Return the number of Python's instructions that a call executes; a call of a compiled function is one."""
    n_operations = 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal n_operations
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        n_operations += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return n_operations
