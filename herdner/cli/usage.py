"""Usage errors, and checks of arguments before a command starts its work."""

from __future__ import annotations

import codecs
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from herdner.base.extras import check_extra
from herdner.base.messages import suggestion
from herdner.base.options import parse_pair

try:
    from typer import TyperException as ParserError
except ImportError:  # older versions of Typer use the exceptions of click
    from click import ClickException as ParserError

__all__ = ["ParserError", "UsageError"]

SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
FIGURE_EXTENSIONS = (".png", ".svg", ".pdf")
_EXPECTED = {  # by the types of pydantic's errors
    "int_parsing": "a valid integer",
    "float_parsing": "a valid number",
    "greater_than_equal": "greater than or equal to {ge:.15g}",
    "less_than_equal": "less than or equal to {le:.15g}",
}


class UsageError(typer.BadParameter):
    """Error in the arguments of a command.

    It ends the command with exit code 2.
    """

    def __init__(self, message: str, see: str | None = None) -> None:
        """Create a usage error from its message.

        Args:
            message: The option, the offending value and the expected value.
            see: Command that shows more; None stands for the help of the current command.
        """
        super().__init__(message)
        self.see = see

    def format_message(self) -> str:
        """Return the error message without the prefix that Typer adds."""
        return self.message


def parser_message(error: ParserError) -> str:
    """Return the message of an error of the command-line parser in the form of herdner's own messages.

    Args:
        error: The error. A `UsageError` has this form already.
    """
    if isinstance(error, UsageError):
        return error.message
    parameter: Any = getattr(error, "param", None)
    if parameter is not None and str(error.message):  # a value that the parameter does not accept
        name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.human_readable_name
        return f"{name}: {_value_problem(error)}"
    if getattr(error, "option_name", None) == "-:":  # -:FORMAT
        return "the format of standard input is an option; write - --input FORMAT, as in - --input conll"
    message = (error.format_message() if parameter is not None else error.message).strip().removesuffix(".")
    if similar := getattr(error, "possibilities", None):
        message += f"; did you mean {', '.join(sorted(similar))}?"
    return message[:1].lower() + message[1:] if message[1:2].islower() else message


def _value_problem(error: ParserError) -> str:
    """Return the problem of a value that the parser rejected; errors of pydantic are described by their types."""
    causes: Any = getattr(error.__cause__, "errors", None)
    cause: dict[str, Any] = causes()[0] if causes is not None else {"ctx": {"error": error.message}}
    details: dict[str, Any] = cause.get("ctx", {})
    if "error" in details:  # the message is complete
        return str(details["error"]).strip().removesuffix(".")
    if cause["type"] in _EXPECTED:
        expected = _EXPECTED[cause["type"]].format_map(details)
    else:
        subject, _, expected = cause["msg"].partition("should be ")
        if not expected:  # such as "String should have at least 1 character"
            return f"{subject}, got {cause['input']!r:.60}"
    return f"must be {expected}, got {cause['input']!r:.60}"


@contextmanager
def usage_errors(
    option: str = "", see: str | None = None, kind: type[ValueError | ImportError] = ValueError
) -> Generator[None]:
    """Convert each error of one kind in the ``with`` block to a usage error that begins with ``option``.

    Args:
        option: Option at the beginning of the message; may be empty.
        see: Command that shows more.
        kind: Class of the errors; `ImportError` for a block that needs an optional library.

    Yields:
        Once, to run the block.

    Raises:
        UsageError: The block raised such an error.
    """
    try:
        yield
    except kind as error:
        raise UsageError(f"{option}: {error}" if option else str(error), see) from None


def is_set(context: typer.Context, name: str) -> bool:
    """Return whether the user has set a parameter of the command.

    Args:
        context: Context of the command.
        name: Name of the parameter in Python.

    Returns:
        False if the parameter has its default value.
    """
    return getattr(context.get_parameter_source(name), "name", "DEFAULT") != "DEFAULT"


def parse_options(pairs: Sequence[str] | None, option: str = "--set") -> dict[str, str]:
    """Parse KEY=VALUE pairs into a dict.

    Args:
        pairs: Values of the option.
        option: Name of the option, for error messages.

    Returns:
        Value of each key.

    Raises:
        UsageError: A value has another form.
    """
    options: dict[str, str] = {}
    for text in pairs or ():
        key_value = parse_pair(text)
        if key_value is None:
            raise UsageError(f"{option} {text!r}: expected KEY=VALUE, as in n_sweeps=400")
        options[key_value[0]] = key_value[1]
    return options


