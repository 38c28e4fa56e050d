"""Command line, one file for each command. Heavy modules are imported by the commands that use them."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from herdner import __version__
from herdner.cli.backends import backends
from herdner.cli.common import MessageHandler, discard_stdout, print_message, print_note, print_os_error
from herdner.cli.corpora import corpora
from herdner.cli.denoise import denoise
from herdner.cli.evaluate import evaluate
from herdner.cli.explain import explain
from herdner.cli.infer import infer
from herdner.cli.names import names
from herdner.cli.pseudonymise import pseudonymise
from herdner.cli.report import report
from herdner.cli.restore import restore
from herdner.cli.scan import scan
from herdner.cli.serve import serve
from herdner.cli.suggest import suggest
from herdner.cli.tag import tag
from herdner.cli.train import train
from herdner.cli.usage import ParserError, parser_message

app = typer.Typer(name="herdner", rich_markup_mode=None, pretty_exceptions_enable=False)
for command in (
    tag, names, pseudonymise, restore, suggest, explain, train, evaluate, report, backends, denoise, scan, infer, serve,
):  # fmt: skip
    app.command()(command)
app.add_typer(corpora, name="corpora")


def _show_version(value: bool) -> None:
    if value:
        print(f"herdner {__version__}")
        raise typer.Exit


@corpora.callback(invoke_without_command=True)
def _show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)


@app.callback(invoke_without_command=True)
def herdner(
    context: typer.Context,
    version: Annotated[bool, typer.Option(
        "--version", callback=_show_version, is_eager=True, help="Show the version.")] = False,
) -> None:  # fmt: skip
    """Find names in texts, consistently across each document.

    Exit codes: 0 success, 1 failure of some input (other files are still processed), 2 usage error.
    """
    _show_help(context)


def _print_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Print a warning as one line, unless it is a deprecation warning."""
    if not issubclass(category, DeprecationWarning | PendingDeprecationWarning):
        print_note(message)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the ``herdner`` command with these arguments.

    Every failure that bad input can cause prints one line on stderr.

    Args:
        arguments: Arguments of the command line; None: the arguments of the process.

    Returns:
        Exit code.
    """
    logging.basicConfig(handlers=[MessageHandler()], level=logging.WARNING)
    logging.getLogger("herdner").setLevel(logging.NOTSET)  # --verbose and --quiet of an earlier call end with it
    logging.getLogger("herdner.base.memory").setLevel(logging.INFO)  # estimates of large amounts of memory
    code: Any = 0
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            code = app(arguments, prog_name="herdner", standalone_mode=False)
        sys.stdout.flush()
    except ParserError as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else f"herdner {_command_of(arguments)}".rstrip()
        help_command = f"{path} --help"
        print_message(f"{parser_message(error)} (see {getattr(error, 'see', None) or help_command})")
        code = 2
    except typer.Exit as exit:
        code = exit.exit_code
    except SystemExit as exit:
        if not isinstance(exit.__context__, BrokenPipeError):
            raise
        discard_stdout()  # Typer exits with code 1 if nobody reads its help
    except (KeyboardInterrupt, typer.Abort):
        print_message("interrupted")
        code = 130
    except BrokenPipeError:
        discard_stdout()
    except OSError as error:  # standard output could not be written
        print_os_error(error)
        discard_stdout()
        code = 1
    return code if isinstance(code, int) else 0


def _command_of(arguments: Sequence[str] | None) -> str:
    """Return the command that arguments name, for errors of the parser that do not name it; "" if there is none."""
    words = list(sys.argv[1:] if arguments is None else arguments)[:2]
    if words[:1] == ["corpora"]:
        return " ".join(words) if words[1:] and not words[1].startswith("-") else "corpora"
    return next((word for word in words[:1] if not word.startswith("-")), "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the ``herdner`` command, and end the process with the exit code of the command.

    Args:
        arguments: Arguments of the command line; None: the arguments of the process.
    """
    _replace_closed_streams()
    # Python's resource tracker warns when it removes the semaphores of an interrupted process.
    filters = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = f"{filters},ignore:resource_tracker" if filters else "ignore:resource_tracker"
    signal.signal(signal.SIGTERM, _exit_by_signal)  # removes temporary files, as after Ctrl-C
    try:
        code = run(arguments)
    except SystemExit as exit:
        code = exit.code
    if isinstance(code, int) and code:
        _end_soon(code)
    sys.exit(code)


def _replace_closed_streams() -> None:
    """Replace standard streams that the caller has closed. The new streams stay open until the process ends.

    Writing to the new standard output is an error. Messages on the new standard error are discarded.
    """
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


def _exit_by_signal(*_: object) -> None:
    sys.exit(143)


def _end_soon(code: int) -> None:
    """End the process within a second, even if the process pool still waits for its terminated workers.

    All files are closed by now. Messages of the pool about its termination are discarded.
    """
    if code not in (130, 143):
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()  # may take longer than a second if the reader of a pipe is slow
    deadline = threading.Timer(1.0, os._exit, [code])
    deadline.daemon = True
    deadline.start()
    sys.stderr.flush()
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
