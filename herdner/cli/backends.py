"""Command ``herdner backends``: inference backends and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from herdner.cli import options as opt
from herdner.cli.command import command
from herdner.cli.usage import usage_errors


@command
def backends(
    name: Annotated[str | None, typer.Argument(
        metavar="NAME", help="Show only this backend, with its options.")] = None,
    json_: opt.JsonOption = False,
) -> None:  # fmt: skip
    """List the inference backends, or show one backend's options (for --set) and their default values."""
    import json

    from herdner.inference.registry import BACKENDS, describe_backend

    with usage_errors():
        descriptions = [describe_backend(each) for each in (BACKENDS if name is None else [name])]
    if json_:
        values = {
            entry.name: {
                "description": entry.summary,
                "options": {o.name: {"type": o.type, "default": o.default} for o in entry.options},
            }
            for entry in descriptions
        }
        print(json.dumps(values, default=str))
        return
    for entry in descriptions:
        print(f"{entry.name}: {entry.summary}")
    if name is None:
        print("\nherdner backends NAME shows the options of a backend.")
        return
    for option in descriptions[0].options:
        print(f"    --set {option.name}={_to_text(option.default)}  ({option.type})")


def _to_text(default: object) -> str:
    """Return the default value of an option as text that --set accepts, quoted for the shell."""
    text = str(default).lower() if default is None or isinstance(default, bool) else str(default)
    return f"'{text}'" if set(text) & set(" ()") else text
