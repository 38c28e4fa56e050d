"""Decorator of all commands: groups of options, verbosity, and one-line messages for errors."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from herdner.cli.common import handle_errors
from herdner.cli.usage import UsageError

T = TypeVar("T")
LOGGERS = ("herdner", "herdner.base.memory")

# fmt: off
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Log each step of the work on stderr.")]
QuietOption = Annotated[bool, typer.Option(
    "--quiet", help="Print only errors on stderr: no progress, no notes, no warnings.")]
# fmt: on


def command(function: Callable[..., T]) -> Callable[..., T]:
    """Decorate a command: expand its groups of options, add ``--verbose`` and ``--quiet``, and handle errors.

    Args:
        function: Command; each parameter is an option, an argument, or a group (a dataclass of options).

    Returns:
        A command with one parameter for each option. It raises no other exceptions than `typer.Exit` and usage errors.
    """
    parameters, groups = _expanded_parameters(function)

    @functools.wraps(function)
    def expand_options(*, verbose: bool = False, quiet: bool = False, **values: Any) -> T:
        _set_verbosity(verbose, quiet)
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        with handle_errors():
            return function(**values)

    for name, annotation in {"verbose": VerboseOption, "quiet": QuietOption}.items():
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation))
    described: Any = expand_options
    described.__signature__ = inspect.Signature(parameters)
    described.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expand_options


def _expanded_parameters(function: Callable[..., object]) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    """Return the parameters of a command or group, with those of its option groups, and the dataclass of each group."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        annotation = hints[parameter.name]
        if isinstance(annotation, type) and is_dataclass(annotation):
            groups[parameter.name] = annotation
            parameters += _expanded_parameters(annotation)[0]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation))
    return parameters, groups


def _set_verbosity(verbose: bool, quiet: bool) -> None:
    """Set the level of herdner's loggers. The level also decides whether notes and progress displays are shown."""
    if verbose and quiet:
        raise UsageError("--verbose contradicts --quiet; leave out one of the two options")
    if verbose or quiet:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.INFO if verbose else logging.ERROR)
