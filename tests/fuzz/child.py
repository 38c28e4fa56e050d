"""Child process of the fuzzer: runs cases and reports on standard output how each ended.

An exception with a one-line message is acceptable.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import traceback
import warnings
from zlib import crc32

import numpy as np

from fuzz.targets import TARGETS

CLEAR_ERRORS = (ValueError, MemoryError)


def bad(number: int) -> None:
    """Fail in several ways, for the test of the fuzzer itself."""
    if number == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 2:
        raise ValueError("a clear error")
    if number == 3:
        time.sleep(600)


def run(target: str, number: int) -> str:
    """Run a case and return its end: "done", the name of the exception, or "finding: ..."."""
    rng = np.random.default_rng([crc32(target.encode()), number])
    try:
        TARGETS[target](rng) if target in TARGETS else bad(number)
    except CLEAR_ERRORS as error:
        message = str(error)
        if "\n" in message or not message.strip():
            return f"finding an error of no or several lines: {message!r:.300}"
        return type(error).__name__
    except AssertionError as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"finding {place.name}, line {place.lineno}: {error!s:.600}".replace("\n", " ")
    except Exception as error:
        places = [
            f"{each.filename.rpartition('/')[2]}:{each.lineno}" for each in traceback.extract_tb(error.__traceback__)
        ]
        return f"finding {type(error).__name__}: {error!s:.300} [{' '.join(places[-5:])}]".replace("\n", " ")
    return "done"


class Unshown(logging.Handler):
    """Log handler that formats warnings and discards them."""

    def emit(self, record: logging.LogRecord) -> None:
        record.getMessage()


def main(target: str, first: int, end: int) -> None:
    warnings.simplefilter("ignore")
    logging.getLogger().addHandler(Unshown())
    os.write(1, b"ready\n")
    for number in range(first, end):
        ended = run(target, number)
        if ended.startswith("finding"):
            os.write(1, (ended + "\n").encode("utf-8", "replace"))
            ended = "finding"
        os.write(1, f"end {ended}\n".encode())  # unbuffered, because the next case may end the process


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
