"""What is wrong with JSON, in words for those who wrote the file."""

from __future__ import annotations

import sys


def not_json(error: Exception) -> str:
    """Why `json.loads` failed; of the integers that Python refuses to read, its own message speaks to programmers."""
    if str(error).startswith("Exceeds the limit"):
        return f"not to be read (a number has more than {sys.get_int_max_str_digits():,} digits)"
    return f"not JSON ({error})"
