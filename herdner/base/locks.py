"""Locks that a forked process can use."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import WeakSet

FORK_SECONDS = 5.0  # longest wait of a fork for a lock, because its holder may wait for the forking thread

_locks: WeakSet[ForkLock] = WeakSet()


class ForkLock:
    """Reentrant lock that is free in a forked child process.

    The data that it protects are consistent in the child.

    A fork copies the state of locks but no other threads, so a lock that another thread holds would stay locked in the
    child. Therefore a fork waits until all of these locks are free, and the child gets new ones.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        """Create a free lock."""
        self._lock: Any = RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        """Acquire the lock at the start of a ``with`` block."""
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        """Release the lock at the end of a ``with`` block."""
        self._lock.release()


_acquired_locks: list[Any] = []


def _before_fork() -> None:
    """Acquire all locks before a fork, so that no thread changes the data that the locks protect."""
    for lock in list(_locks):
        inner = lock._lock  # pyright: ignore[reportPrivateUsage]
        if inner.acquire(timeout=FORK_SECONDS):
            _acquired_locks.append(inner)


def _after_fork_in_parent() -> None:
    """Release all locks in the parent process after a fork."""
    while _acquired_locks:
        _acquired_locks.pop().release()


def _after_fork_in_child() -> None:
    """Replace all locks by free ones in the child process after a fork."""
    _acquired_locks.clear()
    for lock in list(_locks):
        lock._lock = RLock()  # pyright: ignore[reportPrivateUsage]


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
