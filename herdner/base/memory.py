"""Whether what is about to be laid out fits into memory: told before it is, as Linux gives out more than there is."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)

_SMALL = 2**28  # bytes: not worth a look at the machine
_LARGE = 10**9  # bytes: worth a word
# What a group of processes may take together, as containers are limited: version 2 of cgroups, then version 1.
_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class NotEnoughMemory(MemoryError):
    """What was asked for would take more memory than there is; nothing was begun."""


def check_memory(n_bytes: float, what: str, way_out: str) -> None:
    """That about ``n_bytes`` more fit into the memory of the machine and within the limits of this process.

    From 1 GB on the estimate is logged, as information.

    Args:
        what: The subject of the message, such as "a grid of 10,000 x 10,000 variables".
        way_out: What to do instead.

    Raises:
        NotEnoughMemory: They do not.
    """
    if n_bytes < _SMALL:
        return
    free = free_memory()
    if n_bytes > free:
        raise NotEnoughMemory(f"{what} takes about {_gb(n_bytes)} of memory, but only {_gb(free)} are left; {way_out}")
    if n_bytes >= _LARGE:
        logger.info("%s takes about %s of memory", what, _gb(n_bytes))


def free_memory() -> float:
    """The bytes that this process may still take, as far as the system tells: infinity where it does not."""
    return max(0.0, min(_left(), default=float("inf")))


def _left() -> Iterator[float]:
    page, size, resident = 4096, 0, 0
    with suppress(OSError, ValueError):  # Linux alone
        page = os.sysconf("SC_PAGE_SIZE")
        size, resident = (int(number) * page for number in Path("/proc/self/statm").read_text().split()[:2])
    if sys.platform != "win32":
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit - size
        yield os.sysconf("SC_PHYS_PAGES") * page - resident
    with suppress(OSError, StopIteration):  # less, where other processes have taken some
        lines = Path("/proc/meminfo").read_text().splitlines()
        yield next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    for path in _GROUPS:
        with suppress(OSError, ValueError):  # "max": without a limit
            yield int(Path(path).read_text()) - resident


def _gb(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB"
