"""Documents with scores, as taggers of other people give them."""

from __future__ import annotations

import numpy as np

IOB2 = ["O", "B-PER", "I-PER", "B-LOC"]
WORDS = ["Paris", "sang", ".", "They", "cheered", "Paris", "."]
OFFSETS = [0, 3, 7]
SCORES = np.array([[0, 4, 0, 1], *[[4, 0, 0, 0]] * 4, [0, 1, 0, 1.5], [4, 0, 0, 0]])
LABELS = ["O", "B-PER", "B-LOC"]


def documents(n: int, seed: int) -> tuple[list, list, list, list]:
    """Documents of two sentences with one name each, mentioned twice; the scores of one mention say little."""
    rng = np.random.default_rng(seed)
    scores, tokens, tags, offsets = [], [], [], []
    for i in range(n):
        kind = rng.integers(1, 3)
        right = np.array([0, kind, 0, kind, 0])
        noise = np.array([2, 2.0, 2, 2.0, 2])
        noise[rng.choice([1, 3])] = 0.5
        scores.append(noise[:, None] * np.eye(3)[right] * 1.5 + rng.normal(size=(5, 3)) * 0.7)
        tokens.append(["the", f"Name{i}", "and", f"Name{i}", "."])
        tags.append([("O", "B-PER", "B-LOC")[k] for k in right])
        offsets.append([0, 3, 5])
    return scores, tokens, tags, offsets
