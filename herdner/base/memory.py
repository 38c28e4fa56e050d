"""Check of available memory before a large allocation, because Linux grants allocations beyond this memory."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from herdner.base.messages import format_size

logger = logging.getLogger(__name__)

_SMALL = 2**28  # bytes; smaller allocations are not checked
_LARGE = 10**9  # bytes; larger allocations are logged
# Memory limits of a group of processes, such as a container: cgroups version 2, then version 1.
_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class NotEnoughMemory(MemoryError):
    """Error: a computation was not started, because it needs more memory than is available."""


def check_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise `NotEnoughMemory` if an allocation exceeds the free memory or the limits of this process.

    Args:
        n_bytes: Estimated size of the allocation. From 1 GB on it is logged as information.
        what: Subject of the message, such as "a grid of 10,000 x 10,000 variables".
        remedy: Advice for users, the end of the message.

    Raises:
        NotEnoughMemory: The allocation does not fit.
    """
    if n_bytes < _SMALL:
        return
    free = free_memory()
    if n_bytes > free:
        raise NotEnoughMemory(
            f"{what} takes about {format_size(n_bytes)} of memory, but only {format_size(free)} is available; {remedy}"
        )
    if n_bytes >= _LARGE:
        logger.info("%s takes about %s of memory", what, format_size(n_bytes))


def free_memory() -> float:
    """Return the number of bytes that this process can still allocate.

    The result is infinity if the system does not report this number.
    """
    return max(0.0, min(_limits(), default=float("inf")))


def _limits() -> Iterator[float]:
    page, size, resident = 4096, 0, 0
    with suppress(OSError, ValueError):  # Linux only
        page = os.sysconf("SC_PAGE_SIZE")
        size, resident = (int(number) * page for number in Path("/proc/self/statm").read_text().split()[:2])
    if sys.platform != "win32":
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit - size
        yield os.sysconf("SC_PHYS_PAGES") * page - resident
    with suppress(OSError, StopIteration):  # lower if other processes use memory
        lines = Path("/proc/meminfo").read_text().splitlines()
        yield next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    for path in _GROUPS:
        with suppress(OSError, ValueError):  # "max" means no limit
            yield int(Path(path).read_text()) - resident
