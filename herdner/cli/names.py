"""Options for names that the user knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from herdner.cli.usage import UsageError

if TYPE_CHECKING:
    from herdner import Names

NamesOption = Annotated[
    str | None,
    typer.Option(
        "--names",
        metavar="FILE",
        help="Names that you know: a name, a tab and a label a line, or JSON lines as spaCy's entity ruler has them.",
    ),
]
StrengthOption = Annotated[
    float | None,
    typer.Option(
        "--names-strength", help="How much a name of --names counts: log-odds for each of its tokens [default: 3]."
    ),
]
HardOption = Annotated[
    bool, typer.Option("--names-hard", help="Names of --names come out whatever the context says, the longest first.")
]
FoldCaseOption = Annotated[
    bool, typer.Option("--names-fold-case", help="Find names of --names in upper and lower case alike.")
]


def known_names(path: str | None, strength: float | None, hard: bool, fold_case: bool) -> Names | None:
    """What the options ask for; one without ``--names`` is wrong use."""
    given = {"--names-strength": strength is not None, "--names-hard": hard, "--names-fold-case": fold_case}
    if path is None:
        for option, is_given in given.items():
            if is_given:
                raise UsageError(f"{option} goes with --names FILE")
        return None
    if hard and strength is not None:
        raise UsageError("--names-strength: with --names-hard nothing is weighed; leave one of them out")
    from herdner.ner.known_names import Names

    choices: dict[str, Any] = {} if strength is None else {"strength": strength}
    return Names.read(path, hard=hard, fold_case=fold_case, **choices)
