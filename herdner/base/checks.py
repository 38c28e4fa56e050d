"""Checks of arguments that several packages share."""

from __future__ import annotations

import math
import sys
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_text(value: object, name: str, description: str = "a string") -> str:
    """Return a value as a plain string if it is a string; raise `TypeError` otherwise.

    Compiled code reads plain strings only. Instances of subclasses, such as `numpy.str_`, are copied.

    Args:
        value: The argument.
        name: Name of the argument, for the message.
        description: Description of the expected string, for the message.

    Returns:
        The value, whose class is `str`.

    Raises:
        TypeError: The value is not a string.
    """
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be {description}, got {value!r:.80}")
    return str.__str__(value)


def check_integer(value: object, name: str, least: int = 1, most: float = math.inf) -> int:
    """Convert a number to an int; raise `ValueError` if it is not a whole number from ``least`` to ``most``.

    Args:
        value: The argument.
        name: Name of the argument, for the message.
        least: Smallest accepted value.
        most: Largest accepted value.

    Returns:
        The value as an int.

    Raises:
        ValueError: The value is not an integer in this range.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        limits = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {limits}, not {value!r:.80}")
    return int(value)  # pyright: ignore[reportUnknownArgumentType]  # a NumPy integer of any width


def check_counts(options: Any, **least: int) -> None:
    """Raise ``ValueError`` unless the named options of a dataclass are whole numbers of at least the given values.

    An option whose default is None may be None.

    Args:
        options: Instance of the dataclass.
        **least: Smallest accepted value of each option.

    Raises:
        KeyError: The dataclass has no such option.
        ValueError: An option is not an integer in its range.
    """
    defaults = {field.name: field.default for field in fields(options)}
    for name, smallest in least.items():
        default, value = defaults[name], getattr(options, name)
        if value is not None or default is not None:
            check_integer(value, name, smallest)


def check_real(value: object, name: str, least: float = -math.inf, most: float = math.inf) -> float:
    """Convert a number to a float; raise `ValueError` if it is not a finite number from ``least`` to ``most``.

    Args:
        value: The argument.
        name: Name of the argument, for the message.
        least: Smallest accepted value.
        most: Largest accepted value.

    Returns:
        The value as a float.

    Raises:
        ValueError: The value is NaN, infinite, no number, or out of this range.
    """
    is_real = not isinstance(value, bool) and isinstance(value, int | float | np.integer | np.floating)
    largest = sys.float_info.max
    if not is_real or not max(least, -largest) <= value <= min(most, largest):  # type: ignore[operator]
        limits = f"from {least:g} to {most:g}" if most < math.inf else f"of at least {least:g}"
        limits = "" if least == -math.inf else f" {limits}"
        raise ValueError(f"`{name}` must be a finite number{limits}, got {value!r:.80}")
    return float(value)  # type: ignore[arg-type]


def check_variables(variables: NDArray[np.integer], n: int, prefix: str = "there is no") -> None:
    """Raise `ValueError` unless all indices of variables are valid in a graph of ``n`` variables.

    Args:
        variables: The indices.
        n: Number of variables of the graph.
        prefix: First words of the message.

    Raises:
        ValueError: An index is not in the range 0 to n - 1.
    """
    outside = variables[(variables < 0) | (variables >= n)]
    if len(outside):
        raise ValueError(f"{prefix} variable {outside[0]}: the graph's variables are 0 to {n - 1}")


def are_offsets(values: NDArray[np.integer], end: int) -> bool:
    """Return whether ``values`` is a non-decreasing, one-dimensional array that begins with 0 and ends with ``end``.

    Args:
        values: Array of integers.
        end: Required last value.
    """
    is_bounded = values.ndim == 1 and len(values) > 0 and values[0] == 0 and values[-1] == end
    return bool(is_bounded and (values[1:] >= values[:-1]).all())


def is_number(value: object) -> bool:
    """Return whether a value is an int or a float.

    Type checkers report a direct call of `isinstance` as redundant for a value declared as a number, but not this call.

    Args:
        value: Any object.
    """
    return isinstance(value, int | float)
