from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int32s, Int64s

T = TypeVar("T")
N = TypeVar("N", bound=tuple[Any, ...])

def read_spans(states: Int32s, prefixes: NDArray[np.uint8], labels: Int32s, offsets: Int64s) -> Int64s: ...
def make_spans(kind: type[N], starts: Int64s, ends: Int64s, labels: list[str], origin: int = 0) -> list[N]: ...
def make_entities(
    kind: type[T],
    spans: list[N],
    text: str,
    token_starts: Int64s,
    token_ends: Int64s,
    confidences: Floats | None = None,
) -> tuple[T, ...]: ...
