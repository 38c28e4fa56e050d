from collections.abc import Sequence
from typing import Any, TypedDict

from herdner._ext.arrays import Floats, Int32s, Int64s, Uint64s
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
    singles: Int32s
    single_seeds: Uint64s
    conjunctions: Int32s
    conjunction_starts: Int32s
    conjunction_seeds: Uint64s
    elsewhere: Int32s
    elsewhere_seeds: Uint64s
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
    def keys(self, tokens: Sequence[str], sentence_offsets: Int64s) -> tuple[Int64s, Uint64s]: ...
    def origins(
        self, tokens: Sequence[str], sentence_offsets: Int64s, chosen: Int64s
    ) -> tuple[Int64s, Uint64s, Int32s, Uint64s]: ...
    def words(self, tokens: Sequence[str]) -> Words: ...
    def scores(
        self, tokens: Sequence[str] | Words, sentence_offsets: Int64s, documents: Int64s | None = None
    ) -> Floats: ...
    def network_scores(self, tokens: Sequence[str], sentence_offsets: Int64s) -> Floats: ...
