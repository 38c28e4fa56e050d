"""A list of known names as a value."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from herdner.base.files import atomic_write
from herdner.ner.known_names.reading import Known, known_of, read_known, written

STRENGTH = 3.0
"""Log-odds for each token of a name that has none of its own: chosen on openly licensed documents by
``scripts/models/measure_names.py``, as high as it may be where a list holds names that mean other things elsewhere.
"""


@dataclass(frozen=True, eq=False)
class Names:
    """Names and patterns that a user knows, each with its label, to be given to `Tagger.tag` or `Tagger.pipe`.

    Where one occurs inside a sentence, the log-potentials of the tags that would make it exactly this span, with this
    label, rise by its strength at each token: context can overrule it, and links carry it to other mentions. A strength
    of ``inf`` is a constraint: the span comes out with this label whatever else speaks against it. Of occurrences that
    overlap one counts: constraints go before evidence, then the longest, then the first in the text. Evidence may name
    one span in several ways ("Washington"); of two constraints on one span the first of the list holds.

    Attributes:
        entries: What is known of each name.
        strength: Of those that have none of their own.
        hard: All of them are constraints.
        fold_case: Upper and lower case are one; for patterns of tokens, which say so themselves, this changes nothing.
    """

    entries: tuple[Known, ...]
    strength: float = STRENGTH
    hard: bool = False
    fold_case: bool = False

    def __post_init__(self) -> None:
        if not isinstance(cast(object, self.strength), int | float) or not self.strength > -math.inf:
            raise ValueError(f"the strength of names is a number, or inf for a constraint, not {self.strength!r}")
        for choice, value in (("hard", self.hard), ("fold_case", self.fold_case)):
            if not isinstance(cast(object, value), bool):
                raise ValueError(f"{choice} of names is true or false, not {value!r}")
        if not self.entries:
            raise ValueError("there is no name; give a name and its label at least")
        for each in cast("tuple[object, ...]", self.entries):
            if not isinstance(each, Known):
                raise ValueError(f"an entry of names is {each!r}; Names.of makes entries of what users write")

    @staticmethod
    def read(path: str | os.PathLike[str] | IO[Any], *, encoding: str = "utf-8", **choices: Any) -> Names:
        """From a file: JSON lines as spaCy's entity ruler has them, or columns, ``name TAB label``.

        ``{"label": "ORG", "pattern": "Winam Ferries"}`` or, with a pattern of tokens, ``{"label": "ORG", "pattern":
        [{"LOWER": "winam"}, {"IS_TITLE": true, "OP": "?"}]}``, which needs spaCy; ``"strength"`` is optional, as is a
        third column. It is a number of log-odds, or ``hard``. ``choices`` are fields of `Names`. Raises FormatError,
        with the line.
        """
        where = path if hasattr(path, "read") else Path(os.fspath(cast(str, path)))
        return Names(tuple(read_known(cast(Any, where), encoding)), **choices)

    @staticmethod
    def of(names: NamesLike, **choices: Any) -> Names:
        """Names as they are; what a path holds (`read`); or an iterable of ``(name, label)``, ``(name, label,
        strength)`` and spaCy's patterns.
        """
        if isinstance(names, Names):
            return names
        if isinstance(names, str | os.PathLike):
            return Names.read(names, **choices)
        values = cast(object, names)
        if isinstance(values, Mapping | bytes) or not isinstance(values, Iterable):
            raise ValueError("names are a file, or a list of (name, label) and of spaCy's patterns")
        listed = enumerate(cast("Iterable[object]", values), 1)
        return Names(tuple(known_of(each, f"name {i}") for i, each in listed), **choices)

    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the entries as JSON lines, atomically, or to a stream."""
        data = self._written()
        if isinstance(path, str | os.PathLike):
            with atomic_write(path) as stream:
                stream.write(data)
        else:
            path.write(data)

    def checksum(self) -> str:
        """SHA-256 of all that tagging depends on."""
        choices = f"{self.strength} {self.hard} {self.fold_case}\n"
        return hashlib.sha256(choices.encode() + self._written()).hexdigest()

    def _written(self) -> bytes:
        return "".join(f"{written(entry)}\n" for entry in self.entries).encode("utf-8", "surrogatepass")

    def strength_of(self, entry: Known) -> float:
        """Log-odds, ``inf`` for a constraint."""
        return math.inf if self.hard else self.strength if entry.strength is None else entry.strength

    def check_labels(self, labels: Iterable[str], who: str = "the model") -> None:
        """ValueError at the first name of a label that is not among these."""
        known = sorted(set(labels) - {""})
        for entry in self.entries:
            if entry.label not in known:
                raise ValueError(f"{entry.place}: {who} has no class {entry.label!r}; it has {', '.join(known)}")


NamesLike = Names | str | os.PathLike[str] | Iterable[tuple[str, str] | tuple[str, str, float] | Mapping[str, Any]]
"""What stands for names where they are asked for: see `Names.of`."""
