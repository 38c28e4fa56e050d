"""What the commands share: errors as one line, backends, standard streams, progress."""

from __future__ import annotations

import errno
import functools
import io
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import typer

from herdner.base.extras import MissingExtra
from herdner.base.interrupts import raise_on_interrupt, restore_interrupt
from herdner.base.memory import NotEnoughMemory
from herdner.base.options import parse_option
from herdner.cli.usage import options_of, wrong_use

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from herdner import Tagger
    from herdner.inference import Backend
    from herdner.ner.inference import Inference
    from herdner.ner.known_names import Names

P = ParamSpec("P")
T = TypeVar("T")


def complain(message: object) -> None:
    """One line on stderr, whatever the message holds."""
    line = " ".join(str(message).split())
    print(f"herdner: {line}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr)


def complain_of(error: OSError) -> None:
    """One line on what the system refused: of which file, where it says so; files that are written do."""
    where = error.filename or ("standard output" if error.errno == errno.ENOSPC else None)
    complain(f"{where}: {error.strerror}" if where and error.strerror else error.strerror or error)


def quiet_stdout() -> None:
    """Nobody reads stdout any more (as in ``| head``): what is still buffered goes nowhere, without a complaint."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = io.StringIO()


def command(function: Callable[P, T]) -> Callable[P, T]:
    """Turns what bad input, a full disk or a closed pipe raise into one line and an exit code."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            raise_on_interrupt()
            with restore_interrupt():
                return function(*args, **kwargs)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            quiet_stdout()
            raise typer.Exit(0) from None
        except NotEnoughMemory as error:
            complain(error)
        except MemoryError:
            complain("not enough memory; give less at a time")
        except OSError as error:
            complain_of(error)
        except (ValueError, MissingExtra, _corpus_error()) as error:
            complain(error)
        raise typer.Exit(1)

    return guarded


def _corpus_error() -> type[Exception]:
    """Looked up when something fails: the registry takes longer to import than most commands need it."""
    from herdner.corpora.registry import CorpusError

    return CorpusError


def backend_of(name: str, options: Mapping[str, object]) -> Backend:
    """A backend by its name; an unknown one and wrong options are wrong use."""
    from herdner.inference.registry import BACKENDS, make_backend

    with wrong_use(see=f"herdner backends {name}" if name in BACKENDS else "herdner backends"):
        return make_backend(name, **options)


def inference(
    backend: str | None,
    pairs: Sequence[str] | None,
    tagger: Tagger,
    option: str = "--set",
    names: Names | None = None,
    min_confidence: float | None = None,
) -> Inference:
    """Build the options of tagging from a backend's name and KEY=VALUE pairs; invalid ones are usage errors.

    Args:
        backend: Name of a backend, or None.
        pairs: Options of the backend as KEY=VALUE, and ``links=false``, which tags without links.
        tagger: Tagger that will use the options.
        option: Command-line option of the pairs, for error messages.
        names: Known names, or None.
        min_confidence: Lowest confidence of an entity that is kept, or None.

    Raises:
        ValueError: The model lacks the label of a known name.
    """
    from herdner.ner.inference import DEFAULT_BACKEND

    options = options_of(pairs, option)
    with wrong_use():
        links = parse_option(options.pop("links"), bool, f"{option} links") if "links" in options else None
    chosen = None
    if backend is not None or options:
        chosen = backend_of(DEFAULT_BACKEND if backend is None else backend, options)
    return tagger.inference(backend=chosen, links=links, names=names, min_confidence=min_confidence)


@contextmanager
def destination(output: str | None) -> Generator[IO[Any]]:
    """Standard output, or a text stream (with ``buffer``) on a file that appears when it is complete; it is compressed
    if its ending says so.
    """
    if output is None or output == "-":
        yield sys.stdout
        return
    from herdner.base.files import atomic_write
    from herdner.text.io.source import COMPRESSED, packed

    kind = COMPRESSED.get(Path(output).suffix)
    with atomic_write(output) as file, nullcontext(file) if kind is None else packed(kind, file) as binary:
        stream = io.TextIOWrapper(binary, encoding="utf-8", newline="\n", write_through=True)
        try:
            yield stream
        finally:
            stream.detach()


class Unseen:
    """Stands in for a progress display that nobody would see."""

    def add_task(self, description: str, total: float | None = None, **fields: object) -> TaskID:
        return cast("TaskID", 0)

    def update(self, task: TaskID, **fields: object) -> None: ...

    def advance(self, task: TaskID, advance: float = 1) -> None: ...


@contextmanager
def working(what: str) -> Generator[None]:
    """`progress` of work that does not say how far it is."""
    with progress() as display:
        display.add_task(what, total=None)
        yield


@contextmanager
def progress(*columns: str, shown: bool = True) -> Generator[Progress | Unseen]:
    """A progress display on stderr: only on a terminal, and not where it would mix with output on the same terminal."""
    if not (shown and sys.stderr.isatty()):
        yield Unseen()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    texts = [TextColumn(column) for column in columns]
    with Progress(
        TextColumn("{task.description}"), BarColumn(), *texts, TimeElapsedColumn(),
        console=Console(stderr=True), transient=True,
    ) as display:  # fmt: skip
        yield display
