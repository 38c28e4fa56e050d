"""Wrong use, found before any work is done: one line that names the option and what it expects."""

from __future__ import annotations

import codecs
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from herdner.base.extras import MissingExtra, check_extra
from herdner.base.options import parse_pair

# Typer's own base class; it lives in click or inside Typer, depending on Typer's version.
UsageError: Any = typer.BadParameter.__mro__[1]

FIGURES = (".png", ".svg", ".pdf")
# What a value was to be, by pydantic's word for what it is not.
_EXPECTED = {
    "int_parsing": "a whole number", "int_from_float": "a whole number", "float_parsing": "a number",
    "greater_than_equal": "at least {ge:.12g}", "less_than_equal": "at most {le:.12g}",
}  # fmt: skip


@contextmanager
def wrong_use(option: str = "", see: str | None = None) -> Generator[None]:
    """A ValueError of what stands inside is wrong use, of this option; ``see`` is the command that says more."""
    try:
        yield
    except ValueError as error:
        wrong = UsageError(f"{option}: {error}" if option else str(error))
        if see is not None:
            wrong.see = see
        raise wrong from None


def plainly(error: Any) -> str:
    """What a wrong use says, in words of our own where it is said of a value by Typer, or by pydantic behind it."""
    if getattr(error, "param", None) is None:
        return error.format_message()
    option = error.param.opts[0]
    value, of, words = error.message.removeprefix("Value error, ").partition(" is not one of ")
    if of:
        choices = words.rstrip(".").replace("'", "").split(", ")
        expected = " or ".join(choices) if len(choices) == 2 else f"one of {', '.join(choices)}"
        return f"{option} {value}: expected {expected}"
    is_pydantic = type(error.__cause__).__name__ == "ValidationError"
    found: dict[str, Any] = error.__cause__.errors()[0] if is_pydantic else {}
    expected = _EXPECTED.get(found.get("type", ""))
    if expected is None:
        return error.format_message()
    return f"{option} {found['input']!r}: expected {expected.format(**found.get('ctx', {}))}"


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the user has set this parameter of the command."""
    return getattr(context.get_parameter_source(name), "name", "DEFAULT") != "DEFAULT"


def options_of(pairs: Sequence[str] | None, option: str = "--set") -> dict[str, str]:
    """KEY=VALUE pairs, given by ``option``, as a mapping; what is none is wrong use."""
    options: dict[str, str] = {}
    for text in pairs or ():
        found = parse_pair(text)
        if found is None:
            raise UsageError(f"{option} {text!r}: expected KEY=VALUE, as in n_sweeps=400")
        options[found[0]] = found[1]
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


def check_not_input(output: str | os.PathLike[str] | None, inputs: Iterable[str], option: str = "--output") -> None:
    """An output that is one of the inputs is wrong use: what is in it would be lost."""
    if output is None or not os.path.exists(output):  # noqa: PTH110 (as ``-`` and an empty name are none)
        return
    for name in inputs:
        if os.path.exists(name) and os.path.samefile(name, output):  # noqa: PTH110, PTH121
            raise UsageError(f"{option} {output}: is also what is read; name another file")


def check_figure(path: Path | None, option: str) -> None:
    """A figure that cannot be drawn or written is wrong use, found before any work is done."""
    if path is None:
        return
    check_writable(path, option)
    try:
        check_extra("matplotlib", f"{option} needs Matplotlib")
    except MissingExtra as error:
        raise UsageError(str(error)) from None
    if path.suffix.lower() not in FIGURES:
        raise UsageError(f"{option} {path}: expected an ending {', '.join(FIGURES[:-1])} or {FIGURES[-1]}")


def check_encoding(encoding: str) -> None:
    """An encoding that Python does not know is wrong use."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise UsageError(f"--encoding {encoding!r}: unknown; expected e.g. utf-8 or latin-1") from None
