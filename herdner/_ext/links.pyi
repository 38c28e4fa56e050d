from numpy.typing import ArrayLike

from herdner._ext.arrays import Floats, Int32s, Int64s
from herdner._ext.spellings import TokenSpellings

def checked_borders(sentence_offsets: ArrayLike, n_tokens: int) -> Int64s: ...
def name_tokens(said: TokenSpellings, sentence_offsets: Int64s, min_letters: int) -> list[int]: ...
def same_words(
    said: TokenSpellings,
    sentence_offsets: Int64s,
    documents: Int64s | None,
    min_letters: int,
    fold_case: bool,
    nearest: int,
) -> Int32s: ...
def company_links(
    said: TokenSpellings,
    tokens: list[str],
    sentence_offsets: Int64s,
    documents: Int64s | None,
    designators: frozenset[str],
    last_words: frozenset[str],
    nearest: int,
) -> Int32s: ...
def merge_links(ends: list[Int32s]) -> tuple[Int32s, Int32s, tuple[int, ...]] | None: ...
def lay_out_chains(
    unary: Floats, sentence_offsets: Int64s, links: list[Int32s]
) -> tuple[Int64s, Int32s | None, Int32s, Int32s, tuple[int, ...]] | None: ...
