import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext.spellings import TokenSpellings

def capitalised_tokens(tokens: list[str], min_letters: int) -> list[int]: ...
def checked_borders(sentence_offsets: ArrayLike, n_tokens: int) -> NDArray[np.int64]: ...
def name_tokens(said: TokenSpellings, sentence_offsets: NDArray[np.int64], min_letters: int) -> list[int]: ...
def same_words(
    said: TokenSpellings,
    sentence_offsets: NDArray[np.int64],
    documents: NDArray[np.int64] | None,
    min_letters: int,
    fold_case: bool,
    nearest: int,
) -> NDArray[np.int32]: ...
def company_links(
    said: TokenSpellings,
    tokens: list[str],
    sentence_offsets: NDArray[np.int64],
    documents: NDArray[np.int64] | None,
    designators: frozenset[str],
    last_words: frozenset[str],
    nearest: int,
) -> NDArray[np.int32]: ...
def merge_links(
    ends: list[NDArray[np.int32]],
) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[int, ...]] | None: ...
def lay_out_chains(
    unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64], links: list[NDArray[np.int32]]
) -> (
    tuple[NDArray[np.int64], NDArray[np.int32] | None, NDArray[np.int32], NDArray[np.int32], tuple[int, ...]] | None
): ...
