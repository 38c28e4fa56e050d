from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext.spellings import TokenSpellings

def capitalised_tokens(tokens: list[str], min_letters: int) -> list[int]: ...
def checked_borders(sentence_offsets: ArrayLike, n_tokens: int) -> NDArray[np.int64]: ...
def name_tokens(said: TokenSpellings, sentence_offsets: NDArray[np.int64], min_letters: int) -> list[int]: ...
def name_tokens_of_documents(
    said: TokenSpellings, sentence_offsets: NDArray[np.int64], documents: NDArray[np.int64] | None, min_letters: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
def same_words(
    said: TokenSpellings,
    sentence_offsets: NDArray[np.int64],
    documents: NDArray[np.int64] | None,
    min_letters: int,
    fold_case: bool,
    nearest: int,
) -> NDArray[np.int32]: ...
def documents_with_words(said: TokenSpellings, words: Iterable[str], documents: NDArray[np.int64]) -> list[int]: ...
def company_links(
    names: Iterable[int],
    tokens: list[str],
    sentence_offsets: NDArray[np.int64],
    designators: frozenset[str],
    last_words: frozenset[str],
    nearest: int,
) -> NDArray[np.int32]: ...
def has_chains(unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64]) -> bool: ...
def merge_links(
    ends: list[NDArray[np.int32]],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]] | None: ...
def add_messages(
    total: NDArray[np.float64],
    ends: NDArray[np.int32],
    scale: NDArray[np.float64] | None,
    table: NDArray[np.float64],
    beliefs: NDArray[np.float64],
) -> None: ...
