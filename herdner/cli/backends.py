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
    import dataclasses
    import json

    from herdner.inference.registry import BACKENDS, backend_class

    described = {}
    for name in BACKENDS:
        kind = backend_class(name)
        options = {
            f.name: f.default if f.default is not dataclasses.MISSING else None for f in dataclasses.fields(kind)
        }
        described[name] = {"description": (kind.__doc__ or "").strip().split("\n")[0], "options": options}
    if json_:
        print(json.dumps(described, default=str))
        return
    for name, entry in described.items():
        print(f"{name}: {entry['description']}")
        for option, default in entry["options"].items():
            print(f"    --set {option}={default}")
