"""Figures in rows: what evaluations say, for a terminal, in Markdown and as JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from rich.table import Table


class Tabulated(ABC):
    """A frozen dataclass of figures that has a header, rows (the last one sums up) and a line below them."""

    __slots__ = ()
    header: ClassVar[tuple[str, ...]]

    @abstractmethod
    def rows(self) -> list[tuple[str, ...]]:
        """The cells of each row; names come first."""

    @abstractmethod
    def summary(self) -> str:
        """What else there is to say, in one line."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)  # type: ignore[call-overload]

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_table(self) -> Table:
        """A table for rich's console: names in the first column, figures in the others, the last row apart."""
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
        """A table in Markdown, with a line below it."""
        return markdown_table(self.header, self.rows(), self.summary())


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Names in the first column, figures in the others; the caption stands below."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (header, rule, *rows)]
    return "\n".join([*lines, "", caption] if caption else lines)


def percent(share: float) -> str:
    """0.5 is "50.00"."""
    return f"{100 * share:.2f}"


def points(difference: float) -> str:
    """A difference of two shares with its sign, in per cent; nothing has none."""
    return f"{100 * difference:+.2f}".replace("-0.00", "+0.00").replace("+0.00", "0.00")
