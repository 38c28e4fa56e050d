"""``herdner backends``: what can do the inference, and with which options."""

from __future__ import annotations

from typing import Annotated

import typer

from herdner.cli.common import command


@command
def backends(
    json_: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """List the inference backends and their options."""
    import json

    from herdner.inference.registry import BACKENDS, describe_backend

    described = [describe_backend(name) for name in BACKENDS]
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
        for option in entry.options:
            print(f"    --set {option.name}={option.default}  ({option.type})")
