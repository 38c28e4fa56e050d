from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
N = TypeVar("N", bound=tuple[Any, ...])

def read_spans(
    states: NDArray[np.int32],
    prefixes: NDArray[np.uint8],
    labels: NDArray[np.int32],
    names: list[str],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]: ...
def make_spans(
    kind: type[N], starts: NDArray[np.int64], ends: NDArray[np.int64], labels: list[str], origin: int = 0
) -> list[N]: ...
def make_entities(
    kind: type[T],
    spans: Iterable[N],
    text: str,
    token_starts: NDArray[np.int64],
    token_ends: NDArray[np.int64],
    confidences: NDArray[np.float64] | None = None,
) -> tuple[T, ...]: ...
def with_name_ids(entities: tuple[T, ...], ids: list[int]) -> tuple[T, ...]: ...
