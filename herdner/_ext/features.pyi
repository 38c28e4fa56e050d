from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from herdner._ext.feature_tables import FeatureWeights, WordTable
from herdner._ext.network import CompiledNetwork
from herdner._ext.spellings import TokenSpellings

TYPE_ATTRIBUTES: tuple[str, ...]
POSITION_ATTRIBUTES: tuple[str, ...]
MAX_GAZETTEERS: int
MAX_PHRASE: int
MAX_OCCURRENCES: int
MAX_OFFSET: int
PHRASE_GOES_ON: int

class PlanArrays(TypedDict):
    singles: NDArray[np.int32]
    single_seeds: NDArray[np.uint64]
    conjunctions: NDArray[np.int32]
    conjunction_starts: NDArray[np.int32]
    conjunction_seeds: NDArray[np.uint64]
    elsewhere: NDArray[np.int32]
    elsewhere_seeds: NDArray[np.uint64]
    n_occurrences: int
    window: int

class Words:
    def spellings(self) -> TokenSpellings: ...

class Extractor:
    def __init__(
        self,
        plan: PlanArrays,
        classes: WordTable | None,
        vectors: WordTable | None,
        gazetteers: WordTable | None,
        n_gazetteers: int,
        lock: Any,
        weights: FeatureWeights | None = None,
        topics: Any | None = None,
        network: CompiledNetwork | None = None,
    ) -> None: ...
    def keys(
        self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]: ...
    def origins(
        self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64], chosen: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint64]]: ...
    def words(self, tokens: Sequence[str]) -> Words: ...
    def scores(
        self,
        tokens: Sequence[str] | Words,
        sentence_offsets: NDArray[np.int64],
        documents: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]: ...
    def network_scores(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.float64]: ...
