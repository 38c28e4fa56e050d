"""Random sequences of attributes with labels, for tests of `herdner.CRF`."""

from __future__ import annotations

import random
from typing import Any

Sequences = list[list[dict[str, Any]]]
WORDS = [f"w{k}" for k in range(40)]


def generate(seed: int, n: int, real: bool = True) -> tuple[Sequences, list[list[str]]]:
    """Return random sequences whose labels depend on the words and on the labels before."""
    rng = random.Random(seed)
    items: Sequences = []
    tags: list[list[str]] = []
    for _ in range(n):
        length = rng.randint(1, 8)
        words = [rng.choice(WORDS) for _ in range(length)]
        row = [
            {"word": word, "even": int(word[1:]) % 2 == 0, "shape": ["p" + word[-1]]}
            | ({"length": rng.random() - 0.3, "nested": {"value": 2.0, "text": "x"}} if real else {})
            for word in words
        ]
        items.append(row)
        tags.append(["ABC"[(int(word[1:]) + (rng.random() < 0.2)) % 3] for word in words])
    return items, tags
