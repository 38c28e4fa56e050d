"""The command line: one file per command. Heavy modules are imported by the commands that use them."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from herdner import __version__
from herdner.cli.backends import backends
from herdner.cli.common import complain, complain_of, quiet_stdout
from herdner.cli.corpora import corpora
from herdner.cli.denoise import denoise
from herdner.cli.evaluate import evaluate
from herdner.cli.explain import explain
from herdner.cli.report import report
from herdner.cli.scan import scan
from herdner.cli.serve import serve
from herdner.cli.suggest import suggest
from herdner.cli.tag import tag
from herdner.cli.train import train
from herdner.cli.usage import UsageError, plainly

app = typer.Typer(name="herdner", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
for command in (tag, suggest, explain, train, evaluate, report, backends, denoise, scan, serve):
    app.command()(command)
app.add_typer(corpora, name="corpora")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"herdner {__version__}")
        raise typer.Exit


@app.callback()
def herdner(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find the names in texts, consistently across each document.

    Exit codes: 0 done, 1 something failed (the other files are still done), 2 wrong use.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """One call of the command line; the exit code. Every failure that bad input can cause is one line on stderr."""
    # Warnings of the library in the form of all other messages.
    logging.basicConfig(format="herdner: %(message)s", level=logging.WARNING)
    logging.getLogger("herdner.base.memory").setLevel(logging.INFO)  # what takes much is told before it is begun
    code: Any = 0
    try:
        code = app(arguments, prog_name="herdner", standalone_mode=False)
        sys.stdout.flush()
    except UsageError as error:
        # A command group without a command shows its help; the class is click's or Typer's own.
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), file=sys.stderr)
            return 2
        path = error.ctx.command_path if error.ctx is not None else "herdner"
        complain(f"{plainly(error)} (see {getattr(error, 'see', f'{path} --help')})")
        code = 2
    except typer.Exit as exit:
        code = exit.exit_code
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        code = 130
    except BrokenPipeError:
        quiet_stdout()
    except OSError as error:  # of what is printed here: help, the version, the end of what commands print
        complain_of(error)
        quiet_stdout()
        code = 1
    return code if isinstance(code, int) else 0


def _unwind(*_: object) -> None:
    sys.exit(143)


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script; ``arguments`` are those of the process unless given."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, who wants to hear nothing
            nowhere = Path(os.devnull).open("w")  # noqa: SIM115  # until the process ends
            setattr(sys, name, nowhere)
    # Python's own helper removes the semaphores of a process that was ended in the middle; nobody needs to hear of it.
    asked = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = f"{asked},ignore:resource_tracker" if asked else "ignore:resource_tracker"
    # A polite kill unwinds like Ctrl-C, so that no temporary file is left behind.
    signal.signal(signal.SIGTERM, _unwind)
    try:
        code = run(arguments)
    except SystemExit as exit:
        code = exit.code
    if code in (130, 143):
        # All files are closed by now. Batches that no worker process will take any more must not keep this one waiting.
        deadline = threading.Timer(1.0, os._exit, [code])
        deadline.daemon = True
        deadline.start()
        # All is said by now, and what an executor says when it is taken down in the middle is of no use to anybody.
        sys.stderr.flush()
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    sys.exit(code)
