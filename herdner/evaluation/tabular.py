"""Tables of evaluation results, for a terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from rich.table import Table


class Tabular(ABC):
    """Base class of frozen dataclasses that can be shown as a table.

    A console separates the last row, which is usually a total, from the rows above it.

    Attributes:
        header: Titles of the columns.
    """

    __slots__ = ()
    header: ClassVar[tuple[str, ...]]

    @abstractmethod
    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the result's table, each as a tuple of cells.

        The first column holds names.
        """

    @abstractmethod
    def summary(self) -> str:
        """Return the line of text below the result's table."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the result as a dict of plain Python values."""
        return asdict(self)  # type: ignore[call-overload]

    def to_json(self) -> str:
        """Return the fields of the result as one JSON object."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_table(self) -> Table:
        """Return the result as a table of the library ``rich``, for the console."""
        from rich.table import Table
        from rich.text import Text

        table = Table(caption=Text(self.summary()))
        for i, name in enumerate(self.header):
            table.add_column(name, justify="right" if i else "left")
        rows = self.rows()
        for i, row in enumerate(rows, 1):
            table.add_row(*map(Text, row), end_section=i == len(rows) - 1)
        return table

    def to_markdown(self) -> str:
        """Return the result as a Markdown table with a summary below."""
        return markdown_table(self.header, self.rows(), self.summary())


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Return a Markdown table.

    The first column is aligned to the left, the others to the right.

    Args:
        header: Titles of the columns.
        rows: Cells of each row.
        caption: Text below the table.

    Returns:
        Lines without a final line break.
    """
    rule = ["---", *["---:"] * (len(header) - 1)]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (header, rule, *rows)]
    return "\n".join([*lines, "", caption] if caption else lines)


def percent(share: float) -> str:
    """Return a share in [0, 1] as a percentage without the percent sign: 0.5 becomes "50.00".

    Args:
        share: Number in [0, 1].

    Returns:
        Percentage with two decimals.
    """
    return f"{100 * share:.2f}"


def points(difference: float) -> str:
    """Return the difference of two shares in percentage points as text, with its sign unless it is zero.

    Args:
        difference: Number in [-1, 1].

    Returns:
        Percentage points with two decimals.
    """
    return f"{100 * difference:+.2f}".replace("-0.00", "+0.00").replace("+0.00", "0.00")
