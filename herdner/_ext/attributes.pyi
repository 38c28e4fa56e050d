from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from herdner._ext.arrays import Floats, Int32s, Int64s, Uint8s

class AttributeIndex:
    def __init__(self, names: Iterable[str] = ()) -> None: ...
    def __len__(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    def encode(self, sequences: Iterable[object], grow: bool) -> tuple[Int64s, Int64s, Int32s, NDArray[Any] | None]: ...
    def score(
        self, sequence: object, entry_starts: Int64s, entry_labels: Uint8s, entry_weights: Floats, n_labels: int
    ) -> Floats: ...

def add_scores(
    starts: Int64s,
    indices: Int32s,
    values: Floats | None,
    entry_starts: Int64s,
    entry_labels: Uint8s,
    entry_weights: Floats,
    unary: Floats,
) -> None: ...
def quark_hash(text: bytes) -> int: ...
