"""Objects that change the lists of a call while the call converts them, and arrays that report a wrong length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

GROWTH = 100  # items that a list may get


class Liar(np.ndarray[Any, Any]):
    """Array that reports a wrong length and shape."""

    def __len__(self) -> int:
        return 10**6

    @property
    def shape(self) -> Any:  # type: ignore[override]
        return (10**6, *super().shape[1:])


class Meddler:
    """Object that behaves like another one, and empties or extends all lists of a call whenever it is used."""

    def __init__(self, value: Any, grows: bool = False) -> None:
        self.__dict__.update(_value=value, _grows=grows, _lists=[])

    def _meddled(self) -> Any:
        for each in self._lists:
            if self._grows and len(each) < GROWTH:
                each.extend(each[-1:] * GROWTH)
            elif not self._grows:
                each.clear()
        return self._value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._meddled(), name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._meddled()(*arguments, **options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._meddled(), dtype)

    def __index__(self) -> int:
        return self._meddled().__index__()

    def __float__(self) -> float:
        return float(self._meddled())

    def __len__(self) -> int:
        return len(self._meddled())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._meddled())

    def __getitem__(self, place: Any) -> Any:
        return self._meddled()[place]

    def __eq__(self, other: object) -> bool:
        return self._meddled() == other

    def __lt__(self, other: Any) -> bool:
        return self._meddled() < other

    def __hash__(self) -> int:
        return hash(self._meddled())

    def __str__(self) -> str:
        return str(self._meddled())


def arm(value: Any) -> None:
    """Tell the meddlers in the positional and named arguments of a call which lists they change: all of these."""
    found: tuple[list[Meddler], list[list[Any]]] = [], []
    _search(value, *found, 0)
    for meddler in found[0]:
        meddler._lists[:] = found[1]


def _search(value: Any, meddlers: list[Meddler], lists: list[list[Any]], depth: int) -> None:
    """Find the meddlers and lists in a value; the sequence of the arguments and the sequence around it do not count."""
    if type(value) is Meddler:
        meddlers.append(value)
    elif type(value) in (list, tuple, dict) and depth < 5 and len(value) < GROWTH:
        if type(value) is list and depth > 1:
            lists.append(value)
        for item in value.values() if type(value) is dict else value:
            _search(item, meddlers, lists, depth + 1)
