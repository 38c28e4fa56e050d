"""The map of pseudonyms: names, their forms and their pseudonyms, and the private file that stores them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, cast

from herdner.base.checks import check_text
from herdner.base.files import atomic_write, lock_file
from herdner.base.messages import format_count
from herdner.ner.pseudonyms.look_alikes import STYLES, StyleName, look_alikes
from herdner.ner.pseudonyms.restoring import Restorer
from herdner.ner.pseudonyms.tokens import name_key
from herdner.text.plain_data import describe_json_error

FORMAT = "herdner pseudonyms"
VERSION = 1
MAX_BYTES = 1 << 30


class MapError(ValueError):
    """Error raised for a file that is not a valid map of pseudonyms."""


@dataclass
class MappedName:
    """Name with its pseudonym, and with a pseudonym for each form (spelling) of the name.

    Attributes:
        label: Entity type or kind of identifier, such as "PER" or "EMAIL".
        text: Fullest form of the name.
        pseudonym: Pseudonym of the fullest form. The pseudonyms of the other forms are derived from it.
        forms: Pseudonym of each form. A form is the text of a mention, such as "Rivera" for "Ana Rivera".
        words: Invented word for each word of the name, in the realistic style.
    """

    label: str
    text: str
    pseudonym: str
    forms: dict[str, str] = field(default_factory=dict[str, str])
    words: dict[str, str] = field(default_factory=dict[str, str])


class PseudonymMap:
    """Map between names and pseudonyms. It grows while texts are pseudonymised.

    Args:
        style: Style of the pseudonyms.
        id: Identifier of the map; None draws one at random.

    Attributes:
        style: Style of the pseudonyms.
        id: Identifier of the map.
        names: Names in the order in which they were added.
        originals: Original text of each pseudonym and of each invented word.
        reserved: Words, in lower case, that the realistic style does not invent, because texts contain them.
        checkpoint: Function that saves a map that was opened by `open`, if it has grown. Call it before a text with
            new pseudonyms is published, so that the map of a published text is never lost.
    """

    def __init__(self, style: StyleName = "numbered", id: str | None = None) -> None:
        """Create an empty map.

        Raises:
            ValueError: The style is unknown.
        """
        if style not in STYLES:
            raise ValueError(f"`style` must be one of {', '.join(STYLES)}, got {style!r}")
        self.style: StyleName = style
        self.id = token_hex(8) if id is None else id
        self.names: list[MappedName] = []
        self.originals: dict[str, str] = {}
        self.reserved: set[str] = set()
        self.checkpoint: Callable[[], None] = _no_checkpoint
        self._by_key: dict[tuple[str, str], MappedName] = {}

    def __repr__(self) -> str:
        """Describe the map by its style and its number of names, without the names."""
        return f"PseudonymMap({self.style!r}, {format_count(len(self.names), 'name')})"

    def find(self, label: str, key: str) -> MappedName | None:
        """Return the name with the label ``label`` and the key ``key``; return None if the map lacks such a name.

        Args:
            label: Entity type or kind of identifier.
            key: Key of the fullest form (``name_key``).
        """
        return self._by_key.get((label, key))

    def add(self, name: MappedName, key: str | None = None) -> None:
        """Add a name with all its forms to the map.

        Args:
            name: The name.
            key: Its key; None computes it from the text.

        Raises:
            MapError: The name has an entry already, or one of its pseudonyms stands for another text.
        """
        full_key = name.label, name_key(name.text) if key is None else key
        earlier = self._by_key.setdefault(full_key, name)
        if earlier is not name:
            raise MapError(
                f"{name.text!r} ({name.label}) has the entries `{earlier.pseudonym}` and `{name.pseudonym}`; remove one"
            )
        self.names.append(name)
        for form, pseudonym in ((name.text, name.pseudonym), *name.forms.items(), *name.words.items()):
            self.connect(pseudonym, form)

    def connect(self, pseudonym: str, form: str) -> None:
        """Record that ``pseudonym``, which may be an invented word, stands for the original text ``form``.

        Args:
            pseudonym: The pseudonym.
            form: The original.

        Raises:
            MapError: The pseudonym stands for another text.
        """
        original = self.originals.setdefault(pseudonym, form)
        if original != form:
            raise MapError(f"`{pseudonym}` stands for {original!r} and for {form!r}; remove one of these entries")

    @property
    def labels(self) -> set[str]:
        """Labels of all names in the map."""
        return {name.label for name in self.names}

    def restorer(self) -> Restorer:
        """Return a `Restorer` for the names that the map contains now."""
        return Restorer(self.originals, look_alikes(self.style, self.labels))

    def restore(self, text: str) -> str:
        """Replace the pseudonyms of a text by the original names.

        Args:
            text: A text with pseudonyms, which may have been edited.

        Returns:
            The text with original names.

        Raises:
            TypeError: ``text`` is not a string.
        """
        return self.restorer()(check_text(text, "text"))

    def restore_stream(self, chunks: Iterable[str]) -> Iterator[str]:
        """Replace the pseudonyms of a stream by the original names. A pseudonym may extend over several chunks.

        Args:
            chunks: Consecutive pieces of one text, for example the answer of a language model.

        Returns:
            An iterator over consecutive pieces of the text with original names.
        """
        return self.restorer().stream(chunks)

    # --- files

    def to_dict(self) -> dict[str, Any]:
        """Return the map as a dict of JSON values, which `from_dict` converts back."""
        names: list[dict[str, Any]] = []
        for (_, key), name in self._by_key.items():
            record: dict[str, Any] = {
                "label": name.label, "text": name.text, "pseudonym": name.pseudonym,
                "forms": [{"pseudonym": pseudonym, "original": form} for form, pseudonym in name.forms.items()],
            }  # fmt: skip
            if key != name_key(name.text):
                record["key"] = key
            if name.words:
                record["words"] = name.words
            names.append(record)
        return {
            "format": FORMAT, "version": VERSION, "id": self.id, "style": self.style, "names": names,
            "reserved": sorted(self.reserved),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PseudonymMap:
        """Build a map from the dict that `to_dict` returns.

        Args:
            values: The data.

        Returns:
            The map.

        Raises:
            MapError: The data do not describe a map, or entries conflict.
        """
        if values.get("format") != FORMAT:
            raise MapError("is not a map of pseudonyms; expected a file that `herdner pseudonymise --map` has written")
        if values.get("version") != VERSION:
            raise MapError(
                f"`version` must be {VERSION}, got {values.get('version')!r}; use the version of herdner that wrote the"
                " map"
            )
        style, id, names, reserved = map(values.get, ("style", "id", "names", "reserved"))
        if style not in STYLES or not isinstance(id, str) or not isinstance(names, list):
            raise MapError(
                f"`style` must be one of {', '.join(STYLES)}, `id` must be a string, and `names` must be a list, got"
                f" {style!r:.40}, {id!r:.40} and {names!r:.40}"
            )
        result = cls(style, id)
        result.reserved.update(map(str, cast(list[object], reserved) if isinstance(reserved, list) else ()))
        for i, item in enumerate(cast(list[Any], names)):
            name = _check_name(i, item)
            result.add(name, cast(dict[str, Any], item).get("key"))
        return result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map atomically to a JSON file that only its owner can read (mode 0600).

        Args:
            path: File to write.
        """
        data = json.dumps(self.to_dict(), ensure_ascii=False, indent=1)
        with atomic_write(path, mode=0o600) as stream:
            stream.write(data.encode("utf-8", "surrogatepass") + b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PseudonymMap:
        """Read a map from a JSON file.

        Args:
            path: File to read.

        Returns:
            The map.

        Raises:
            MapError: The file is not a map, or its entries conflict.
        """
        with Path(path).open("rb") as stream:
            return cls._read(stream)

    @classmethod
    def _read(cls, stream: IO[bytes]) -> PseudonymMap:
        name = str(stream.name)
        if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):  # reading /dev/full would never end
            raise MapError(f"{name}: the path is a device; a map of pseudonyms is a JSON file")
        if (size := os.fstat(stream.fileno()).st_size) > MAX_BYTES:
            raise MapError(f"{name}: the file has {size:,} bytes; a map of pseudonyms has at most {MAX_BYTES:,}")
        try:
            values: Any = json.loads(stream.read().decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            raise MapError(f"{name}: the file is not UTF-8 text; a map of pseudonyms is a JSON file") from None
        except (ValueError, RecursionError) as error:
            raise MapError(f"{name}: {describe_json_error(error)}; a map of pseudonyms is a JSON file") from None
        try:
            return cls.from_dict(cast(dict[str, Any], values) if isinstance(values, dict) else {})
        except MapError as error:
            raise MapError(f"{name}: {error}") from None

    @classmethod
    @contextmanager
    def open(cls, path: str | os.PathLike[str], style: StyleName | None = None) -> Generator[PseudonymMap]:
        """Open a map file for a run that may extend the map; save the map when the run ends, also after an error.

        A new map is written at once. Until the end, no other process can open the map by this method.

        Args:
            path: The file; it is created if it does not exist.
            style: Style of a new map; an existing map must have this style. None: "numbered" for a new map.

        Yields:
            The map.

        Raises:
            MapError: The file is not a map, its entries conflict, its style differs, or another process uses it.
        """
        if not os.path.lexists(path):
            cls(style or "numbered").save(path)
        with Path(path).open("rb") as stream:
            if not lock_file(stream):
                raise MapError(f"{os.fspath(path)}: another process is using this map; wait until that process ends")
            names = cls._read(stream)
            if style not in (None, names.style):
                raise MapError(
                    f"{os.fspath(path)}: has the style {names.style}, not {style}; give another file or style"
                )
            with ExitStack() as locks:
                names.checkpoint = _Checkpoint(names, Path(path), locks)
                try:
                    yield names
                finally:
                    names.checkpoint()
                    names.checkpoint = _no_checkpoint


def _no_checkpoint() -> None:
    """Do nothing: the map was not opened from a file."""


class _Checkpoint:
    """Function object that, if the map has new entries, saves the map to its file and locks the file."""

    def __init__(self, names: PseudonymMap, path: Path, locks: ExitStack) -> None:
        self.names, self.path, self.locks = names, path, locks
        self.saved = self._size()

    def _size(self) -> tuple[int, int]:
        return len(self.names.originals), len(self.names.reserved)

    def __call__(self) -> None:
        if self._size() != self.saved:
            self.names.save(self.path)
            self.saved = self._size()
            stream = self.locks.enter_context(self.path.open("rb"))
            if not lock_file(stream):
                raise MapError(f"{self.path}: another process is using this map; wait until that process ends")


def _check_name(i: int, item: Any) -> MappedName:
    """Check the entry of one name in a map file, and convert it to a `MappedName`."""
    values = cast(dict[str, Any], item) if isinstance(item, dict) else {}
    fields = label, text, pseudonym = tuple(map(values.get, ("label", "text", "pseudonym")))
    forms, words = values.get("forms"), values.get("words", {})
    pairs = [_form(pair) for pair in cast(list[Any], forms)] if isinstance(forms, list) else [None]
    is_typed = isinstance(words, dict) and isinstance(values.get("key", ""), str)
    words = cast(dict[Any, Any], words) if isinstance(words, dict) else {}
    if not is_typed or None in pairs or not all(map(_is_text, (*fields, *words, *words.values()))):
        raise MapError(
            f"name {i} is {json.dumps(item)[:60]}; expected an object with the keys `label`, `text`, `pseudonym` and"
            ' `forms`, where `forms` is a list such as [{"pseudonym": "Person 1", "original": "Ana Rivera"}]'
        )
    result = MappedName(cast(str, label), cast(str, text), cast(str, pseudonym), {}, words)
    for form, own in filter(None, pairs):
        if result.forms.setdefault(form, own) != own:
            raise MapError(f"name {i}: {form!r} has the pseudonyms `{result.forms[form]}` and `{own}`; remove one")
    return result


def _form(pair: Any) -> tuple[str, str] | None:
    """Return the form and the pseudonym that an entry of a map file contains; return None if the entry is invalid."""
    values = cast(dict[str, Any], pair) if isinstance(pair, dict) else {}
    form, pseudonym = values.get("original"), values.get("pseudonym")
    return (form, pseudonym) if _is_text(form) and _is_text(pseudonym) else None  # pyright: ignore[reportReturnType]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
