"""Short representations of dataclasses that contain arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

MAX_CHARACTERS = 60  # of the representation of one field


def short_repr(self: object) -> str:
    """Describe a dataclass instance in one line: its class name and its fields; arrays are shown as type and shape.

    It serves as the method ``__repr__``. Fields that are None, or that have ``repr=False``, are left out.

    Args:
        self: Instance of a dataclass.

    Returns:
        The text, such as "Box(low=float64[3], name='a')".
    """
    value: Any = self
    pairs = [(each.name, getattr(value, each.name, None)) for each in fields(value) if each.repr]
    listed = ", ".join(f"{name}={short_value(content)}" for name, content in pairs if content is not None)
    return f"{type(self).__name__}({listed})"


def short_value(content: Any) -> str:
    """Describe an object in one short text, for a representation that contains it.

    Args:
        content: Any object.

    Returns:
        The ``repr`` of the object if it is short; otherwise the object's type, with the shape or the number of items.
    """
    if isinstance(content, np.ndarray):
        array = cast("NDArray[Any]", content)
        return f"{array.dtype}{list(array.shape)}"
    if isinstance(content, float):
        return f"{content:.6g}"
    if type(content) is tuple:
        parts = cast("tuple[Any, ...]", content)
        if any(isinstance(part, np.ndarray) for part in parts):
            return f"({len(parts)} arrays)"
        listed = f"({', '.join(map(short_value, parts))})"
        return listed if len(listed) <= MAX_CHARACTERS else f"({len(parts)} values)"
    if callable(content):
        return getattr(content, "__name__", type(content).__name__)
    text = repr(content)
    return text if len(text) <= MAX_CHARACTERS and "\n" not in text else f"{type(content).__name__}(...)"
