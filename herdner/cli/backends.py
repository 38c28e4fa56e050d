"""``herdner backends``: what can do the inference, and with which options."""

from __future__ import annotations

from typing import Annotated

import typer

from herdner.cli.common import command
from herdner.cli.options import JsonOption
from herdner.cli.usage import wrong_use


@command
def backends(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show this backend alone, with its options.")
    ] = None,
    json_: JsonOption = False,
) -> None:
    """List the inference backends; of one of them, the options for --set and their defaults."""
    import json

    from herdner.inference.registry import BACKENDS, describe_backend

    with wrong_use():
        described = [describe_backend(each) for each in (BACKENDS if name is None else [name])]
    if json_:
        shown = {
            entry.name: {
                "description": entry.summary,
                "options": {o.name: {"type": o.type, "default": o.default} for o in entry.options},
            }
            for entry in described
        }
        print(json.dumps(shown, default=str))
        return
    for entry in described:
        print(f"{entry.name}: {entry.summary}")
    if name is None:
        print("\nherdner backends NAME shows the options of one.")
        return
    for option in described[0].options:
        print(f"    --set {option.name}={_text(option.default)}  ({option.type})")


def _text(default: object) -> str:
    """A default as --set takes it."""
    text = str(default).lower() if default is None or isinstance(default, bool) else str(default)
    return f"'{text}'" if set(text) & set(" ()") else text
