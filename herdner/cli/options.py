"""Options that several commands share, so that the same option has the same name and help everywhere."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

MAX_RESAMPLES = 10_000_000

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
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a file that leaves something in doubt, such as a name marked inside another; else it is told, and"
        " read as is most plausible.",
    ),
]
MapLabelsOption = Annotated[
    bool, typer.Option("--map-labels", help="Map the classes of known corpora to PER, LOC and ORG; drop the others.")
]
MapOption = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="OLD=NEW", help="Rename a class, everywhere; OLD= drops it. May be repeated."),
]
UnitOption = Annotated[
    Literal["document", "sentence"] | None,
    typer.Option("--unit", help="Resample by document or sentence [default: document, if there are two]."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]
