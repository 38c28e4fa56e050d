"""Functions of several commands: messages, exit codes, inference options, output files, progress displays."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

import typer

from herdner.base.extras import MissingExtra
from herdner.base.interrupts import raise_on_interrupt, restore_interrupt
from herdner.base.memory import NotEnoughMemory
from herdner.base.messages import suggestion
from herdner.base.options import parse_option
from herdner.base.progress import show_progress
from herdner.cli.usage import UsageError, parse_options, usage_errors

if TYPE_CHECKING:
    from rich.console import Console

    from herdner import Names, Tagger
    from herdner.inference import Backend
    from herdner.ner.inference import ConfidenceOf, Inference

logger = logging.getLogger(__name__)


def print_message(message: object) -> None:
    """Print ``message`` as one line on stderr.

    Args:
        message: Text; line breaks become spaces, and characters that UTF-8 cannot encode are escaped.
    """
    line = " ".join(str(message).split())
    if isinstance(sys.stdout, TerminalOutput):
        sys.stdout.end_line()
    print(f"herdner: {line}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr)


class TerminalOutput(io.TextIOBase):
    """Standard output on a terminal. It can end an unfinished line, so that a message begins on a new line.

    Args:
        stream: The original standard output.
    """

    def __init__(self, stream: TextIO) -> None:
        """Store ``stream``, the original standard output."""
        self._stream = stream
        self._is_unfinished = False

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Encoding of the terminal."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor of the terminal."""
        return self._stream.fileno()

    def write(self, text: str, /) -> int:
        """Write a text to the output in UTF-8, and record whether the text ends with a line feed.

        Args:
            text: The text.

        Returns:
            Number of characters.
        """
        if text:
            self._stream.flush()
            self._stream.buffer.write(text.encode("utf-8", "replace"))
            self._is_unfinished = not text.endswith("\n")
        return len(text)

    def flush(self) -> None:
        """Write all buffered text to the terminal."""
        self._stream.flush()

    def end_line(self) -> None:
        """Write a newline if the last line lacks one, and write all buffered text."""
        if self._is_unfinished:
            self.write("\n")
        self.flush()


def print_note(note: object) -> None:
    """Print a note (not an error message) as one line on stderr. ``--quiet`` suppresses notes.

    Args:
        note: Text, as in `print_message`.
    """
    if logging.getLogger("herdner").isEnabledFor(logging.WARNING):
        print_message(note)


class MessageHandler(logging.Handler):
    """Handler that prints each log record as one line on stderr.

    Records below the level WARNING begin with the seconds since the start.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Print a log record as one line on stderr.

        Args:
            record: The record.
        """
        seconds = f"[{record.relativeCreated / 1000:.1f} s] " if record.levelno < logging.WARNING else ""
        print_message(seconds + record.getMessage())


def print_os_error(error: OSError) -> None:
    """Print an error of the operating system on stderr: the file and the reason.

    Args:
        error: The error.
    """
    if error.errno == errno.EBADF and error.filename is None:
        print_message("standard output is closed, so the results are lost; redirect it to a file")
        return
    name = error.filename or ("standard output" if error.errno == errno.ENOSPC else None)
    problem = "no such file" if error.errno == errno.ENOENT else error.strerror
    print_message(f"{name}: {problem}" if name and problem else problem or error)


