"""Parts of messages for users."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Format a number and its noun as text: "1 document", "1,234 documents".

    Args:
        number: The number.
        noun: The noun, in the singular.
        plural: Its plural; empty if it is formed by "s".

    Returns:
        The text, with a comma after each group of three digits.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def format_size(n_bytes: float) -> str:
    """Format a number of bytes as text in kB, MB or GB: "1.2 kB", "10.2 MB", "3.4 GB".

    Args:
        n_bytes: The number of bytes.

    Returns:
        The number with one decimal, and its unit; 1 kB is 1,000 bytes.
    """
    size, unit = next((each for each in ((1e9, "GB"), (1e6, "MB")) if n_bytes >= each[0]), (1e3, "kB"))
    return f"{n_bytes / size:,.1f} {unit}"


def number_advice(label: object) -> str:
    """Return advice for a label or tag that is a number, such as those of Hugging Face's ``ner_tags``; else "".

    Args:
        label: A label or tag that is not a string.
    """
    if not isinstance(label, Integral):
        return ""
    return (
        f"; replace numbers by names, as in names[{label}]; for a dataset of Hugging Face, names ="
        " dataset.features['ner_tags'].feature.names"
    )


def suggestion(word: str, words: Iterable[str]) -> str:
    """Return the question "did you mean ...?" with a similar known word and a trailing space; "" if no word is similar.

    Args:
        word: Unknown word.
        words: Known words.
    """
    similar = get_close_matches(word.lower(), list(words), 1)
    return f"did you mean {similar[0]!r}? " if similar else ""


def one_line(error: object) -> str:
    """Return a message as one line; for an error without a message, return the name of its type.

    Args:
        error: An error or a message.
    """
    return " ".join(str(error).split()) or (type(error).__name__ if isinstance(error, BaseException) else "")


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the first line outside herdner in the call stack.

    Args:
        message: The warning.
        category: Class of the warning.
    """
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "herdner":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
