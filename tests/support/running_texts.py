"""Documents as a tokenizer gives them, for Hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from herdner.text.document import Document

WORD = st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=5)
WORD = WORD.filter(lambda word: not any(map(str.isspace, word)) and word != "-DOCSTART-")
GAP = st.sampled_from([" ", " ", "", "\n", "  ", " \n\t", "\u00a0", "\r\n"])


@st.composite
def running_texts(draw):
    """Documents as a tokenizer gives them: any white space around tokens, several sentences, tags."""
    pieces = draw(
        st.lists(st.tuples(WORD, GAP, st.sampled_from(["O", "B-PER", "I-PER", "B-LOC"]), st.booleans()), max_size=8)
    )
    text = draw(GAP)
    starts, offsets = [], [0]
    for i, (word, gap, _, closes) in enumerate(pieces):
        starts.append(len(text))
        text += word + gap
        if closes or i + 1 == len(pieces):
            offsets.append(i + 1)
    base = Document.from_tokens([[word for word, *_ in pieces]])
    begins = np.array(starts, np.int64)
    ends = begins + (base.token_ends - base.token_starts)
    document = Document(text, base.tokens, begins, ends, np.array(offsets))
    return document.with_tags([tag for *_, tag, _ in pieces])
