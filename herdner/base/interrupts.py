"""Handling of Ctrl-C from process start, including interrupts that Python would drop."""

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

_interrupts: list[int] = []


def exit_on_interrupt() -> None:
    """Make Ctrl-C print one line and end the process, until `raise_on_interrupt` is called.

    Otherwise Ctrl-C during imports would print a traceback.
    """
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_DFL):  # background: SIG_IGN
        signal.signal(signal.SIGINT, _exit)


def raise_on_interrupt() -> None:
    """Make Ctrl-C raise `KeyboardInterrupt` instead of ending the process as `exit_on_interrupt` does.

    If `exit_on_interrupt` has not changed the handling of Ctrl-C, this function changes nothing. Python drops a
    KeyboardInterrupt that is raised in a callback of the garbage collector or of an import. Here it is raised once more
    a moment later, and no traceback is printed.
    """
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, _raise)
        sys.unraisablehook = _raise_again


def record_interrupts() -> None:
    """Make Ctrl-C set only the flag that `was_interrupted` returns, and no longer raise `KeyboardInterrupt`.

    If `raise_on_interrupt` has not changed the handling of Ctrl-C, this function changes nothing.
    """
    if signal.getsignal(signal.SIGINT) is _raise:
        signal.signal(signal.SIGINT, _record)


def was_interrupted() -> bool:
    """Return whether the process has received Ctrl-C at least once since its start."""
    return bool(_interrupts)


@contextmanager
def restore_interrupt() -> Generator[None]:
    """Replace any error of the ``with`` block by `KeyboardInterrupt` if the process has received Ctrl-C.

    Compiled libraries may convert an interrupt to an error of their own.

    Raises:
        KeyboardInterrupt: The process was interrupted and an error followed.
    """
    try:
        yield
    except BaseException as error:
        if was_interrupted() and not isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise KeyboardInterrupt from error
        raise


@contextmanager
def block_interrupts() -> Generator[None]:
    """Block Ctrl-C in each process that starts in the ``with`` block, from the first instruction of that process on."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _exit(*_: object) -> None:
    os.write(2, b"herdner: interrupted\n")
    os._exit(130)


def _record(number: int, _: object) -> None:
    _interrupts.append(number)


def _raise(number: int, _: object) -> None:
    _interrupts.append(number)
    raise KeyboardInterrupt


def _raise_again(hook_args: UnraisableHookArgs) -> None:
    if not issubclass(hook_args.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(hook_args)
    else:  # from a thread, because Python would drop an interrupt that is raised within this hook
        _thread.start_new_thread(_signal_soon, ())


def _signal_soon() -> None:
    time.sleep(0.01)
    if os.name == "nt":
        _thread.interrupt_main()
    else:  # a real signal also ends a blocking call of the main thread
        os.kill(os.getpid(), signal.SIGINT)
