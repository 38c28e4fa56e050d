"""A tokenizer for tests: words and single marks, one sentence."""

from __future__ import annotations

import re

import numpy as np

from herdner.text.document import Document


def by_space(text: str) -> Document:
    found = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    borders = np.array(found, np.int64).reshape(-1, 2)
    offsets = np.array([0, len(found)] if found else [0])
    return Document(text, [text[a:b] for a, b in found], borders[:, 0], borders[:, 1], offsets)
