"""Ctrl-C: from the first moment of the process, and where Python loses it."""

from __future__ import annotations

import os
import signal

_came: list[int] = []


def end_at_once() -> None:
    """Until `unwind`, Ctrl-C ends the process with one line, not with the traceback of whatever is being imported."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as in the background
        signal.signal(signal.SIGINT, _end)


def unwind() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, where there was `end_at_once` before."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, _raise)


def remember() -> None:
    """From now on Ctrl-C raises nothing, where there was `unwind` before: who calls this asks whether it `came`."""
    if signal.getsignal(signal.SIGINT) is _raise:
        signal.signal(signal.SIGINT, _note)


def came() -> bool:
    """Whether there was a Ctrl-C. Python drops a KeyboardInterrupt that is raised in a callback of the garbage
    collector or of an import, and goes on: what would go on for ever asks here before.
    """
    return bool(_came)


def _end(*_: object) -> None:
    os.write(2, b"herdner: interrupted\n")
    os._exit(130)


def _note(number: int, _: object) -> None:
    _came.append(number)


def _raise(number: int, _: object) -> None:
    _came.append(number)
    raise KeyboardInterrupt
