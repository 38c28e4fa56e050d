"""Rows of tables from which documents were read, so that tables can be written with the same columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Names of a table's columns, in their order, with the roles of the columns as text, id or document field.

    Attributes:
        names: Names of the columns.
        fields: Key of each column in `Document.fields`.
        text: Name of the column of texts.
        id: Name of the column of ids; None if there is none.
        delimiter: Separator of columns in a text file; None if it is unknown or determined by the format.
    """

    names: tuple[str, ...]
    fields: tuple[str, ...]
    text: str
    id: str | None = None
    delimiter: str | None = None

    @staticmethod
    def of(
        names: Sequence[str], text: str, id: str | None = None, *, strip: bool = False, delimiter: str | None = None
    ) -> TableColumns:
        """Determine the roles of the columns of a table.

        Args:
            names: Names of the columns.
            text: Name of the column of texts.
            id: Name of the column of ids; None: "id", if there is such a column.
            strip: Whether to ignore white space around the names.
            delimiter: Separator of columns in a text file.

        Returns:
            The columns.

        Raises:
            ValueError: There is no column of texts or ids, or two columns have the same name.
        """
        fields = [name.strip() for name in names] if strip else list(names)
        for column, option, role in ((text, "--column", "texts"), (id, "--id-column", "ids")):
            if column is not None and column not in fields:
                shown = [" ".join(name[:41].split())[:40] + ("..." if len(name) > 40 else "") for name in fields[:20]]
                listed = ", ".join(shown) + (", ..." if len(fields) > 20 else "")
                other = "" if len(fields) > 1 or delimiter is None else ", or the separator by --delimiter"
                problem = f"no column {column!r}; the columns of the file are {listed}"
                raise ValueError(f"{problem}: name the column of {role} by {option}{other}")
        if id is not None and id == text:
            raise ValueError(f"the column {id!r} cannot contain both the texts and the ids; name two columns")
        id = "id" if id is None and "id" in fields and text != "id" else id
        by_field = dict(zip(fields, names, strict=True))
        if id != "id":  # the field "id" of a document is its original id
            fields = ["source_id" if field == "id" else field for field in fields]
        if duplicate := next((field for field, count in Counter(fields).items() if count > 1), None):
            raise ValueError(f"two columns are named {duplicate!r}; rename one of them")
        return TableColumns(
            tuple(names), tuple(fields), by_field[text], None if id is None else by_field[id], delimiter
        )

    def split(self, values: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Divide the values of a row into the text and the id of its document, and the fields of the document.

        Args:
            values: Value of each column.

        Returns:
            A dict with the keys "text" (empty for null) and "id" (None if it is empty), and the fields.
        """
        row = dict(zip(self.names, values, strict=True))
        pairs = zip(self.names, self.fields, strict=True)
        fields = {field: row[name] for name, field in pairs if name not in (self.text, self.id)}
        id = None if self.id is None or row[self.id] == "" else row[self.id]
        return {"text": row[self.text] or "", "id": id}, fields


@dataclass(frozen=True, slots=True, eq=False)
class TableRow:
    """Row of a table from which a document was read.

    Attributes:
        columns: Columns of the table.
        values: Value of each column.
        document_id: Identifier of the document when it was read.
        arrow: Arrow's record batch of the row and the index of the row in the batch; None for text files.
    """

    columns: TableColumns
    values: Sequence[object]
    document_id: str | None = None
    arrow: tuple[Any, int] | None = None
