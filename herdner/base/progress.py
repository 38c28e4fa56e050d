"""Progress bars on terminals and in notebooks."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress


class HiddenProgress:
    """Progress display that shows nothing.

    It accepts every method call of `rich.progress.Progress`.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function that does nothing, for any attribute."""
        return lambda *args, **kwargs: 0


@contextmanager
def show_progress(*columns: str, visible: bool = True) -> Generator[Progress | HiddenProgress]:
    """Show a progress bar in a notebook, or on stderr if stderr is a terminal.

    It is hidden if the logger "herdner" ignores warnings (``--quiet``).

    Args:
        *columns: Formats of further columns, in the syntax of rich.
        visible: False hides the display, for output to the same terminal.

    Yields:
        The display.
    """
    visible = visible and logging.getLogger("herdner").isEnabledFor(logging.WARNING)
    if not (visible and (sys.stderr.isatty() or _is_notebook())):
        yield HiddenProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    texts = [TextColumn(column) for column in columns]
    with Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), *texts, TimeElapsedColumn(),
        console=Console(stderr=True), transient=True,
    ) as display:  # fmt: skip
        yield display


def _is_notebook() -> bool:
    """Return True if the code runs in a notebook."""
    if "ipykernel" not in sys.modules:  # programs outside of notebooks need not import rich
        return False
    from rich.console import Console

    return Console(stderr=True).is_jupyter
