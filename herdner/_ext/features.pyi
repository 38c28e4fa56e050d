from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPE_ATTRIBUTES: tuple[str, ...]
POSITION_ATTRIBUTES: tuple[str, ...]
MAX_GAZETTEERS: int
MAX_PHRASE: int
MAX_OCCURRENCES: int
MAX_OFFSET: int
PHRASE_GOES_ON: int

class WordTable:
    def __init__(self, table: NDArray[np.uint64]) -> None: ...

class FeatureWeights:
    n_labels: int
    def __init__(
        self,
        keys: NDArray[np.uint64],
        starts: NDArray[np.integer[Any]],
        labels: NDArray[np.integer[Any]],
        weights: NDArray[np.float64],
        n_labels: int,
    ) -> None: ...

class Extractor:
    def __init__(
        self,
        plan: Mapping[str, Any],
        classes: WordTable | None,
        gazetteers: WordTable | None,
        n_gazetteers: int,
        weights: FeatureWeights | None = None,
    ) -> None: ...
    def keys(
        self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]: ...
    def scores(
        self,
        tokens: Sequence[str],
        sentence_offsets: NDArray[np.int64],
        documents: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]: ...
