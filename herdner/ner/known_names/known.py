"""Lists of known names."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from herdner.base.files import atomic_write
from herdner.ner.known_names.reading import KnownName, parse_known_name, read_known_names, to_json_line

STRENGTH = 3.0
"""Default strength in log-odds for each token. ``scripts/models/measure_names.py`` selected it on openly licensed
documents: the largest value that does no harm for lists with ambiguous names.
"""


@dataclass(frozen=True, eq=False)
class Names:
    """Known names and token patterns with their labels, which `Tagger.tag` and `Tagger.pipe` accept.

    Where a name occurs inside a sentence, its strength is added at each token to the log-potential of the tag that
    encodes exactly this span with this label. Context can overrule this evidence, and links pass it on to other
    mentions. A strength of ``inf`` is a constraint: the span always gets this label, unless the model finds a longer
    name there, such as "John Said" for the constraint "John".

    If occurrences overlap, only one of them has an effect. Constraints take precedence over evidence, then longer
    occurrences over shorter occurrences, then earlier occurrences over later occurrences. A span may have evidence for
    several labels ("Washington"). If it has several constraints, only the first in the list has an effect.

    Attributes:
        entries: The known names.
        strength: Strength in log-odds of names without a strength of their own.
        hard: Treat all names as constraints.
        fold_case: Ignore case. Token patterns are not affected.

    Raises:
        ValueError: There is no name, or a value is invalid.
    """

    entries: tuple[KnownName, ...]
    strength: float = STRENGTH
    hard: bool = False
    fold_case: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` if an option or an entry is invalid."""
        if not isinstance(cast(object, self.strength), int | float) or not self.strength > -math.inf:
            raise ValueError(f"strength must be a number, or inf for constraints, got {self.strength!r}")
        for name, value in (("hard", self.hard), ("fold_case", self.fold_case)):
            if not isinstance(cast(object, value), bool):
                raise ValueError(f"{name} must be true or false, got {value!r}")
        if not self.entries:
            raise ValueError("the list of known names is empty; it needs at least one name with its label")
        for each in cast("tuple[object, ...]", self.entries):
            if not isinstance(each, KnownName):
                raise ValueError(f"entries must be KnownName values, got {each!r}; build the names with Names.of")

    @staticmethod
    def read(path: str | os.PathLike[str] | IO[Any], *, encoding: str = "utf-8", **choices: Any) -> Names:
        """Read a file of known names.

        The file contains JSON lines in the format of spaCy's entity ruler, or columns ``name TAB label``. Lines
        ``name,LABEL`` are accepted too. In a file that is named after a label, such as ``ORG.txt``, a line may consist
        of a name only.

        A JSON line is ``{"label": "ORG", "pattern": "Winam Ferries"}`` or has a token pattern, which needs spaCy:
        ``{"label": "ORG", "pattern": [{"LOWER": "winam"}, {"IS_TITLE": true, "OP": "?"}]}``. The optional key
        ``"strength"``, or an optional third column, is a number in log-odds or ``hard``.

        Args:
            path: Path or stream of the file.
            encoding: Encoding of the file.
            choices: Other fields of `Names`, such as ``hard``.

        Returns:
            The known names.

        Raises:
            FormatError: A line cannot be parsed; the message names the line.
        """
        where = path if hasattr(path, "read") else Path(os.fspath(cast(str, path)))
        return Names(tuple(read_known_names(cast(Any, where), encoding)), **choices)

    @staticmethod
    def of(names: NamesLike, **choices: Any) -> Names:
        """Convert known names in any form that `NamesLike` lists to a `Names` object.

        Args:
            names: `Names`, which are returned unchanged; the path of a file for `read`; or an iterable of ``(name,
                label)``, ``(name, label, strength)`` and spaCy patterns.
            choices: Other fields of `Names`, such as ``hard``.

        Returns:
            The known names.

        Raises:
            ValueError: A name is malformed.
        """
        if isinstance(names, Names):
            return names
        if isinstance(names, str | os.PathLike):
            return Names.read(names, **choices)
        values = cast(object, names)
        if isinstance(values, Mapping | bytes) or not isinstance(values, Iterable):
            raise ValueError(
                f"names must be a file, or a list of (name, label) pairs and spaCy patterns, got {values!r:.80}"
            )
        entries = enumerate(cast("Iterable[object]", values), 1)
        return Names(tuple(parse_known_name(each, f"name {i}") for i, each in entries), **choices)

    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the known names as JSON lines to a stream, or atomically to a file.

        Args:
            path: Path or binary stream.
        """
        with atomic_write(path) if isinstance(path, str | os.PathLike) else nullcontext(path) as stream:
            stream.write(self._json_lines())

    def checksum(self) -> str:
        """Return the SHA-256 checksum of the known names and their options."""
        options = f"{self.strength} {self.hard} {self.fold_case}\n"
        return hashlib.sha256(options.encode() + self._json_lines()).hexdigest()

    def _json_lines(self) -> bytes:
        return "".join(f"{to_json_line(entry)}\n" for entry in self.entries).encode("utf-8", "surrogatepass")

    def strength_of(self, entry: KnownName) -> float:
        """Return the strength of a known name: the log-odds that it adds to its label, or ``inf`` for a constraint.

        Args:
            entry: One of the entries.
        """
        return math.inf if self.hard else self.strength if entry.strength is None else entry.strength

    def check_labels(self, labels: Iterable[str]) -> None:
        """Raise `ValueError` unless ``labels``, the labels of a model, include the labels of all names.

        Args:
            labels: Labels of the model.

        Raises:
            ValueError: A name has a label that the model lacks.
        """
        valid = sorted(labels)
        for entry in self.entries:
            if entry.label not in valid:
                raise ValueError(f"{entry.place}: the model has no label {entry.label!r}; it has {', '.join(valid)}")


NamesLike = Names | str | os.PathLike[str] | Iterable[tuple[str, str] | tuple[str, str, float] | Mapping[str, Any]]
"""Forms of known names that `Names.of` accepts."""
