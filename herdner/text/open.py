"""What the annotators of a document have left open: tokens that may have several tags, and classes not looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from herdner.text.tags import split_tag

ANY = "?"


class Place(NamedTuple):
    """The tokens that touch the characters ``start:end`` may have these tags: "?" any, "PER|ORG" those inside a name of
    one of these classes, "B-PER|O" these.
    """

    start: int
    end: int
    tags: str


@dataclass(frozen=True, slots=True)
class Open:
    """What is open in a document that is annotated in part.

    Attributes:
        places: Apart from the document's entities.
        annotated: The classes whose names have all been marked; a token outside may belong to a name of another class.
            None: all classes.

    Raises:
        ValueError: Tags are none, or a class is named twice.
    """

    places: tuple[Place, ...] = ()
    annotated: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for tags in dict.fromkeys(place.tags for place in self.places):
            choices(tags)
        named = self.annotated or ()
        if twice := sorted(label for label in set(named) if named.count(label) > 1):
            raise ValueError(f"the annotated classes name {twice[0]} twice")

    def renamed(self, rename: Callable[[str], str | None]) -> Open:
        """With other names of classes; inside a name of a class that is dropped (None), tokens are O."""
        named = None if self.annotated is None else [rename(label) for label in self.annotated]
        kept = None if named is None else tuple(dict.fromkeys(label for label in named if label is not None))
        return Open(tuple(place._replace(tags=_renamed(place.tags, rename)) for place in self.places), kept)

    def fault(self, entities: Iterable[tuple[int, int, str]]) -> str | None:
        """What is wrong with entities (first and last character, label) beside what is open; None: nothing."""
        for start, end, label in entities:
            if self.annotated is not None and label not in self.annotated:
                return f"the entity at {start}..{end} is a {label}, which is not among the annotated classes"
            if any(place.start < end and start < place.end for place in self.places):
                return f"the entity at {start}..{end} lies where the tags are open"
        return None


def is_open(tag: str) -> bool:
    """Whether the tag of a token in a file says that it may have several."""
    return tag == ANY or "|" in tag


def choices(tags: str) -> tuple[tuple[str, str], ...] | None:
    """The alternatives of open tags, each as prefix and class; the prefix "" is any in a name, ("O", "") is outside.
    None: any tag. ValueError where they are none.
    """
    if tags == ANY:
        return None
    found: list[tuple[str, str]] = []
    for choice in tags.split("|"):
        try:
            found.append(split_tag(choice))
        except ValueError:
            if not choice or choice == ANY or " ".join(choice.split()) != choice:
                raise ValueError(
                    f"{tags!r} are no tags; expected ? for any, or classes or tags as in PER|ORG and B-PER|O"
                ) from None
            found.append(("", choice))
    return tuple(found)


def joined(found: Sequence[tuple[str, str]]) -> str:
    """The inverse of `choices`."""
    written = [label if not prefix else prefix if prefix == "O" else f"{prefix}-{label}" for prefix, label in found]
    return "|".join(dict.fromkeys(written))


def whole_names(tags: str) -> str:
    """Open tags of a token, for each of the pieces that it is cut into: of tags only the classes stay."""
    found = choices(tags)
    return ANY if found is None else joined([(prefix if prefix == "O" else "", label) for prefix, label in found])


def _renamed(tags: str, rename: Callable[[str], str | None]) -> str:
    found = choices(tags)
    if found is None:
        return ANY
    named = [(prefix, label if prefix == "O" else rename(label)) for prefix, label in found]
    return joined([("O", "") if label is None else (prefix, label) for prefix, label in named])
