"""Parts of messages for users."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Format a number and its noun as text: "1 document", "1,234 documents".

    Args:
        number: The number.
        noun: The noun, in the singular.
        plural: Its plural; empty if it is formed by "s".
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the question "did you mean ...?" with a similar known word and a trailing space; "" if no word is similar.

    Args:
        word: Unknown word.
        known: Known words.
    """
    similar = get_close_matches(word.lower(), list(known), 1)
    return f"did you mean {similar[0]!r}? " if similar else ""
