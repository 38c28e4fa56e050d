"""Conversion of documents to lower or upper case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from herdner.text.document import Document

Case = Literal["lower", "upper"]
CASES: Mapping[Case, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper}


def change_case(document: Document, case: Case) -> Document:
    """Convert a document to lower or upper case.

    Args:
        document: The document.
        case: "lower" or "upper".

    Returns:
        A document with the same tokens, sentences, spans and white space. Its text may be longer ("ß" becomes "SS").
    """
    tokens = list(map(CASES[case], document.tokens))
    gaps = document.gaps()
    gap_lengths = np.fromiter(map(len, gaps[:-1]), np.int64, len(tokens))
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    ends = np.cumsum(gap_lengths + lengths)
    changed = replace(
        document,
        text=gaps[0] + "".join(token + gap for token, gap in zip(tokens, gaps[1:], strict=True)),
        tokens=tokens, token_starts=ends - lengths, token_ends=ends, spans=None, entities=(), source_tags=None,
    )  # fmt: skip
    return changed if document.spans is None else changed.with_spans(document.spans)