def check_output(
    output: str | os.PathLike[str] | None,
    inputs: Iterable[str | os.PathLike[str] | None] = (),
    option: str = "--output",
    *,
    is_text: bool = True,
) -> None:
    """Raise a usage error unless an output file can be written and differs from all input files.

    Args:
        output: Path of the file; None and "-" are not checked.
        inputs: Paths of all files that the command reads, also of those that options name; None is not checked.
        option: Name of the option, for error messages.
        is_text: The file is text, which may be compressed, but not in an archive.

    Raises:
        UsageError: The path is a folder, its folder does not exist, there is no permission to write, a text file has
            the extension of an archive, or the output is one of the inputs.
    """
    if output is None or output == "-":
        return
    from herdner.text.io.source import check_compression

    path = Path(output)
    if is_text:
        with usage_errors(option):
            check_compression(path)
    folder = path.resolve().parent
    if path.is_dir() or os.fspath(output).endswith(("/", os.sep)):
        raise UsageError(f"{option} {output}: is a folder; name a file in this folder")
    if not folder.is_dir():
        raise UsageError(f"{option} {output}: there is no folder {folder}; create this folder first")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise UsageError(f"{option} {output}: no permission to write; name a file in another folder")
    for name in inputs if path.exists() else ():
        if name is not None and os.path.exists(name) and path.samefile(name):  # noqa: PTH110  # Path("") is a folder
            raise UsageError(f"{option} {output}: this file is also an input; name another output file")


def check_extension(output: str | None, extensions: Iterable[str]) -> str:
    """Return the extension of an output file; raise a usage error if the command does not write its format.

    Args:
        output: Value of ``--output``; None is not checked. Extensions of compression such as ".gz" are ignored.
        extensions: Extensions of the formats that the command writes.

    Returns:
        The extension in lower case, without an extension of compression; "" for None or no extension.

    Raises:
        UsageError: The extension is unknown, such as ".xlsx". Extensions without letters are accepted.
    """
    from herdner.text.io.source import strip_compression_suffix

    extension = Path(strip_compression_suffix(output or "")).suffix.lower()
    if any(map(str.isalpha, extension)) and extension not in extensions:
        office = "; save a CSV file and open it in the spreadsheet program" if extension in SPREADSHEETS else ""
        raise UsageError(
            f"--output {output}: the command cannot write {extension} files{office}; use one of the extensions "
            f"{' '.join(sorted(extensions))}, or add --format"
        )
    return extension


def check_distinct(outputs: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Raise a usage error if two output files are the same file; devices such as /dev/null may be named twice.

    Args:
        outputs: Path of each output by its option; None is not checked.

    Raises:
        UsageError: Two outputs have the same path.
    """
    options: dict[Path, str] = {}
    for option, output in outputs.items():
        if output is not None and output != "-" and (Path(output).is_file() or not Path(output).exists()):
            earlier = options.setdefault(Path(output).resolve(), option)
            if earlier != option:
                raise UsageError(f"{option} {output}: {earlier} names the same file; name another output file")


def check_format(format: str | None, option: str = "--input", *, is_output: bool = False) -> None:
    """Raise a usage error unless herdner can read or write files of the format ``format``.

    Args:
        format: Value of the option; None is not checked.
        option: Name of the option.
        is_output: True for a format to write, False for a format to read.

    Raises:
        UsageError: The format is unknown.
    """
    from herdner.corpora.formats import READABLE, WRITABLE

    known = WRITABLE if is_output else READABLE
    if format is not None and format not in known:
        raise UsageError(
            f"{option} {format!r}: unknown format; {suggestion(format, known)}expected one of {', '.join(known)}"
        )


def check_figure(path: Path | None) -> None:
    """Raise a usage error unless a figure can be drawn and its file can be written.

    Args:
        path: Value of ``--figure``; None is not checked.

    Raises:
        UsageError: The file cannot be written, its extension is unknown or Matplotlib is not installed.
    """
    if path is None:
        return
    check_output(path, option="--figure", is_text=False)
    with usage_errors(kind=ImportError):
        check_extra("matplotlib", "--figure needs Matplotlib")
    if path.suffix.lower() not in FIGURE_EXTENSIONS:
        raise UsageError(f"--figure {path}: expected the file extension {' or '.join(FIGURE_EXTENSIONS)}")


def check_encoding(encoding: str) -> None:
    """Raise a usage error unless Python knows the encoding ``encoding``.

    Args:
        encoding: Name of the encoding.

    Raises:
        UsageError: The encoding is unknown.
    """
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise UsageError(f"--encoding {encoding!r}: unknown encoding; use for example utf-8 or latin-1") from None
