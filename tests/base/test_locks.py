"""A fork beside busy threads: the child can tag."""

from __future__ import annotations

import os
import re
import sys
import threading

import pytest
from data import REPOSITORY
from patience import PATIENCE

import herdner
from herdner.base.locks import ForkLock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def exit_code(pid: int) -> int | None:
    """Return the exit code of a child, None if it hangs."""
    timer = threading.Timer(PATIENCE, os.kill, [pid, 9])
    timer.start()
    _, status = os.waitpid(pid, 0)
    timer.cancel()
    return os.waitstatus_to_exitcode(status)


def test_modules_that_a_child_process_uses_have_no_other_locks() -> None:
    """The service is left out, because it runs in a process of its own."""
    package = REPOSITORY / "herdner"
    left_out = {package / "base" / "locks.py", package / "integrations" / "serve" / "pool.py"}
    for path in sorted(set(package.rglob("*.py")) - left_out):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"from threading import .*\b(R?Lock|Condition|Semaphore)\b", text), path
        assert not re.search(r"threading\.(R?Lock|Condition|\w*Semaphore)\b", text), path


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_lock_that_another_thread_holds_is_free_in_the_child() -> None:
    lock, entered, release = ForkLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock.current:
            entered.set()
            release.wait(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    pid = os.fork()
    if pid == 0:
        with lock.current:
            os._exit(0)
    assert exit_code(pid) == 0
    thread.join()
    with lock.current:
        pass


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_children_forked_while_other_threads_tag_can_tag() -> None:
    tagger = herdner.load("en")
    text = (REPOSITORY / "corpora" / "article.txt").read_text(encoding="utf-8")
    expected, stop = tagger.tag(text).entities, threading.Event()

    def work(number: int) -> None:
        count = 0
        while not stop.is_set():
            tagger.tag(f"{text} Word{number}x{count} met Name{count}y{number}.")
            count += 1

    threads = [threading.Thread(target=work, args=[number]) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        codes = []
        for _ in range(15):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    code = 0 if tagger.tag(text).entities == expected else 2
                finally:
                    sys.stderr.flush()
                    os._exit(code)
            codes.append(exit_code(pid))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * 15
