from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from herdner._ext.feature_tables import FeatureWeights, WordTable
from herdner._ext.spellings import Spelled
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.ner.lexicon import Topics

TYPE_ATTRIBUTES: tuple[str, ...]
POSITION_ATTRIBUTES: tuple[str, ...]
MAX_GAZETTEERS: int
MAX_PHRASE: int
MAX_OCCURRENCES: int
MAX_OFFSET: int
PHRASE_GOES_ON: int

class PlanArrays(TypedDict):
    singles: Int32s
    single_seeds: NDArray[np.uint64]
    conjunctions: Int32s
    conjunction_starts: Int32s
    conjunction_seeds: NDArray[np.uint64]
    elsewhere: Int32s
    elsewhere_seeds: NDArray[np.uint64]
    n_occurrences: int
    window: int

class Words:
    def spelled(self) -> Spelled: ...

class Extractor:
    def __init__(
        self,
        plan: PlanArrays,
        classes: WordTable | None,
        vectors: WordTable | None,
        gazetteers: WordTable | None,
        n_gazetteers: int,
        weights: FeatureWeights | None = None,
        topics: Topics | None = None,
    ) -> None: ...
    def keys(self, tokens: Sequence[str], sentence_offsets: Int64s) -> tuple[Int64s, NDArray[np.uint64]]: ...
    def origins(
        self, tokens: Sequence[str], sentence_offsets: Int64s, chosen: Int64s
    ) -> tuple[Int64s, NDArray[np.uint64], Int32s, NDArray[np.uint64]]: ...
    def words(self, tokens: Sequence[str]) -> Words: ...
    def scores(
        self, tokens: Sequence[str] | Words, sentence_offsets: Int64s, documents: Int64s | None = None
    ) -> Floats: ...
