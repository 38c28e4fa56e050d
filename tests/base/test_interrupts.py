"""Ctrl-C ends the process with one line from process start on, without a traceback of imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from patience import PATIENCE

PROGRAM = """
import os, signal, sys, time
from herdner.base.interrupts import exit_on_interrupt, raise_on_interrupt, restore_interrupt, was_interrupted
exit_on_interrupt()
if "unwind" in sys.argv:
    raise_on_interrupt()
try:
    class Lost:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000): pass  # raised here, and dropped
    if "lost" in sys.argv:
        Lost()
        time.sleep(20)
    elif "remade" in sys.argv:
        with restore_interrupt():
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt as error:
                raise TypeError("Error building `union` serializer: KeyboardInterrupt") from error
    else:
        os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("unwound", was_interrupted())
else:
    print("went on", was_interrupted())
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("options", "handler", "code", "out", "errors"),
    [
        ([], signal.SIG_DFL, 130, "", "herdner: interrupted\n"),
        (["unwind"], signal.SIG_DFL, 0, "unwound True\n", ""),
        (["unwind", "lost"], signal.SIG_DFL, 0, "unwound True\n", ""),
        (["unwind", "remade"], signal.SIG_DFL, 0, "unwound True\n", ""),
        ([], signal.SIG_IGN, 0, "went on False\n", ""),
        (["unwind"], signal.SIG_IGN, 0, "went on False\n", ""),
    ],
)
def test_handling_of_ctrl_c(options: list[str], handler: signal.Handlers, code: int, out: str, errors: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options], capture_output=True, text=True, timeout=PATIENCE,
        preexec_fn=partial(signal.signal, signal.SIGINT, handler),
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, out, errors)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_during_the_import_of_the_package_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / "lazy_loader.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    ran = subprocess.run(
        [sys.executable, "-m", "herdner", "--version"], capture_output=True, text=True, timeout=PATIENCE,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGINT, "", "")
