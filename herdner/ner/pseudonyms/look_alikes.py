"""Patterns of text that looks like a pseudonym."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from herdner.ner.pseudonyms.tokens import LETTER

StyleName = Literal["numbered", "realistic", "hash"]
STYLES: tuple[StyleName, ...] = get_args(StyleName)

TERM = "TERM"
"""Label of text that looks like a pseudonym. Such text is replaced, so that restoring brings it back unchanged."""

NOUNS: Mapping[str, str] = {
    "PER": "Person", "PERSON": "Person", "LOC": "Place", "GPE": "Place", "LOCATION": "Place", "ORG": "Organisation",
    "ORGANIZATION": "Organisation", "EMAIL": "Email", "PHONE": "Phone", "IBAN": "IBAN", "CARD": "Card", "URL": "URL",
    "IP": "IP", "SSN": "SSN", TERM: "Term",
}  # fmt: skip
"""First word of the numbered pseudonyms of each label. For another label such as "MISC" it is "Misc"."""


def noun(label: str) -> str:
    """Return the noun of the numbered pseudonyms of a label: "Person" for PER, as in "Person 3".

    Args:
        label: Entity type or kind of identifier.
    """
    return NOUNS.get(label) or _letters(label).capitalize() or "Name"


def prefix(label: str) -> str:
    """Return the text before the underscore in the hash pseudonyms of a label, such as "PER".

    Args:
        label: Entity type or kind of identifier.
    """
    return _letters(label).upper() or "NAME"


def _letters(label: str) -> str:
    return re.sub(r"^\d+|[\W_]+", "", label)


def look_alikes(style: StyleName, labels: Iterable[str]) -> re.Pattern[str]:
    """Return a regular expression for all strings that look like a pseudonym of a style, in any letter case.

    Args:
        style: Style of the pseudonyms. For "realistic", only numbered pseudonyms match; invented names have no pattern.
        labels: Labels in addition to those of ``NOUNS``.
    """
    labels = {*NOUNS, *labels}
    if style == "hash":
        prefixes = "|".join(sorted(set(map(prefix, labels))))
        return re.compile(
            rf"(?<!{LETTER})(?:{prefixes})_[a-z2-7]{{10,}}(?:_[a-z2-7]{{4,}})?(?!{LETTER})", re.IGNORECASE
        )
    nouns = "|".join(sorted(set(map(noun, labels))))
    return re.compile(rf"(?<!{LETTER})(?:{nouns})\s{{1,8}}[0-9]+[a-z]*(?!{LETTER})", re.IGNORECASE)
