"""Locks that a forked process can use."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import WeakSet

FORK_SECONDS = 5.0  # longest wait of a fork for a lock, because its holder may wait for the forking thread

_locks: WeakSet[ForkLock] = WeakSet()


class ForkLock:
    """Container of a reentrant lock; a forked child process gets a new, unlocked lock.

    A fork copies the state of locks but no other threads, so a lock that another thread holds would stay locked in the
    child. Therefore a fork waits at most ``FORK_SECONDS`` for each of these locks, and the child gets new ones. The
    protected data are consistent in the child, unless another thread holds the lock for longer than this.

    Attributes:
        current: The lock of this process, to be acquired with ``with``.
    """

    __slots__ = ("__weakref__", "current")

    def __init__(self) -> None:
        """Create an unlocked lock."""
        self.current: Any = RLock()
        _locks.add(self)


_acquired_locks: list[Any] = []


def _before_fork() -> None:
    """Acquire the locks of all `ForkLock` objects before a fork, so that no thread changes the protected data."""
    for lock in list(_locks):
        if lock.current.acquire(timeout=FORK_SECONDS):
            _acquired_locks.append(lock.current)


def _after_fork_in_parent() -> None:
    """Release the locks of all `ForkLock` objects in the parent process after a fork."""
    while _acquired_locks:
        _acquired_locks.pop().release()


def _after_fork_in_child() -> None:
    """Replace the locks of all `ForkLock` objects by new, unlocked locks in the child process after a fork."""
    _acquired_locks.clear()
    for lock in list(_locks):
        lock.current = RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
