"""Ctrl-C: from the first moment of the process, and where Python loses it."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_came: list[int] = []


def end_at_once() -> None:
    """Until `unwind`, Ctrl-C ends the process with one line, not with the traceback of whatever is being imported."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as in the background
        signal.signal(signal.SIGINT, _end)


def unwind() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, where there was `end_at_once` before.

    Python drops a KeyboardInterrupt that is raised in a callback of the garbage collector or of an import, prints a
    traceback and goes on; here nothing is printed, and it is raised once more a moment later.
    """
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, _raise)
        sys.unraisablehook = _raise_again


def remember() -> None:
    """From now on Ctrl-C raises nothing, where there was `unwind` before: who calls this asks whether it `came`."""
    if signal.getsignal(signal.SIGINT) is _raise:
        signal.signal(signal.SIGINT, _note)


def came() -> bool:
    """Whether there was a Ctrl-C: what would go on for ever asks here before."""
    return bool(_came)


@contextmanager
def interruption_kept() -> Generator[None]:
    """Raises KeyboardInterrupt in place of any error that follows a Ctrl-C in here: compiled libraries turn the one
    into the other, such as an error that says that a type cannot be built.
    """
    try:
        yield
    except BaseException as error:
        if came() and not isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise KeyboardInterrupt from error
        raise


@contextmanager
def deaf_children() -> Generator[None]:
    """A process that is started in here never hears of Ctrl-C, not even while it imports its modules."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _end(*_: object) -> None:
    os.write(2, b"herdner: interrupted\n")
    os._exit(130)


def _note(number: int, _: object) -> None:
    _came.append(number)


def _raise(number: int, _: object) -> None:
    _came.append(number)
    raise KeyboardInterrupt


def _raise_again(lost: UnraisableHookArgs) -> None:
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
    else:  # in a thread: told here, it would be raised within this hook, and dropped again
        _thread.start_new_thread(_tell_soon, ())


def _tell_soon() -> None:
    time.sleep(0.01)
    if os.name == "nt":
        _thread.interrupt_main()
    else:  # the signal itself, which also wakes what the main thread waits for
        os.kill(os.getpid(), signal.SIGINT)
