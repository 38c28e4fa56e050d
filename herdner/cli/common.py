"""What the commands share: errors as one line, options, standard streams, progress."""

from __future__ import annotations

import codecs
import functools
import io
import os
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from herdner import Tagger
    from herdner.evaluation.compare import Unit

P = ParamSpec("P")
T = TypeVar("T")

# Typer's own base class; it lives in click or inside Typer, depending on Typer's version.
UsageError: Any = typer.BadParameter.__mro__[1]

ModelOption = Annotated[str, typer.Option("--model", "-m", help="Name of a shipped model, or path of a model file.")]
BackendOption = Annotated[
    str | None,
    typer.Option("--backend", "-b", help="Inference backend (see `herdner backends`) [default: the model's]."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Option of the backend; may be repeated. links=false leaves the links between mentions out.",
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of the random numbers; equal seeds, equal results.")
]
EncodingOption = Annotated[str, typer.Option("--encoding", help="Encoding of the input files.")]
MapLabelsOption = Annotated[
    bool, typer.Option("--map-labels", help="Map the classes of known corpora to PER, LOC and ORG; drop the others.")
]
UnitOption = Annotated[
    str | None, typer.Option("--unit", help="Resample by document or sentence [default: document, if there are two].")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]


def complain(message: object) -> None:
    """One line on stderr, whatever the message holds."""
    line = " ".join(str(message).split())
    print(f"herdner: {line}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr)


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
        from herdner.corpora.registry import CorpusError

        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            quiet_stdout()
            raise typer.Exit(0) from None
        except MemoryError:
            complain("not enough memory; split the input into smaller documents")
        except OSError as error:
            complain(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error)
        except (ValueError, CorpusError) as error:
            complain(error)
        raise typer.Exit(1)

    return guarded


def inference(
    backend: str | None, pairs: Sequence[str] | None, tagger: Tagger, option: str = "--set"
) -> dict[str, Any]:
    """A backend and KEY=VALUE pairs (given by ``option``) as arguments of `Tagger.pipe`; wrong ones are wrong use.

    Beside the backend's own options there is ``links=false``, which leaves the links between mentions out.
    """
    from herdner.inference.registry import BACKENDS, make_backend
    from herdner.ner.tagger import DEFAULT_BACKEND

    options: dict[str, Any] = options_of(pairs, option)
    chosen: dict[str, Any] = {}
    if "links" in options:
        chosen["links"] = _yes_or_no(options.pop("links"), f"{option} links")
    if backend is None and not options:
        return chosen
    name = backend if backend is not None else tagger.backend if isinstance(tagger.backend, str) else DEFAULT_BACKEND
    try:
        make_backend(name, **options)
    except ValueError as error:
        wrong = UsageError(str(error))
        wrong.see = f"herdner backends {name}" if name in BACKENDS else "herdner backends"
        raise wrong from None
    return {**chosen, "backend": name, **options}


def _yes_or_no(text: str, what: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{what} must be true or false, not {text!r}")
    return text.lower() == "true"


def options_of(pairs: Sequence[str] | None, option: str = "--set") -> dict[str, str]:
    """KEY=VALUE pairs, given by ``option``, as a mapping; what is none is wrong use."""
    options = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"{option} {pair!r}: expected KEY=VALUE, as in n_sweeps=400")
        options[key] = value
    return options


def check_writable(output: str | os.PathLike[str] | None, option: str = "--output") -> None:
    """A place that cannot be written to is wrong use, found before any work is done."""
    if output is None or output == "-":
        return
    path = Path(output)
    folder = path.resolve().parent
    if path.is_dir():
        raise UsageError(f"{option} {output}: is a folder; name a file in it")
    if not folder.is_dir():
        raise UsageError(f"{option} {output}: there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise UsageError(f"{option} {output}: no permission to write there")


def check_choice(option: str, value: str, choices: Iterable[str]) -> None:
    """A word that is not among the choices is wrong use."""
    if value not in (known := tuple(choices)):
        expected = " or ".join(known) if len(known) == 2 else f"one of {', '.join(known)}"
        raise UsageError(f"{option} {value!r}: expected {expected}")


def unit_of(name: str | None) -> Unit | None:
    """What ``--unit`` says; None where it is not given."""
    if name is None:
        return None
    check_choice("--unit", name, ("document", "sentence"))
    return "sentence" if name == "sentence" else "document"


def check_encoding(encoding: str) -> None:
    """An encoding that Python does not know is wrong use."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise UsageError(f"--encoding {encoding!r}: unknown; expected e.g. utf-8 or latin-1") from None


@contextmanager
def destination(output: str | None) -> Generator[IO[Any]]:
    """Standard output, or a text stream (with ``buffer``) on a file that appears when it is complete."""
    if output is None or output == "-":
        yield sys.stdout
        return
    from herdner.base.files import replacing

    with replacing(output) as binary:
        stream = io.TextIOWrapper(binary, encoding="utf-8", newline="\n", write_through=True)
        try:
            yield stream
        finally:
            stream.detach()


@contextmanager
def progress(*columns: str, shown: bool = True) -> Generator[Progress]:
    """A progress display on stderr: only on a terminal, and not where it would mix with output on the same terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    texts = [TextColumn(column) for column in columns]
    live = shown and sys.stderr.isatty()
    with Progress(
        TextColumn("{task.description}"), BarColumn(), *texts, TimeElapsedColumn(),
        console=Console(stderr=True), transient=True, disable=not live,
    ) as display:  # fmt: skip
        yield display
