from collections.abc import Iterable
from typing import Any, TypeVar

from herdner._ext.arrays import Floats, Int32s, Int64s, Uint8s

T = TypeVar("T")
N = TypeVar("N", bound=tuple[Any, ...])

def read_spans(
    states: Int32s, prefixes: Uint8s, labels: Int32s, names: list[str], offsets: Int64s
) -> tuple[Int64s, Int64s, list[str]]: ...
def make_spans(kind: type[N], starts: Int64s, ends: Int64s, labels: list[str], origin: int = 0) -> list[N]: ...
def make_entities(
    kind: type[T],
    spans: Iterable[N],
    text: str,
    token_starts: Int64s,
    token_ends: Int64s,
    confidences: Floats | None = None,
) -> tuple[T, ...]: ...
def with_name_ids(entities: tuple[T, ...], ids: list[int]) -> tuple[T, ...]: ...