def discard_stdout() -> None:
    """Discard all further standard output, because its reader (such as ``head``) has closed the pipe."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = io.StringIO()


@contextmanager
def handle_errors() -> Generator[None]:
    """Convert errors in the ``with`` block, such as bad input or a full disk, to a one-line message and `typer.Exit`.

    Other exceptions, such as usage errors, are not changed.

    Yields:
        None.

    Raises:
        typer.Exit: The block raised one of these errors (exit code 1), was interrupted (130), or its pipe was closed
            (0).
    """
    try:
        raise_on_interrupt()
        with restore_interrupt():
            yield
        return
    except KeyboardInterrupt as interrupt:
        print_message(str(interrupt) if type(interrupt) is KeyboardInterrupt and interrupt.args else "interrupted")
        raise typer.Exit(130) from None
    except BrokenPipeError:
        discard_stdout()
        raise typer.Exit(0) from None
    except NotEnoughMemory as error:
        print_message(error)
    except MemoryError:
        print_message("not enough memory; process fewer or shorter documents at a time")
    except OSError as error:
        print_os_error(error)
        if error.filename is None:
            discard_stdout()  # its buffer may hold output that cannot be written
    except (ValueError, MissingExtra) as error:
        print_message(error)
    raise typer.Exit(1)


def parse_backend(name: str, options: Mapping[str, object]) -> Backend:
    """Create an inference backend from its name and its KEY=VALUE options.

    Args:
        name: Name of the backend.
        options: Its options; values may be text.

    Returns:
        The backend.

    Raises:
        UsageError: The backend or an option is unknown, or a value is not valid.
    """
    from herdner.inference.registry import BACKENDS, make_backend

    with usage_errors(see=f"herdner backends {name}" if name in BACKENDS else "herdner backends"):
        return make_backend(name, **options)


def parse_inference(
    backend: str | None, pairs: Sequence[str] | None, tagger: Tagger, option: str = "--set", names: Names | None = None,
    min_confidence: float | None = None,
    name_bias: float = 0.0,
    min_confidence_of: ConfidenceOf = "name",
) -> Inference:  # fmt: skip
    """Build the `Inference` object, which holds the settings for tagging, from the options of a command.

    Args:
        backend: Name of the backend; None: the backend of the tagger.
        pairs: KEY=VALUE pairs: options of the backend, and ``links=false``, which ignores the links.
        tagger: Tagger that will use the options.
        option: Name of the option that contains the pairs, for error messages.
        names: Known names, or None.
        min_confidence: Names with a lower confidence are removed; None keeps all.
        name_bias: Number that is added to the model's log-odds of each token to be part of a name.
        min_confidence_of: Confidence that is compared with ``min_confidence``: that of a "name" or of each "mention".

    Returns:
        The settings for tagging.

    Raises:
        UsageError: The backend or an option is unknown, or a value is not valid.
        ValueError: The model does not know the label of a known name.
    """
    from herdner.ner.inference import DEFAULT_BACKEND

    options = parse_options(pairs, option)
    with usage_errors():
        links = parse_option(options.pop("links"), bool, f"{option} links") if "links" in options else None
    parsed = None
    if backend is not None or options:
        for key, value in options.items():
            if hint := suggestion(key, ["links"]):
                raise UsageError(f"{option} {key}={value}: {hint}To tag without links, write links=false")
        parsed = parse_backend(DEFAULT_BACKEND if backend is None else backend, options)
    return tagger.inference(
        backend=parsed, links=links, names=names, min_confidence=min_confidence, name_bias=name_bias,
        min_confidence_of=min_confidence_of,
    )  # fmt: skip


def parse_names(path: str | None, strength: float | None, hard: bool, fold_case: bool) -> Names | None:
    """Read known names from the file that ``--names`` gives, and apply the other options for known names.

    Args:
        path: Value of ``--names``.
        strength: Value of ``--names-strength``.
        hard: Value of ``--names-hard``.
        fold_case: Value of ``--names-fold-case``.

    Returns:
        The names; None without ``--names``.

    Raises:
        UsageError: An option needs ``--names``, or two options exclude each other.
        ValueError: The file is not valid.
    """
    values = {"--names-strength": strength is not None, "--names-hard": hard, "--names-fold-case": fold_case}
    if path is None:
        for option, value in values.items():
            if value:
                raise UsageError(f"{option} requires a list of names; add --names FILE")
        return None
    if hard and strength is not None:
        raise UsageError("--names-strength has no effect with --names-hard; leave out one of the two options")
    from herdner.ner.known_names import Names

    settings: dict[str, Any] = {} if strength is None else {"strength": strength}
    return Names.read(path, hard=hard, fold_case=fold_case, **settings)


@contextmanager
def open_output(output: str | None) -> Generator[IO[Any]]:
    """Open standard output or a text file for writing.

    The file appears when it is complete. It is compressed if it has the file extension of a compression format.

    Args:
        output: Path of the file; None and "-" are standard output.

    Yields:
        A text stream, for `herdner.text.io.write.utf8`.
    """
    if output is None or output == "-":
        if not sys.stdout.isatty():
            yield sys.stdout
            return
        with redirect_stdout(TerminalOutput(sys.stdout)) as terminal:
            try:
                yield cast("IO[Any]", terminal)
            finally:
                with suppress(OSError):  # the terminal was closed
                    terminal.end_line()
        return
    from herdner.text.io.source import create_file

    with create_file(output) as binary:
        stream = io.TextIOWrapper(binary, encoding="utf-8", newline="\n", write_through=True)
        try:
            yield stream
        finally:
            stream.detach()
    logger.info("%s is written", output)


def make_console() -> Console:
    """Return a console of the library ``rich`` that prints to standard output and ignores markup.

    A closed pipe raises `BrokenPipeError`, as with ``print``, instead of ending the process with exit code 1.
    """
    from rich.console import Console

    class StandardOutput(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return StandardOutput(file=sys.stdout, highlight=False, markup=False, emoji=False)


@contextmanager
def show_activity(description: str) -> Generator[None]:
    """Show an activity display on stderr for work of unknown length.

    Args:
        description: Name of the work.

    Yields:
        Once, to do the work.
    """
    with show_progress() as display:
        display.add_task(description, total=None)
        yield


@contextmanager
def show_files(description: str, n_files: int, *, visible: bool = True) -> Generator[Callable[[], None]]:
    """Show a progress bar on stderr with the number of finished files.

    Args:
        description: Name of the work.
        n_files: Number of all files.
        visible: False hides the display.

    Yields:
        Function to call after each file.
    """
    with show_progress("{task.completed} of {task.total} files", visible=visible) as display:
        task = display.add_task(description, total=n_files)
        yield lambda: display.advance(task)
